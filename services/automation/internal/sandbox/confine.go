package sandbox

import (
	"runtime/debug"
	"time"
)

const (
	maxStack = 64 << 20 // bytes of the Go stack, on which native functions recurse that call the code back

	// maxProcess limits the bytes of memory that a worker can write to, beyond what it has when it starts. A call
	// exceeds its own limit first, unless it asks for very much at once.
	maxProcess = 2*MaxMemory + 2*spareMemory

	// maxProcessorTime ends a worker whose parent cannot. A Pool replaces workers long before.
	maxProcessorTime = 10 * time.Minute
)

// confine makes the process give up, irrevocably, what a worker must not have. It returns which of the kernel's means
// for this are not there.
func confine() (lacks []string, err error) {
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(maxProcess / 2)
	return confineSystem()
}
