package fair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// TenantQueue is the order in which tenants with work in a store get their turns. The order is kept in the same store.
// A writer of work calls Ask in the same transaction. Run gives one turn to every tenant that asked; a tenant with work
// left gets its next turn after all others.
type TenantQueue struct {
	turns *docstore.Collection[turn]
}

// turn is a tenant's place in the order. A tenant has one while it has work, and for a minute after.
type turn struct {
	docstore.Meta            // the id is turnID
	Next          clock.Time `json:"next"`
	Idle          bool       `json:"idle"` // the last turn left no work
}

const (
	turnID = "turn"

	// lookAgain is the time after which a tenant without work is checked once more before its turn is deleted. A
	// store's transactions may not see what others insert meanwhile, so work can be written while the turn becomes
	// idle.
	lookAgain  = time.Minute
	retryAfter = 5 * time.Second
	tenants    = 64 // in one call of Run
)

// NewTenantQueue defines the collection that keeps the order.
func NewTenantQueue(collection string) *TenantQueue {
	return &TenantQueue{docstore.Define(docstore.Schema[turn]{
		Name: collection, Noun: "turn", NoIfMatch: true,
		Due: func(t *turn) clock.Time { return t.Next },
	})}
}

// Def is the collection's definition, for docstore.Open.
func (r *TenantQueue) Def() *docstore.Def { return r.turns.Def() }

// Ask makes sure that the tenant of ctx gets a turn.
func (r *TenantQueue) Ask(ctx context.Context, tx *docstore.Tx) error {
	doc, err := r.turns.Find(ctx, tx, turnID)
	if apperr.IsNotFound(err) {
		_, err = r.turns.Insert(ctx, tx, &turn{Meta: docstore.Meta{ID: turnID}, Next: tx.Now})
		return err
	}
	if err != nil {
		return err
	}
	if now, err := doc.Value(); err != nil || !now.Idle {
		return err
	}
	t, err := r.turns.Load(ctx, tx, turnID)
	if err != nil {
		return err
	}
	t.Idle, t.Next = false, tx.Now
	_, err = r.turns.Replace(ctx, tx, t)
	return err
}

// Work is what a tenant does in its turn. Both functions get a context of the tenant.
type Work struct {
	// Do does a bounded part of the tenant's work.
	Do func(ctx context.Context) error
	// Left reports whether there is more work.
	Left func(ctx context.Context, tx *docstore.Tx) (bool, error)
}

// Run gives a turn to each tenant that is due, the one that has waited longest first, and returns how many of them
// have work left. A tenant whose turn fails gets the next one after a few seconds. Replicas can run at the same time;
// they may then do the same work twice. Call Run again at once while it returns more than 0, otherwise about every
// second.
func (r *TenantQueue) Run(ctx context.Context, store *docstore.Store, w Work) (left int, err error) {
	due, err := r.turns.Due(ctx, store, tenants)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, ref := range due {
		if ctx.Err() != nil {
			return left, errors.Join(append(failed, ctx.Err())...)
		}
		ctx := request.System(ctx, ref.Tenant)
		err := w.Do(ctx)
		more, ended := r.finish(ctx, store, w, err != nil)
		if err = errors.Join(err, ended); err != nil {
			failed = append(failed, fmt.Errorf("tenant %s: %w", ref.Tenant, err))
		} else if more {
			left++
		}
	}
	return left, errors.Join(failed...)
}

// finish sets the tenant's next turn, or deletes the turn of a tenant that stayed idle.
func (r *TenantQueue) finish(ctx context.Context, store *docstore.Store, w Work, failed bool) (left bool, err error) {
	return docstore.Write(ctx, store, func(tx *docstore.Tx) (bool, error) {
		t, err := r.turns.Load(ctx, tx, turnID)
		if apperr.IsNotFound(err) {
			return false, nil // another replica has deleted it
		}
		if err != nil {
			return false, err
		}
		left, err := w.Left(ctx, tx)
		if err != nil {
			return false, err
		}
		switch {
		case failed:
			t.Idle, t.Next = false, tx.Now.Add(retryAfter)
		case left:
			t.Idle, t.Next = false, tx.Now
		case t.Idle:
			_, err = r.turns.Delete(ctx, tx, t)
			return false, err
		default:
			t.Idle, t.Next = true, tx.Now.Add(lookAgain)
		}
		_, err = r.turns.Replace(ctx, tx, t)
		return left, err
	})
}
