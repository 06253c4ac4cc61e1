// Package processor lets work that nobody waits for give way to requests.
package processor

import "syscall"

// Yield lets other threads that wait for this thread's processor run first, see sched_yield(2). Linux may leave a
// thread with a request to answer waiting behind another one for a time slice, about a millisecond, although another
// processor is idle. Work in the background calls Yield every 0.1 ms or so. That takes less than a microsecond if no
// thread waits. runtime.Gosched does not do this: it gives way to goroutines that are ready, not to those whose input
// has arrived.
func Yield() {
	// Not Syscall: the goroutine keeps its place in Go's scheduler, so that no other thread is woken to take it.
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
}
