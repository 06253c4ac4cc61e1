package sandbox

import (
	"runtime/debug"
	"time"
)

const (
	maxStack = 64 << 20 // bytes of the Go stack, on which native functions that call each other back recurse

	// maxProcess bounds the memory that a worker can ever write to, beyond what it has when it starts. A call exceeds
	// its own limit first, unless it asks for very much at once.
	maxProcess = 2*MaxMemory + 2*spareMemory

	// maxProcessorTime of a worker's whole life is for one whose parent cannot stop it. A Pool replaces workers before.
	maxProcessorTime = 10 * time.Minute
)

// confine gives up what a worker must not have, for good.
func confine() error {
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(maxProcess / 2)
	return confineSystem()
}
