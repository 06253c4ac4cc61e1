// Package settle makes changes that another service asks for at most once, and says whether they were made. The asking
// service may die, or lose the answer: so a change has an id, and once Settle has answered that it was not made, it
// never will be (deploy/adr/0010).
package settle

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Kept is how long the outcome of a change may be asked for. A collection of notes is due that long after a note's
// creation.
const Kept = 24 * time.Hour

// Changes are the changes of which a collection has notes. The id of a note is that of its change.
type Changes[T any] struct {
	Notes   *docstore.Collection[T]
	Applied func(*T) bool // false: the change must not be made any more
}

// Once makes a change that was not made yet, and stores its note. The error is apperr.InvalidState for one that was
// given up, and InvalidParameters without an id.
func (c Changes[T]) Once(ctx context.Context, tx *docstore.Tx, id string, note *T, apply func() error) error {
	done, err := c.find(ctx, tx, id)
	switch {
	case err != nil:
		return err
	case done != nil && !c.Applied(done):
		return apperr.New(apperr.InvalidState, "the change was given up")
	case done != nil:
		return nil
	}
	if _, err := c.Notes.Insert(ctx, tx, note); err != nil {
		return err
	}
	return apply()
}

// Settle returns the note of a change. If there is none, it stores never, so that the change is refused from then on,
// and returns nil.
func (c Changes[T]) Settle(ctx context.Context, tx *docstore.Tx, id string, never *T) (*T, error) {
	done, err := c.find(ctx, tx, id)
	if err != nil || done != nil {
		return done, err
	}
	_, err = c.Notes.Insert(ctx, tx, never)
	return nil, err
}

func (c Changes[T]) find(ctx context.Context, tx *docstore.Tx, id string) (*T, error) {
	if id == "" {
		return nil, apperr.Invalid("change_id", "must be given")
	}
	found, err := c.Notes.LoadMany(ctx, tx, []string{id})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// Due lists notes that are no longer needed.
func (c Changes[T]) Due(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return c.Notes.Due(ctx, s, limit)
}

// Forget deletes a note that is no longer needed.
func (c Changes[T]) Forget(ctx context.Context, s *docstore.Store, id string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		return c.Notes.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
}
