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
func newTurns() *fair.Gate {
	return fair.NewGate("long questions about permissions", int64(max(1, runtime.GOMAXPROCS(0)/2)), maxLong)
}

// work begins the work of a request's questions; done ends it. A request that takes longer than half a millisecond
// takes turns with those of other tenants, and rests between its turns.
func (a *api) work(ctx context.Context) (w *engine.Work, done func()) {
	var pace fair.Pace
	leave := func() {}
	w = engine.NewWork(func(ctx context.Context, took time.Duration) error {
		leave()
		leave = func() {}
		pace.Worked(ctx, took)
		next, err := a.turns.Enter(ctx, request.Tenant(ctx), 1)
		if err == nil {
			leave = next
		}
		return err
	})
	return w, func() { leave(); w.Done() }
}
