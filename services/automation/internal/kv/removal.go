package kv

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// removal remembers the version that a deleted or expired object had. An object that takes its place goes on from it,
// so that no If-Match that was meant for the one accepts the other.
type removal struct {
	docstore.Meta            // the id is the object's
	Place         string     `json:"place"`
	Last          int64      `json:"last"` // the object's version
	Until         clock.Time `json:"until"`
}

// rememberFor is how long a removal is remembered: longer than a client keeps what it has read.
const rememberFor = 24 * time.Hour

const byPlace = "place"

var removals = docstore.Define(docstore.Schema[removal]{
	Name: "kv_removals", Noun: "removal", Part: true,
	Indexes: []docstore.Index[removal]{docstore.ByText(byPlace, func(r *removal) string { return r.Place })},
	Due:     func(r *removal) clock.Time { return r.Until },
})

// remember notes the version of an object that is being removed.
func remember(ctx context.Context, tx *docstore.Tx, o *Object) error {
	_, err := removals.Insert(ctx, tx, &removal{
		Meta: docstore.Meta{ID: o.ID}, Place: place(o.Bucket, o.Key), Last: o.Version, Until: tx.Now.Add(rememberFor),
	})
	return err
}

// recall returns the version of the object that was removed from a place, and forgets it; 0 if there was none.
func recall(ctx context.Context, tx *docstore.Tx, bucket, key string) (last int64, err error) {
	at := docstore.Eq(byPlace, docstore.Text(place(bucket, key)))
	return last, removals.DeleteWhere(ctx, tx, at, func(doc docstore.Doc[removal]) error {
		r, err := doc.Value()
		if err == nil {
			last = max(last, r.Last)
		}
		return err
	})
}

// DueRemovals lists removals that are remembered no longer.
func DueRemovals(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return removals.Due(ctx, store, limit)
}

// Forget forgets removals.
func (s *KV) Forget(ctx context.Context, ids []string) error {
	return docstore.Do(ctx, s.store, func(tx *docstore.Tx) error {
		return removals.DeleteWhere(ctx, tx, docstore.ID(ids...), nil)
	})
}
