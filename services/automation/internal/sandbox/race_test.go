//go:build race

package sandbox

// With the race detector, workers take ten times as long to compile.
func init() { compileTimes[WebAssembly] = compileTimeout }
