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
	abortWithin = time.Second           // if aborting takes longer, the server does it later
	commitPause = 20 * time.Millisecond // pause between commits whose result is unknown
)

// Write runs fn in a transaction, and again after a conflict. It fails with apperr.Unavailable, and nothing has
// changed, after the engine's timeout, or when the server has been away for Options.Select. It fails with
// apperr.OutcomeUnknown when the server was away for that long during the commit. An operation that fails ends the
// transaction on the server: all later operations of fn fail in the same way, and so does Write, even if fn returns
// nil.
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
	leave, err := e.turns.enterAll(ctx, docstore.Turns(ctx))
	if err != nil {
		return err
	}
	defer leave()
	session, err := e.client.StartSession()
	if err != nil {
		return failure(ctx, "start a session", err)
	}
	defer endSession(ctx, session)

	// The driver's WithTransaction retries for its whole timeout while a server is away.
	p := e.newPatience()
	for {
		began := time.Now()
		err := e.attempt(ctx, session, fn)
		again, ok := errors.AsType[*againError](err)
		if !ok {
			return err
		}
		if p.suspects(again.cause) {
			e.endAbandoned(ctx)
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

// againError is the error of an attempt that changed nothing and may be repeated.
type againError struct{ cause error }

func (e *againError) Error() string { return e.cause.Error() }

// attempt runs one transaction.
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
	e.abort(ctx, session)
	if hasLabel(t.failed, labelTransient) {
		return &againError{t.failed} // fn may have returned another error, or none
	}
	return err
}

// abort aborts the transaction. It does not wait for a server that is away: the session's next transaction ends this
// one.
func (e *Engine) abort(ctx context.Context, session *mongo.Session) {
	aborting, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortWithin)
	defer cancel()
	if _, is := e.outage.away(); is {
		cancel()
	}
	_ = session.AbortTransaction(aborting)
}

// commit commits the transaction. It repeats the commit, for at most Options.Select, while it is unknown whether the
// server has done it. It goes on when ctx ends: giving up would leave the result unknown.
func (e *Engine) commit(ctx context.Context, session *mongo.Session) error {
	ctx = context.WithoutCancel(ctx)
	err := e.commitOnce(ctx, session)
	asking, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	asking, end := e.bounded(asking)
	defer end()
	for isUnknown(err) && !hasCode(err, codeMaxTimeExpired) && asking.Err() == nil {
		time.Sleep(commitPause)
		err = session.CommitTransaction(asking)
	}
	switch {
	case err == nil:
		return nil
	case isUnknown(err):
		return apperr.Unknown(fmt.Errorf("mongostore: commit: %w", err))
	case hasLabel(err, labelTransient):
		return &againError{err}
	default:
		return failure(ctx, "commit", err)
	}
}

func (e *Engine) commitOnce(ctx context.Context, session *mongo.Session) error {
	asking, cancel := e.bounded(ctx)
	defer cancel()
	return session.CommitTransaction(asking)
}

// isUnknown reports whether a commit that failed with err may have been done. Not every such error has the label: it is
// missing when a repeated commit reaches a server that is not primary.
func isUnknown(err error) bool {
	return err != nil && (hasLabel(err, labelUnknownCommit) || away(err) && !hasLabel(err, labelTransient))
}

// patience bounds how long attempts are repeated.
type patience struct {
	until   time.Time     // end of attempts after conflicts
	gone    time.Time     // the time at which the server went away; zero if it answers
	outage  time.Duration // how long it may be away
	backoff *backoff.ExponentialBackOff
	begun   time.Time
	down    *outage
}

func (e *Engine) newPatience() *patience {
	b := &backoff.ExponentialBackOff{
		InitialInterval: 4 * time.Millisecond, MaxInterval: 250 * time.Millisecond,
		Multiplier: 1.5, RandomizationFactor: 1,
	}
	b.Reset()
	now := time.Now()
	return &patience{until: now.Add(e.timeout), outage: e.patience, backoff: b, begun: now, down: e.outage}
}

// suspects reports whether attempts have met conflicts for so long that a dead process may hold what they need.
func (p *patience) suspects(err error) bool {
	return !unreachable(err) && time.Since(p.begun) >= suspectAfter
}

// wait waits before the next attempt, after one that began at the given time and failed with err. It returns false if
// the time for attempts is over or ctx has ended.
func (p *patience) wait(ctx context.Context, began time.Time, err error) bool {
	until := p.until
	switch {
	case !unreachable(err):
		p.gone = time.Time{}
	case p.gone.IsZero():
		p.gone = began
		if since, is := p.down.away(); is && since.Before(began) {
			p.gone = since
		}
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

// writeThrough is Write for a server without transactions: if fn fails, its writes are undone one by one, last first.
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
