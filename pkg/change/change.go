// Package change makes one change across two services: both services store it, or neither does, even if one of them
// dies, loses an answer or cannot reach the other (deploy/adr/0010). It replaces a transaction across services.
//
// The asking service stores an intent, asks the other service for the change, and completes it: it deletes the intent
// and stores what belongs to the change, in one transaction. The answering service stores the outcome in the
// transaction of the change. The change, its intent and its outcome have the same id.
//
//	asking service                              answering service
//
//	Run: store the intent
//	  │
//	  ├─ ask ─────────────────────────────────▶ Outcomes.Once: make the change, store "made"
//	  │◀── answer ─────────────────────────────
//	  │      made: complete     refused: delete the intent
//	  │
//	  └─ no clear answer
//	       settle ────────────────────────────▶ Outcomes.Settle: "made", or store "never" and answer so
//	         │◀── outcome ─────────────────────
//	         │      made: complete     never: delete the intent
//	         │
//	         └─ no answer: the intent stays, the caller gets apperr.OutcomeUnknown,
//	            and a task settles the change once the intent is due (Intents.Due, Intents.Resume)
//
// # What it promises
//
//   - kill -9: an asking service that dies leaves its intent, and a task of any replica ends the change. An answering
//     service that dies has made the change and stored its outcome, or has done neither.
//   - Two replicas: a change is made at most once, however often it is asked for. Completing an intent that another
//     replica has completed does nothing.
//   - A service, store or NATS that is away: nothing is asked before the intent is stored. Where nobody has received
//     the question, the change was not made, and the intent is deleted. In all other cases the change is settled.
//   - A slow answer: a request works on for the time Takes, even if its client has left. Then the task takes over,
//     with the request's id and actor.
//   - Not for ever: outcomes are kept for 24 hours. The asking service must settle its intents within that time.
//
// A change with which the asking service stores nothing needs no intent: use Ask.
//
// # Words
//
// An intent is stored before the question and deleted once the change has ended. An outcome says whether the change was
// made. To settle a change is to find out whether it was made; a change that was not made by then is refused from then
// on. To complete a change is to store what the asking service has for it.
//
// # Use
//
//	type intent struct {
//		change.Intent
//		UserID string `json:"user_id"`
//	}
//
//	var moves = change.Define(docstore.Schema[intent]{Name: "moves", Noun: "move"}, 10*time.Second,
//		func(i *intent) *change.Intent { return &i.Intent })
//
//	func (s *Service) Move(ctx context.Context, m Move) (User, error) {
//		return change.Run(ctx, s.Store, moves, change.Steps[intent, Answer, User]{
//			ID: m.ID, Intent: &intent{UserID: m.UserID},
//			Ask:      func(ctx context.Context) (Answer, error) { return ask(ctx, m) },
//			Settle:   s.settle,
//			Complete: s.complete,
//		})
//	}
//
//	// Finish is a task for what moves.Due lists.
//	func (s *Service) Finish(ctx context.Context, id string) error {
//		ctx, i, err := moves.Resume(ctx, s.Store, id)
//		…
//		answer, made, err := s.settle(ctx, id)
//		…
//		if !made {
//			return moves.Drop(ctx, s.Store, id)
//		}
//		_, err = s.complete(ctx, id, answer)
//		return err
//	}
package change

