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

// Rota is the order in which tenants with work in a store get a turn at it, kept in the store too. Whoever writes work
// calls Ask in the same transaction; Run gives every tenant that asked one turn, and then those with work left another
// one, after all others.
type Rota struct {
	turns *docstore.Collection[turn]
}

// turn is a tenant's place in the order. There is one for each tenant that has work, or had some a minute ago.
type turn struct {
	docstore.Meta            // the id is turnID
	Next          clock.Time `json:"next"`
	Idle          bool       `json:"idle"` // no work was left
}

const (
	turnID = "turn"

	// lookAgain is when a tenant without work is looked at once more before its turn goes: in a store where
	// transactions do not see what others insert meanwhile, work can be written while the turn is made idle.
	lookAgain  = time.Minute
	retryAfter = 5 * time.Second
	tenants    = 64 // in one call of Run
)

// NewRota declares the collection that keeps the order.
func NewRota(collection string) *Rota {
	return &Rota{docstore.Define(docstore.Schema[turn]{
		Name: collection, Noun: "turn", Part: true,
		Due: func(t *turn) clock.Time { return t.Next },
	})}
}

// Def is for docstore.Open.
func (r *Rota) Def() *docstore.Def { return r.turns.Def() }

// Ask sees to it that the tenant of ctx gets a turn.
func (r *Rota) Ask(ctx context.Context, tx *docstore.Tx) error {
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

// Work is what a Rota gives turns at. Both functions get a context of the tenant.
type Work struct {
	// Do does a part of the tenant's work, a bounded one.
	Do func(ctx context.Context) error
	// Left tells whether there is more.
	Left func(ctx context.Context, tx *docstore.Tx) (bool, error)
}

// Run gives a turn to each tenant whose turn it is, the one that has waited longest first, and returns how many have
// work left. A tenant whose turn fails gets the next one after some seconds. Replicas may run at the same time, and
// then do some work twice. To be called again at once while it returns more than 0, else every second or so.
func (r *Rota) Run(ctx context.Context, store *docstore.Store, w Work) (left int, err error) {
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

// finish gives a tenant its next turn.
func (r *Rota) finish(ctx context.Context, store *docstore.Store, w Work, failed bool) (left bool, err error) {
	return docstore.Write(ctx, store, func(tx *docstore.Tx) (bool, error) {
		t, err := r.turns.Load(ctx, tx, turnID)
		if apperr.IsNotFound(err) {
			return false, nil // another replica was here
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
