package outbox

import (
	"context"
	"maps"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Records is a collection whose changes are events. A write through its own methods tells the event of the change, in
// the same transaction; one through the embedded Collection, such as Recount, tells nothing.
type Records[T any] struct {
	docstore.Collection[T]
	kind   Kind
	action string         // of the next event, in place of created, updated or deleted
	extra  map[string]any // further members of its data
}

// Define is docstore.Define for records whose events have the entity and the source: see Event.
func Define[T any](entity, source string, s docstore.Schema[T]) *Records[T] {
	return &Records[T]{Collection: *docstore.Define(s), kind: Kind{entity, source}}
}

// As returns the records for a write that has an action of its own, such as enabled.
func (r *Records[T]) As(action string) *Records[T] {
	other := *r
	other.action = action
	return &other
}

// With returns the records for a write whose event has one more member of data.
func (r *Records[T]) With(member string, value any) *Records[T] {
	other := *r
	other.extra = map[string]any{}
	maps.Copy(other.extra, r.extra)
	other.extra[member] = value
	return &other
}

// Insert is Collection.Insert that tells created.
func (r *Records[T]) Insert(ctx context.Context, tx *docstore.Tx, v *T) (docstore.Doc[T], error) {
	doc, err := r.Collection.Insert(ctx, tx, v)
	return r.told(ctx, tx, "created", doc, err)
}

// InsertMany is Collection.InsertMany that tells created of each.
func (r *Records[T]) InsertMany(ctx context.Context, tx *docstore.Tx, at func(i int) string, all ...*T) (
	docs []docstore.Doc[T], err error) {
	if docs, err = r.Collection.InsertMany(ctx, tx, at, all...); err != nil {
		return nil, err
	}
	for i := range docs {
		if err := r.Tell(ctx, tx, "created", &docs[i]); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// Replace is Collection.Replace that tells updated, unless nothing has changed.
func (r *Records[T]) Replace(ctx context.Context, tx *docstore.Tx, v *T) (docstore.Doc[T], error) {
	doc, err := r.Collection.Replace(ctx, tx, v)
	if err != nil || !doc.Changed() {
		return doc, err
	}
	return r.told(ctx, tx, "updated", doc, err)
}

// Revise is Collection.Revise that tells updated although nothing may have changed.
func (r *Records[T]) Revise(ctx context.Context, tx *docstore.Tx, v *T) (docstore.Doc[T], error) {
	doc, err := r.Collection.Revise(ctx, tx, v)
	return r.told(ctx, tx, "updated", doc, err)
}

// Touch is Collection.Touch that tells updated.
func (r *Records[T]) Touch(ctx context.Context, tx *docstore.Tx, v *T) (docstore.Doc[T], error) {
	doc, err := r.Collection.Touch(ctx, tx, v)
	return r.told(ctx, tx, "updated", doc, err)
}

// Recount is Collection.Recount that tells updated.
func (r *Records[T]) Recount(ctx context.Context, tx *docstore.Tx, v *T) (docstore.Doc[T], error) {
	doc, err := r.Collection.Recount(ctx, tx, v)
	return r.told(ctx, tx, "updated", doc, err)
}

// Delete is Collection.Delete that tells deleted.
func (r *Records[T]) Delete(ctx context.Context, tx *docstore.Tx, v *T) (docstore.Doc[T], error) {
	doc, err := r.Collection.Delete(ctx, tx, v)
	return r.told(ctx, tx, "deleted", doc, err)
}

// DeleteWhere is Collection.DeleteWhere that tells deleted of each.
func (r *Records[T]) DeleteWhere(ctx context.Context, tx *docstore.Tx, f docstore.Filter) error {
	return r.Collection.DeleteWhere(ctx, tx, f, func(doc docstore.Doc[T]) error {
		return r.Tell(ctx, tx, "deleted", &doc)
	})
}

// Edit changes the record with the id in a transaction of its own: it loads it, calls fn, and replaces it. The error is
// apperr.NotFound, VersionMismatch, AlreadyExists, or that of fn.
func (r *Records[T]) Edit(ctx context.Context, s *docstore.Store, id string, fn func(*docstore.Tx, *T) error) (
	docstore.Doc[T], error) {
	return docstore.Write(ctx, s, func(tx *docstore.Tx) (docstore.Doc[T], error) {
		v, err := r.Load(ctx, tx, id)
		if err != nil {
			return docstore.Doc[T]{}, err
		}
		if err := fn(tx, v); err != nil {
			return docstore.Doc[T]{}, err
		}
		return r.Replace(ctx, tx, v)
	})
}

// Remove deletes the record with the id in a transaction of its own: it loads it, calls fn unless that is nil, and
// deletes it. The error is apperr.NotFound, VersionMismatch, or that of fn.
func (r *Records[T]) Remove(ctx context.Context, s *docstore.Store, id string, fn func(*docstore.Tx, *T) error) (
	docstore.Deleted, error) {
	return docstore.Write(ctx, s, func(tx *docstore.Tx) (docstore.Deleted, error) {
		v, err := r.Load(ctx, tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		if fn != nil {
			if err := fn(tx, v); err != nil {
				return docstore.Deleted{}, err
			}
		}
		_, err = r.Delete(ctx, tx, v)
		return docstore.Deleted{ID: id}, err
	})
}

// Tell tells an event about a record that this transaction has written through the Collection. Its action is that of
// As, if there is one.
func (r *Records[T]) Tell(ctx context.Context, tx *docstore.Tx, action string, doc *docstore.Doc[T]) error {
	if r.action != "" {
		action = r.action
	}
	return Tell(ctx, tx, r.kind, action, doc, r.extra)
}

// told tells the event of a write that returned doc and err, unless it failed, and returns both.
func (r *Records[T]) told(ctx context.Context, tx *docstore.Tx, action string, doc docstore.Doc[T], err error) (
	docstore.Doc[T], error) {
	if err != nil {
		return docstore.Doc[T]{}, err
	}
	return doc, r.Tell(ctx, tx, action, &doc)
}
