package fair

import (
	"context"
	"time"
)

// burst is how long work keeps a processor before it rests. An operating system gives a thread some three milliseconds
// before another one that waits for the same processor; rests come sooner, so that requests need not wait for it.
const burst = 500 * time.Microsecond

// Pace leaves two thirds of a processor to other work, requests above all. It is for one goroutine; the zero Pace is
// ready for use.
type Pace struct{ busy time.Duration }

// Worked tells of work that kept the processor, and rests twice as long as all work since the last rest took, once
// that is more than half a millisecond. It returns early when ctx ends.
func (p *Pace) Worked(ctx context.Context, took time.Duration) {
	if p.busy += took; p.busy < burst {
		return
	}
	timer := time.NewTimer(2 * p.busy)
	defer timer.Stop()
	p.busy = 0
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
