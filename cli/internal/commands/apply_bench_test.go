package commands

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkRules compares and applies 5,000 rules for 50 nodes and 20 resources, on the platform of IDP_TEST_PROGRAM.
func BenchmarkRules(b *testing.B) {
	p := realPlay(b)
	c := p.counted(b)
	p.inTenant("bench")
	all := many(50, 20, 5000)
	base, files := p.folder(many(50, 20, 0)), p.folder(all)
	ten := p.folder(strings.Replace(all, "actions: [a0], identity", "actions: [a1, a2], identity", 10))
	run := func(b *testing.B, want int, args ...string) {
		b.Helper()
		got := p.run(args...)
		require.Equal(b, want, got.code, got.err+got.out)
	}
	measure := func(name string, want int, args ...string) {
		b.Run(name, func(b *testing.B) {
			c.take()
			for b.Loop() {
				run(b, want, args...)
			}
			counted := c.take()
			all := counted.reads + counted.tries + counted.writes + counted.state
			b.ReportMetric(float64(all)/float64(b.N), "requests/op")
		})
	}
	tenants := 0
	b.Run("apply of all new", func(b *testing.B) {
		c.take()
		counted := 0
		for b.Loop() {
			b.StopTimer()
			tenants++
			p.inTenant(fmt.Sprint("bench", tenants))
			run(b, 0, "apply", "-f", base, "--yes", "--set", "crm")
			c.take()
			b.StartTimer()
			run(b, 0, "apply", "-f", files, "--yes", "--set", "crm")
			one := c.take()
			counted += one.reads + one.tries + one.writes + one.state
		}
		b.ReportMetric(float64(counted)/float64(b.N), "requests/op")
	})
	measure("diff of nothing changed", 0, "diff", "-f", files, "--set", "crm")
	measure("diff after 10 changes", 10, "diff", "-f", ten, "--set", "crm")
}
