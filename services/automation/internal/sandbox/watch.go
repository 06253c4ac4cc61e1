package sandbox

import (
	"os"
	"runtime"
	"runtime/metrics"
	"time"
)

const (
	lookEvery = 5 * time.Millisecond

	// compileMemory bounds what compiling takes: that of a 4 MiB module needs some 100 MiB.
	compileMemory = MaxMemory

	// MaxMemory is the most that Limits.Memory may be.
	MaxMemory = 128 << 20
)

// watch ends the process when it uses more memory from now on than it may. The returned function ends the watch. Of a
// module, memory is limited by its runtime: its code does not stop for a garbage collection, so
// watch asks for none.
func watch(memory int64, module bool) (stop func()) {
	base := heap()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(lookEvery)
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
	if module { // growing copies the memory, and the copies stay until the next garbage collection
		return heap()-base > 3*memory+spareMemory
	}
	if heap()-base <= memory {
		return false
	}
	runtime.GC()
	return heap()-base > memory
}

// spareMemory is what a runtime needs beside the memory of the code.
const spareMemory = 64 << 20

// heap is the size of all objects, in bytes, with those that the next garbage collection frees.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
