package commands

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

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

// objects is a file with an application, its resources, sets of ten resources each, and rules of everyone.
func objects(resources, sets, rules int) string {
	var out strings.Builder
	out.WriteString("{kind: Application, name: crm}\n")
	for i := range resources {
		fmt.Fprintf(&out, "---\n{kind: Resource, application: crm, type: data, code: r%d, name: Resource %d, "+
			"actions: [{code: read}, {code: write}]}\n", i, i)
	}
	for i := range sets {
		fmt.Fprintf(&out, "---\n{kind: ResourceSet, application: crm, code: s%d, members: [", i)
		for j := range 10 {
			fmt.Fprintf(&out, "{type: data, code: r%d, actions: [read]}, ", (10*i+j)%resources)
		}
		out.WriteString("]}\n")
	}
	for i := range rules {
		fmt.Fprintf(&out, "---\n{kind: Rule, application: crm, type: data, code: r%d, actions: [read], "+
			"identity: {type: everyone}}\n", i)
	}
	return out.String()
}

// BenchmarkObjects applies a new application with thousands of objects: on this machine, and 50 ms away from the
// platform.
func BenchmarkObjects(b *testing.B) {
	for _, row := range []struct {
		name                   string
		resources, sets, rules int // and ten members of each set
		away                   time.Duration
	}{
		{"10,300 objects", 5000, 300, 2000, 0},
		{"3,000 objects, 50 ms away", 1500, 50, 950, 50 * time.Millisecond},
	} {
		b.Run(row.name, func(b *testing.B) {
			p := realPlay(b)
			p.distant(row.away)
			c := p.counted(b)
			folder, tenants := p.folder(objects(row.resources, row.sets, row.rules)), 0
			var all requests
			for b.Loop() {
				b.StopTimer()
				tenants++
				p.inTenant(fmt.Sprint("objects", tenants))
				c.take()
				b.StartTimer()
				got := p.run("apply", "-f", folder, "--yes", "--set", "crm")
				require.Equal(b, 0, got.code, got.err)
				all = c.take()
			}
			b.ReportMetric(float64(all.reads), "reads")
			b.ReportMetric(float64(all.tries), "tries")
			b.ReportMetric(float64(all.writes), "writes")
			b.ReportMetric(float64(all.state), "state")
		})
	}
}

// distant puts the platform further away: each request waits first.
func (p *play) distant(away time.Duration) {
	if away == 0 {
		return
	}
	target, err := url.Parse(p.env["IDPCLI_URL"])
	require.NoError(p.t, err)
	platform := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(away)
		platform.ServeHTTP(w, r)
	}))
	p.t.Cleanup(server.Close)
	p.env["IDPCLI_URL"] = server.URL
}
