package settle

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Run is a request with an Idempotency-Key that asks another service for a change. If it dies, or the change's outcome
// is unknown, a repeated request with the key gets to know which change that was: so it asks what became of it, instead
// of asking for another change, which the first one may have made impossible.
type Run struct {
	Former string // the change that an earlier request with the key asked for; "" if there was none

	// note stores the id of the change that this request is about to ask for.
	note func(ctx context.Context, tx *docstore.Tx, changeID string) error
}

type runKey struct{}

// WithRun adds the run to the context.
func WithRun(ctx context.Context, former string, note func(context.Context, *docstore.Tx, string) error,
) context.Context {
	return context.WithValue(ctx, runKey{}, Run{former, note})
}

// RunOf returns the context's run; without an Idempotency-Key, one that knows no change and notes none.
func RunOf(ctx context.Context) Run {
	run, _ := ctx.Value(runKey{}).(Run)
	return run
}

// Note stores the id of the change that the request is about to ask for; "" once it is certain that it was not made.
// The transaction must be committed before the request asks.
func (r Run) Note(ctx context.Context, tx *docstore.Tx, changeID string) error {
	if r.note == nil {
		return nil
	}
	return r.note(ctx, tx, changeID)
}