import (
	"context"
	"errors"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// Intent is the common part of intents. They embed it. Its id is that of the change.
type Intent struct {
	docstore.Meta
	RequestID     string     `json:"request_id"`
	Actor         string     `json:"actor"`
	PayloadOrigin string     `json:"payload_origin"`
	TimeDue       clock.Time `json:"time_due"` // when a task may take over
}

// Intents is a collection of intents of type T.
type Intents[T any] struct {
	docstore.Collection[T]

	// Takes is how long a request is left alone with its intent.
	Takes time.Duration

	common func(*T) *Intent
}

// Define is docstore.Define for intents. common returns the common part of an intent. Schema.Due and NoIfMatch are set.
func Define[T any](s docstore.Schema[T], takes time.Duration, common func(*T) *Intent) *Intents[T] {
	s.NoIfMatch, s.Due = true, func(i *T) clock.Time { return common(i).TimeDue }
	return &Intents[T]{Collection: *docstore.Define(s), Takes: takes, common: common}
}

// store stores the intent of a change for the context's request.
func (c *Intents[T]) store(ctx context.Context, tx *docstore.Tx, id string, i T) error {
	info := request.From(ctx)
	*c.common(&i) = Intent{docstore.Meta{ID: id}, info.ID, info.Actor, info.PayloadOrigin, tx.Now.Add(c.Takes)}
	_, err := c.Insert(ctx, tx, &i)
	return err
}

// Open returns the intent with the id; nil if its change has ended.
func (c *Intents[T]) Open(ctx context.Context, tx *docstore.Tx, id string) (*T, error) {
	found, err := c.LoadMany(ctx, tx, []string{id})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// End deletes the intent with the id and returns it; nil if another replica was first.
func (c *Intents[T]) End(ctx context.Context, tx *docstore.Tx, id string) (*T, error) {
	i, err := c.Open(ctx, tx, id)
	if err != nil || i == nil {
		return nil, err
	}
	_, err = c.Delete(ctx, tx, i)
	return i, err
}

// Drop deletes the intent of a change that was not made, in a transaction of its own.
func (c *Intents[T]) Drop(ctx context.Context, s *docstore.Store, id string) error {
	return docstore.Do(docstore.WithoutCommitHook(ctx), s, func(tx *docstore.Tx) error {
		return c.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
}

// Resume returns an intent that is due, and a context with its request's id and actor. The error is apperr.NotFound if
// its change has ended.
func (c *Intents[T]) Resume(ctx context.Context, s *docstore.Store, id string) (context.Context, *T, error) {
	doc, err := c.Find(ctx, s, id)
	if err != nil {
		return ctx, nil, err
	}
	i, err := doc.Value()
	if err != nil {
		return ctx, nil, err
	}
	return c.AsRequest(ctx, i), i, nil
}

// AsRequest returns a context with the id and actor of the intent's request, and the tenant of ctx.
func (c *Intents[T]) AsRequest(ctx context.Context, i *T) context.Context {
	is := c.common(i)
	return request.With(ctx, request.Info{
		ID: is.RequestID, Tenant: request.Tenant(ctx), Actor: is.Actor, PayloadOrigin: is.PayloadOrigin,
	})
}

// Steps are the steps of a change. A is the answer to the question, R the result of the change.
type Steps[T, A, R any] struct {
	ID     string
	Intent *T  // Run sets the common part; nil: the asking service stores nothing before the question
	Key    Key // of the request, if the change is all that the request makes; see Key

	// Check refuses what the asking service can refuse, in the transaction that stores the intent. What the other
	// service makes is not undone. Check may be nil.
	Check func(ctx context.Context, tx *docstore.Tx) error

	// Ask asks for the change.
	Ask func(ctx context.Context) (A, error)

	// Refusal turns an error into that of Run, if the intent could not be stored or the change was refused. It may be
	// nil.
	Refusal func(error) error

	// Settle asks whether the change with the id was made. The answer is like that of Ask.
	Settle func(ctx context.Context, id string) (answer A, made bool, err error)

	// Complete stores what belongs to the change with the id, in the transaction that ends the intent (Intents.End) or
	// notes in it what is left to do.
	Complete func(ctx context.Context, id string, answer A) (R, error)
}

// Run makes a change. The error is one of Check, a refusal of the other service or apperr.Unavailable, and then nothing
// was changed; one of Complete; or apperr.OutcomeUnknown, and then the change may have been made. The caller makes dry
// runs: Run panics.
func Run[T, A, R any](ctx context.Context, s *docstore.Store, c *Intents[T], steps Steps[T, A, R]) (none R, _ error) {
	if docstore.IsDryRun(ctx) {
		panic("change: a dry run would make the change")
	}
	if former := steps.Key.Former; former != "" {
		answer, made, err := steps.Settle(ctx, former)
		switch {
		case err != nil:
			return none, apperr.Unknown(err)
		case made:
			return complete(ctx, steps, former, answer)
		}
		if err := c.Drop(ctx, s, former); err != nil {
			return none, err
		}
	}
	if err := prepare(ctx, s, c, steps); err != nil {
		return none, steps.refusal(err)
	}
	// From here on the work goes on even if the client leaves, because the other service may have made the change.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Takes)
	defer cancel()
	answer, settled, err := ask(ctx, steps.ID, steps.Ask, steps.Settle)
	switch {
	case !settled:
		return none, err
	case err != nil:
		return none, errors.Join(steps.refusal(err), abandon(ctx, s, c, steps))
	}
	return complete(ctx, steps, steps.ID, answer)
}

func (s *Steps[T, A, R]) refusal(err error) error {
	if s.Refusal == nil {
		return err
	}
	return s.Refusal(err)
}

func prepare[T, A, R any](ctx context.Context, s *docstore.Store, c *Intents[T], steps Steps[T, A, R]) error {
	if steps.Intent == nil {
		return nil
	}
	return docstore.Do(docstore.WithoutCommitHook(ctx), s, func(tx *docstore.Tx) error {
		if steps.Check != nil {
			if err := steps.Check(ctx, tx); err != nil {
				return err
			}
		}
		if err := steps.Key.Note(ctx, tx, steps.ID); err != nil {
			return err
		}
		return c.store(ctx, tx, steps.ID, *steps.Intent)
	})
}

func abandon[T, A, R any](ctx context.Context, s *docstore.Store, c *Intents[T], steps Steps[T, A, R]) error {
	if steps.Intent == nil {
		return nil
	}
	return docstore.Do(docstore.WithoutCommitHook(ctx), s, func(tx *docstore.Tx) error {
		if err := steps.Key.Note(ctx, tx, ""); err != nil {
			return err
		}
		return c.DeleteWhere(ctx, tx, docstore.ID(steps.ID), nil)
	})
}

func complete[T, A, R any](ctx context.Context, steps Steps[T, A, R], id string, answer A) (R, error) {
	result, err := steps.Complete(ctx, id, answer)
	if IsUnclear(err) {
		err = apperr.Unknown(err)
	}
	return result, err
}

// Ask asks another service for a change that has no intent, and settles it if the answer is not clear. The error is a
// refusal or apperr.Unavailable if the change was not made, and apperr.OutcomeUnknown if it may have been made.
func Ask[A any](ctx context.Context, id string, question func(context.Context) (A, error),
	settle func(context.Context, string) (A, bool, error)) (A, error) {
	answer, _, err := ask(ctx, id, question, settle)
	return answer, err
}

// ask reports as settled whether it is known if the change was made.
func ask[A any](ctx context.Context, id string, question func(context.Context) (A, error),
	settle func(context.Context, string) (A, bool, error)) (answer A, settled bool, err error) {
	answer, err = question(ctx)
	if !IsUnclear(err) || bus.Unheard(err) {
		return answer, true, err
	}
	outcome, made, failed := settle(ctx, id)
	switch {
	case failed != nil:
		return answer, false, apperr.Unknown(errors.Join(err, failed))
	case made:
		return outcome, true, nil
	}
	return answer, true, err
}

// IsUnclear reports whether it is unknown, after err, if a change was made. Every other error is a refusal.
func IsUnclear(err error) bool {
	switch apperr.KindOf(err) {
	case apperr.Unavailable, apperr.OutcomeUnknown, apperr.Internal:
		return true
	}
	return false
}
