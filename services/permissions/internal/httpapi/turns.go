package httpapi

import (
	"context"
	"runtime"
	"time"

	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// maxLong limits the requests that work on long questions or wait for their turn.
const maxLong = 1000

// newTurns makes the gate for long questions. They use at most half of the processors.
func newTurns() *fair.Semaphore {
	return fair.NewSemaphore("long questions about permissions", int64(max(1, runtime.GOMAXPROCS(0)/2)), maxLong)
}

// work begins the work of a request; done ends it. A request that needs more than a fifth of a millisecond takes turns
// with the long requests of other tenants. Within its turns it pauses (see fair.Throttle), while no other long request
// works, so that short requests find a free processor.
func (a *api) work(ctx context.Context) (w *engine.Work, done func()) {
	pace := fair.Throttle{Since: time.Now()}
	leave := func() {}
	w = engine.NewWork(func(ctx context.Context, took time.Duration) error {
		leave()
		leave = func() {}
		next, err := a.turns.Enter(ctx, request.Tenant(ctx), 1)
		if err != nil {
			return err
		}
		leave = next
		pace.Worked(ctx, took)
		return nil
	})
	return w, func() { leave(); w.Done() }
}
