package fair

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
)

const (
	// burst is how long work keeps a processor before it rests. It is much shorter than the time slice of some three
	// milliseconds that an operating system gives a thread, so that requests need not wait for a whole slice.
	burst = 200 * time.Microsecond
	// restFactor is how many times longer than a burst a rest is. Timers are no more precise than a millisecond.
	restFactor = 5
	// lately is for how long after a request others are expected.
	lately = time.Second
)

// lastRequest is when the last request to this process began, in milliseconds since 1970.
var lastRequest atomic.Int64

// Requested notes that a request began. Work at a Throttle makes room for the requests that are likely to follow.
func Requested(began time.Time) { lastRequest.Store(began.UnixMilli()) }

// Throttle leaves most of a processor's time to requests, as long as there are any. It is for use by one goroutine. The
// zero Throttle is ready for use.
type Throttle struct {
	// Since is the beginning of the work, if that is part of a request: it rests only if others have begun after it.
	Since time.Time

	busy time.Duration
}

// Worked reports work that kept a processor for the time took. Once the work since the last rest adds up to a fifth of
// a millisecond, Worked rests for five times that time, if a request began within the last second. It returns early if
// ctx ends.
func (p *Throttle) Worked(ctx context.Context, took time.Duration) {
	if p.busy += took; p.busy < burst {
		return
	}
	rest := restFactor * p.busy
	p.busy = 0
	last := lastRequest.Load()
	if last <= p.Since.UnixMilli() || time.Now().UnixMilli()-last >= lately.Milliseconds() {
		return
	}
	clock.Pause(ctx, rest)
}
