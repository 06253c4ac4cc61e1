package change

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// kept is how long a change may be settled.
const kept = 24 * time.Hour

// Outcome is the common part of outcomes. They embed it. Its id is that of the change.
type Outcome struct {
	docstore.Meta
	Applied bool `json:"applied"` // false: the change must not be made any more
}

// Outcomes is a collection of outcomes of type T.
type Outcomes[T any] struct {
	docstore.Collection[T]
	common func(*T) *Outcome
}

// DefineOutcomes is docstore.Define for outcomes. common returns the common part of an outcome. Schema.Due and
// NoIfMatch are set.
func DefineOutcomes[T any](s docstore.Schema[T], common func(*T) *Outcome) *Outcomes[T] {
	s.NoIfMatch, s.Due = true, func(o *T) clock.Time { return common(o).TimeCreated.Add(kept) }
	return &Outcomes[T]{*docstore.Define(s), common}
}

// Once makes a change that was not made yet, and stores its outcome, with the common part set. The error is
// apperr.InvalidState for one that must not be made any more, and InvalidParameters without an id.
func (c *Outcomes[T]) Once(ctx context.Context, tx *docstore.Tx, id string, outcome T, apply func() error) error {
	done, err := c.find(ctx, tx, id)
	switch {
	case err != nil:
		return err
	case done != nil && !c.common(done).Applied:
		return apperr.New(apperr.InvalidState, "the change was given up")
	case done != nil:
		return nil
	}
	if err := c.store(ctx, tx, id, outcome, true); err != nil {
		return err
	}
	return apply()
}

// Settle returns the outcome of a change that was made. Otherwise it returns nil, and the change is refused from then
// on.
func (c *Outcomes[T]) Settle(ctx context.Context, tx *docstore.Tx, id string) (*T, error) {
	done, err := c.find(ctx, tx, id)
	switch {
	case err != nil || done != nil && !c.common(done).Applied:
		return nil, err
	case done != nil:
		return done, nil
	}
	var never T
	return nil, c.store(ctx, tx, id, never, false)
}

func (c *Outcomes[T]) store(ctx context.Context, tx *docstore.Tx, id string, outcome T, applied bool) error {
	o := c.common(&outcome)
	o.ID, o.Applied = id, applied
	_, err := c.Insert(ctx, tx, &outcome)
	return err
}

func (c *Outcomes[T]) find(ctx context.Context, tx *docstore.Tx, id string) (*T, error) {
	if id == "" {
		return nil, apperr.Invalid("change_id", "must be given")
	}
	found, err := c.LoadMany(ctx, tx, []string{id})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// Forget deletes an outcome that is no longer needed.
func (c *Outcomes[T]) Forget(ctx context.Context, s *docstore.Store, id string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		return c.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
}
