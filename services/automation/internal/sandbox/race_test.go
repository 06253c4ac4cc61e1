//go:build race

package sandbox

import "time"

// Workers are built with the race detector, too, and then compile ten times as slowly.
func init() {
	compileTimeout, compileTimes[WebAssembly] = 2*time.Minute, 2*time.Minute
}
