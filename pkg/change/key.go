package change

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Key is the Idempotency-Key of a request that asks another service for one change. It remembers the id of the change:
// if the request dies, or the outcome is unknown, a repeated request with the key settles that change instead of asking
// for another one, which the first may have made impossible. A request that makes several changes, or something beside
// the change, cannot use it: the repeated one would take the answer of one change for that of another. The zero Key
// remembers nothing.
type Key struct {
	Former string // the change that an earlier request with the key has asked for; "" if there was none

	note func(ctx context.Context, tx *docstore.Tx, changeID string) error
}

type keyKey struct{}

// WithKey adds a key to the context. note stores a change with it.
func WithKey(ctx context.Context, former string, note func(context.Context, *docstore.Tx, string) error,
) context.Context {
	return context.WithValue(ctx, keyKey{}, Key{former, note})
}

// KeyOf returns the context's key; without an Idempotency-Key, one that remembers nothing.
func KeyOf(ctx context.Context) Key {
	key, _ := ctx.Value(keyKey{}).(Key)
	return key
}

// Note stores the id of the change that the request is about to ask for; "" once it is certain that it was not made.
// The transaction must be committed before the request asks.
func (k Key) Note(ctx context.Context, tx *docstore.Tx, changeID string) error {
	if k.note == nil {
		return nil
	}
	return k.note(ctx, tx, changeID)
}
