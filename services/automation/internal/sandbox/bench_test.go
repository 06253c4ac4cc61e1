package sandbox

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkCall measures calls of functions that do nothing in a worker that keeps their code, and the start of a
// worker.
func BenchmarkCall(b *testing.B) {
	for name, c := range map[string]*Call{
		"javascript": js(`function main() {}`), "wasm": call(WebAssembly, "main", wasm("", noBody)),
	} {
		b.Run(name, func(b *testing.B) {
			p := newPool(b)
			require.Equal(b, Succeeded, run(b, p, c).Outcome)
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				r, err := p.Run(of(b, "acme"), c)
				took = append(took, time.Since(began))
				if err != nil || r.Outcome != Succeeded {
					b.Fatal(r, err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
	b.Run("start of a worker", func(b *testing.B) {
		c := js(`function main() {}`)
		for b.Loop() {
			p := newPool(b)
			run(b, p, c)
			p.Close()
		}
	})
}
