package fair

import (
	"context"
	"time"
)

// burst is how long work keeps a processor before it rests. It is shorter than the time slice of some three
// milliseconds that an operating system gives a thread, so that requests need not wait for a whole slice.
const burst = 500 * time.Microsecond

// Pace leaves two thirds of a processor's time to other work, above all to requests. It is for use by one goroutine.
// The zero Pace is ready for use.
type Pace struct{ busy time.Duration }

// Worked reports work that kept a processor for the time took. Once the work since the last rest adds up to half a
// millisecond, Worked rests for twice that time. It returns early if ctx ends.
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
