package httpapi

import (
	"context"
	"runtime"
	"time"

	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// maxLong is how many requests may be at work on long questions, or wait for it.
const maxLong = 1000

// newTurns makes the gate through which long questions go. Half of the processors are left to short ones.
func newTurns() *fair.Gate {
	return fair.NewGate("long questions about permissions", int64(max(1, runtime.GOMAXPROCS(0)/2)), maxLong)
}

// work begins what the questions of a request cost; done ends it. What takes longer than a moment goes on in turns with
// that of other tenants, and rests between them.
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
