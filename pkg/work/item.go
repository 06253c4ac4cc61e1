package work

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Item is what each stored item embeds.
type Item struct {
	docstore.Meta
	Attempt int64      `json:"attempt"` // how many attempts have begun
	Next    clock.Time `json:"next"`    // when an attempt may begin: now, after a pause, or at the end of a lease
}

// New makes the Item of a document that is due at a time. It has a random id. The caller may set one that is made of
// what the item is about, so that it cannot be stored twice.
func New(due clock.Time) Item {
	return Item{Meta: docstore.Meta{ID: secret.Token(16)}, Next: due}
}

func (i *Item) queued() *Item { return i }

// stored is a pointer to a document that embeds Item.
type stored[T any] interface {
	*T
	queued() *Item
}

const byNext = "next"

// Define defines a collection of items. The schema gets an index and what makes the items due.
func Define[T any, I stored[T]](schema docstore.Schema[T]) *docstore.Collection[T] {
	next := func(item *T) clock.Time { return I(item).queued().Next }
	schema.Due = next
	schema.Indexes = append(schema.Indexes,
		docstore.ByNumber(byNext, func(item *T) docstore.Value { return docstore.Moment(next(item)) }))
	return docstore.Define(schema)
}

// Outcome is what becomes of an attempt. The zero value is Done.
type Outcome struct {
	kind  kind
	err   error
	after time.Duration
	key   string
	store func(ctx context.Context, tx *docstore.Tx) error
}

type kind int

const (
	done kind = iota
	retry
	giveUp
	notStarted
)

// String is the outcome's name in metrics.
func (k kind) String() string { return [...]string{"done", "retry", "given_up", "not_started"}[k] }

// Done says that an attempt has succeeded: the item is deleted.
func Done() Outcome { return Outcome{} }

// Retry says that an attempt has failed: there is another one after a pause, if one is left. An error is logged; nil:
// nothing is.
func Retry(err error) Outcome { return Outcome{kind: retry, err: err} }

// GiveUp says that no attempt can succeed: the item is deleted. An error is logged; nil: nothing is.
func GiveUp(err error) Outcome { return Outcome{kind: giveUp, err: err} }

// NotStarted says that the platform could not begin an attempt. It does not count, and the item is due again after a
// pause. An error is logged; nil: nothing is.
func NotStarted(err error, after time.Duration) Outcome {
	return Outcome{kind: notStarted, err: err, after: after}
}

// DoneOr is Done, or Retry after an error.
func DoneOr(err error) Outcome {
	if err != nil {
		return Retry(err)
	}
	return Done()
}

// With has store called in the transaction that stores the outcome, also if another replica has claimed the item since,
// but not if the item was deleted meanwhile. If store fails, the outcome is not stored: the attempt counts, and the
// item is due when its lease ends. So what can fail for reasons of its own belongs in Do.
// If key is not "", such transactions with the same one come one after the other: see docstore.InTurn.
func (o Outcome) With(key string, store func(ctx context.Context, tx *docstore.Tx) error) Outcome {
	o.key, o.store = key, store
	return o
}
