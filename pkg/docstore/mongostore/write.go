package mongostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

var errClosed = errors.New("mongostore: the engine is closed")

const (
	abortWithin = time.Second           // else the server aborts the transaction later
	commitPause = 20 * time.Millisecond // between commits whose result is unknown
)

// Write runs fn in a transaction, again after a conflict. It gives up with apperr.Unavailable, and nothing was changed,
// when the engine's timeout has passed, or when the server has been away for Options.Select; with apperr.OutcomeUnknown
// when it was away for as long while the transaction was committed. An operation that failed has ended the transaction
// on the server: what fn still asks for fails likewise, and so does Write, even if fn returns nil.
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
	leave, err := e.turns.enter(ctx, docstore.Turn(ctx))
	if err != nil {
		return err
	}
	defer leave()
	session, err := e.client.StartSession()
	if err != nil {
		return failure(ctx, "start a session", err)
	}
	defer endSession(ctx, session)

	// The driver's WithTransaction goes on for its whole timeout with a server that is away.
	p := e.newPatience()
	for {
		began := time.Now()
		err := e.attempt(ctx, session, fn)
		again, ok := errors.AsType[*againError](err)
		if !ok {
			return err
		}
		if !p.wait(ctx, began, again.cause) {
			return failure(ctx, "transaction", again.cause)
		}
	}
}

func endSession(ctx context.Context, session *mongo.Session) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortWithin)
	defer cancel()
	session.EndSession(ending)
}

// againError is that of an attempt that left nothing behind, and may be made again.
type againError struct{ cause error }

func (e *againError) Error() string { return e.cause.Error() }

// attempt is one transaction.
func (e *Engine) attempt(ctx context.Context, session *mongo.Session, fn func(docstore.EngineTx) error) error {
	if err := session.StartTransaction(transactionOptions()); err != nil {
		return failure(ctx, "start a transaction", err)
	}
	t := newTx(e, session)
	err := t.run(ctx, fn)
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("mongostore: transaction: %w", ctx.Err())
	}
	if err == nil {
		return e.commit(ctx, session)
	}
	aborting, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortWithin)
	defer cancel()
	_ = session.AbortTransaction(aborting)
	if hasLabel(t.failed, labelTransient) {
		return &againError{t.failed} // whatever fn made of it
	}
	return err
}

// commit commits, again while it is not known whether the server has done so.
func (e *Engine) commit(ctx context.Context, session *mongo.Session) error {
	ctx = context.WithoutCancel(ctx)
	err := session.CommitTransaction(ctx)
	asking, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	for hasLabel(err, labelUnknownCommit) && !hasCode(err, codeMaxTimeExpired) && asking.Err() == nil {
		time.Sleep(commitPause)
		err = session.CommitTransaction(asking)
	}
	switch {
	case err == nil:
		return nil
	case hasLabel(err, labelUnknownCommit) || away(err) && !hasLabel(err, labelTransient):
		return apperr.Unknown(fmt.Errorf("mongostore: commit: %w", err))
	case hasLabel(err, labelTransient):
		return &againError{err}
	default:
		return failure(ctx, "commit", err)
	}
}

// patience says for how long attempts are made.
type patience struct {
	until   time.Time     // with conflicts
	gone    time.Time     // since when the server is away; zero if it answers
	outage  time.Duration // for how long it may be
	backoff *backoff.ExponentialBackOff
}

func (e *Engine) newPatience() *patience {
	b := &backoff.ExponentialBackOff{
		InitialInterval: 4 * time.Millisecond, MaxInterval: 250 * time.Millisecond,
		Multiplier: 1.5, RandomizationFactor: 1,
	}
	b.Reset()
	return &patience{until: time.Now().Add(e.timeout), outage: e.patience, backoff: b}
}

// wait waits before the next attempt after one that began at a time; false if there is to be none.
func (p *patience) wait(ctx context.Context, began time.Time, err error) bool {
	until := p.until
	switch {
	case !unreachable(err):
		p.gone = time.Time{}
	case p.gone.IsZero():
		p.gone = began
	}
	if last := p.gone.Add(p.outage); !p.gone.IsZero() && last.Before(until) {
		until = last
	}
	pause := p.backoff.NextBackOff()
	if time.Until(until) < pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
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
