//go:build race

package sandbox

import "time"

// With the race detector, workers take ten times as long to compile.
func init() {
	compileTimeout, compileTimes[WebAssembly] = 2*time.Minute, 2*time.Minute
}
