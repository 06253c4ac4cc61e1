package sandbox

import (
	"os"
	"runtime"
	"runtime/metrics"
	"time"
)

const (
	watchEvery = 5 * time.Millisecond

	// compileMemory limits the memory for compiling: a 4 MiB module takes about 100 MiB.
	compileMemory = MaxMemory

	// MaxMemory is the most that Limits.Memory may be, in bytes.
	MaxMemory = 128 << 20
)

// watch ends the process when its heap grows by more than memory from now on. The returned function ends the watch. The
// memory of a module is limited by its runtime, and watch only limits what the runtime takes beside it. It starts no
// garbage collection then, because the code of a module does not stop for one.
func watch(memory int64, module bool) (stop func()) {
	base := heap()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(watchEvery)
		defer every.Stop()
		for {
			select {
			case <-done:
				return
			case <-every.C:
			}
			if exceeds(base, memory, module) {
				os.Exit(exitMemory)
			}
		}
	}()
	return func() { close(done); <-ended }
}

func exceeds(base, memory int64, module bool) bool {
	if module { // memory that grows is copied, and the old copies stay until the next garbage collection
		return heap()-base > 3*memory+spareMemory
	}
	if heap()-base <= memory {
		return false
	}
	runtime.GC()
	return heap()-base > memory
}

// spareMemory is what a runtime needs beside the memory of the code, in bytes.
const spareMemory = 64 << 20

// heap is the size of all objects in bytes, including those that the next garbage collection will free.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
