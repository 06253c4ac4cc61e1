package sandbox

import (
	"context"
	"sync"
	"time"
)

// workerProcessors is how many processors a worker uses at most (its GOMAXPROCS): one for the code, one for the garbage
// collection.
const workerProcessors = 2

// budget ends a call that uses more processor time than it may. It reads the clock only when the time could be used up,
// so that it costs a short call nothing.
type budget struct {
	clock func() time.Duration

	mu           sync.Mutex
	began, until time.Duration // by the clock
	timer        *time.Timer
}

// newBudget calls spent once clock has advanced by limit, unless ctx ends before.
func newBudget(ctx context.Context, limit time.Duration, clock func() time.Duration, spent func()) *budget {
	b := &budget{clock: clock}
	b.mu.Lock()
	b.timer = time.AfterFunc(time.Hour, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		left := b.until - clock()
		switch {
		case ctx.Err() != nil:
		case left <= 0:
			spent()
		default:
			b.timer.Reset(max(left/workerProcessors, time.Millisecond))
		}
	})
	b.mu.Unlock()
	context.AfterFunc(ctx, func() { b.timer.Stop() })
	b.reset(limit)
	return b
}

// reset begins a new budget of limit.
func (b *budget) reset(limit time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began = b.clock()
	b.until = b.began + limit
	b.timer.Reset(limit / workerProcessors)
}

// used is the processor time since the last reset. It is 0 if the worker has ended.
func (b *budget) used() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.clock()-b.began)
}
