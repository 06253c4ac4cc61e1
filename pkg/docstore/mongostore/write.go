package mongostore

import (
	"context"
	"errors"
	"fmt"

	"github.com/idplatform/idplatform/pkg/docstore"
)

var (
	errClosed = errors.New("mongostore: the engine is closed")
	errStop   = errors.New("mongostore: stop") // tells the driver to abort and not to try again
)

// Write runs fn in a transaction, again after a conflict, and gives up, with apperr.Unavailable, when the engine's timeout has passed.
// An operation that failed has ended the transaction on the server: what fn still asks for fails likewise, and so does Write, even if fn
// returns nil.
func (e *Engine) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	e.closing.RLock()
	defer e.closing.RUnlock()
	if e.closed {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("mongostore: %w", err)
	}
	if !e.transactional {
		return e.writeThrough(ctx, fn)
	}
	session, err := e.client.StartSession()
	if err != nil {
		return failure(ctx, "start a session", err)
	}
	defer session.EndSession(context.WithoutCancel(ctx))

	var refused error // fn's result, if it is the end of it
	committing := false
	_, err = session.WithTransaction(ctx, func(context.Context) (any, error) {
		t := newTx(e, session)
		refused, committing = nil, false
		err := t.run(ctx, fn)
		switch {
		case hasLabel(t.failed, labelTransient):
			return nil, t.failed // whatever fn made of it
		case err != nil:
			refused = err
		default:
			committing = true
			return nil, nil
		}
		return nil, errStop // not fn's own error, which might carry a label
	}, transactionOptions())
	switch {
	case refused != nil:
		return refused
	case err != nil && errors.Is(ctx.Err(), err): // between fn and commit
		return fmt.Errorf("mongostore: transaction: %w", err)
	case err != nil && committing && (hasLabel(err, labelUnknownCommit) || away(err) && !hasLabel(err, labelTransient)):
		// Not apperr.Unavailable, which promises that nothing was changed.
		return fmt.Errorf("mongostore: it is not known whether the transaction was committed: %w", err)
	default:
		return failure(ctx, "transaction", err)
	}
}

// writeThrough is Write for a server without transactions: what fn did is undone, step by step, if it fails.
func (e *Engine) writeThrough(ctx context.Context, fn func(docstore.EngineTx) error) error {
	t := newTx(e, nil)
	err := t.run(ctx, fn)
	if err == nil {
		return nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.timeout)
	defer cancel()
	for i := len(t.undo) - 1; i >= 0; i-- {
		if failed := t.undo[i](undo); failed != nil {
			e.log.Error("a write could not be undone", "error", failed)
		}
	}
	return err
}
