package kv

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// removal is the version of an object that was deleted or has expired. The versions of a new object with its key
// continue from it, so that an If-Match that was meant for the removed object does not match the new one.
type removal struct {
	docstore.Meta            // with the object's id
	Place         string     `json:"place"`
	Last          int64      `json:"last"` // the object's version
	Until         clock.Time `json:"until"`
}

// rememberFor is how long removals are kept. Clients are expected to use an ETag within that time.
const rememberFor = 24 * time.Hour

const byPlace = "place"

var removals = docstore.Define(docstore.Schema[removal]{
	Name: "kv_removals", Noun: "removal", NoIfMatch: true,
	Indexes: []docstore.Index[removal]{docstore.ByText(byPlace, func(r *removal) string { return r.Place })},
	Due:     func(r *removal) clock.Time { return r.Until },
})

// remember stores the removal of an object.
func remember(ctx context.Context, tx *docstore.Tx, o *Object) error {
	_, err := removals.Insert(ctx, tx, &removal{
		Meta: docstore.Meta{ID: o.ID}, Place: place(o.Bucket, o.Key), Last: o.Version, Until: tx.Now.Add(rememberFor),
	})
	return err
}

// recall returns the last version of the object that had a key, and deletes the removal; 0 if there is none.
func recall(ctx context.Context, tx *docstore.Tx, bucket, key string) (last int64, err error) {
	at := docstore.Eq(byPlace, docstore.Text(place(bucket, key)))
	err = removals.DeleteWhere(ctx, tx, at, func(doc docstore.Doc[removal]) error {
		r, err := doc.Value()
		if err == nil {
			last = max(last, r.Last)
		}
		return err
	})
	return last, err
}

// DueRemovals lists removals that are older than rememberFor.
func DueRemovals(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return removals.Due(ctx, store, limit)
}

// Forget deletes removals.
func (s *KV) Forget(ctx context.Context, ids []string) error {
	return docstore.Do(ctx, s.store, func(tx *docstore.Tx) error {
		return removals.DeleteWhere(ctx, tx, docstore.ID(ids...), nil)
	})
}
