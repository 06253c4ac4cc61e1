package outbox

import (
	"context"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Singleton is a collection with one record for each tenant, such as its settings. The first Get or Edit stores it.
type Singleton[T any] struct {
	records *Records[T]
	initial func(id string) *T
}

const byOne = "one"

var one = docstore.Eq(byOne, docstore.Text("1"))

// DefineSingleton is Define for a Singleton. The schema needs no index. initial makes the record of a tenant that has
// changed nothing.
func DefineSingleton[T any](entity, source string, s docstore.Schema[T], initial func(id string) *T) *Singleton[T] {
	s.Indexes = append(s.Indexes, docstore.Unique(docstore.ByText(byOne, func(*T) string { return "1" }), ""))
	return &Singleton[T]{Define(entity, source, s), initial}
}

// Def is Collection.Def.
func (r *Singleton[T]) Def() *docstore.Def { return r.records.Def() }

// Value returns the tenant's record, and an initial one without id if none is stored.
func (r *Singleton[T]) Value(ctx context.Context, from docstore.Reader) (*T, error) {
	doc, err := r.records.First(ctx, from, one)
	if apperr.IsNotFound(err) {
		return r.initial(""), nil
	}
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// Get returns the tenant's record. It stores the initial one if there is none.
func (r *Singleton[T]) Get(ctx context.Context, s *docstore.Store) (docstore.Doc[T], error) {
	doc, err := r.records.First(ctx, s, one)
	if apperr.IsNotFound(err) {
		return r.Edit(docstore.WithoutCommitHook(ctx), s, func(*T) error { return nil })
	}
	return doc, err
}

// Edit changes the tenant's record in a transaction of its own and tells updated. The error is apperr.VersionMismatch
// or that of fn.
func (r *Singleton[T]) Edit(ctx context.Context, s *docstore.Store, fn func(*T) error) (docstore.Doc[T], error) {
	doc, err := r.edit(ctx, s, "", fn)
	if !errors.Is(err, errNotStored) {
		return doc, err
	}
	id, err := s.NewID(ctx)
	if err != nil {
		return docstore.Doc[T]{}, err
	}
	return r.edit(ctx, s, id, fn)
}

var errNotStored = errors.New("outbox: the tenant has no record")

// edit stores the initial record with the id first, if there is none. Without an id the error is errNotStored then.
func (r *Singleton[T]) edit(ctx context.Context, s *docstore.Store, id string, fn func(*T) error) (docstore.Doc[T],
	error) {
	return docstore.Write(ctx, s, func(tx *docstore.Tx) (docstore.Doc[T], error) {
		doc, err := r.records.First(ctx, tx, one)
		if apperr.IsNotFound(err) {
			if id == "" {
				return docstore.Doc[T]{}, errNotStored
			}
			doc, err = r.records.Collection.Insert(ctx, tx, r.initial(id))
		}
		if err != nil {
			return docstore.Doc[T]{}, err
		}
		v, err := r.records.Load(docstore.ExpectFor(ctx, "", doc.ID), tx, doc.ID)
		if err != nil {
			return docstore.Doc[T]{}, err
		}
		if err := fn(v); err != nil {
			return docstore.Doc[T]{}, err
		}
		return r.records.Replace(ctx, tx, v)
	})
}
