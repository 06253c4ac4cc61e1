// Package kv is key-value storage: buckets, their objects, and the former states of objects.
package kv

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/textindex"
)

const (
	// MaxObject limits a value, in bytes of compact JSON. A request body is limited to the same size.
	MaxObject = 1 << 20
	// MaxHistory is the most former states of an object that a bucket can keep.
	MaxHistory = 100

	maxBuckets     = 1000                 // of a tenant
	maxTTL         = 10 * 365 * 24 * 3600 // seconds
	maxDescription = 1024                 // characters
)

// The states of a bucket.
const (
	active   = "active"
	deleting = "deleting"
)

// Bucket is a bucket record. Its JSON form is the API's, the events' and the store's.
type Bucket struct {
	docstore.Meta
	Name string `json:"name" readOnly:"true" doc:"1…64 letters, digits or . _ -; unique" example:"settings"`
	Settings
	State       string     `json:"state" readOnly:"true" enum:"active,deleting" doc:"deleting: its objects are being deleted"`
	TimeDeleted clock.Time `json:"time_deleted" readOnly:"true" nullable:"true" doc:"When its deletion began"`
}

// Settings are the members of a bucket that clients set.
type Settings struct {
	Description    string `json:"description" doc:"Up to 1024 characters" example:"Settings of the console"`
	TTLSeconds     int64  `json:"ttl_seconds" doc:"Of objects that are written without their own; 0: forever"`
	History        int64  `json:"history" doc:"How many former states of an object are kept: 0…100" example:"10"`
	MaxObjectBytes int64  `json:"max_object_bytes" doc:"Of a value as compact JSON: 1…1048576, which is what it is if absent" example:"1048576"`
}

const (
	byName        = "name"
	byTimeCreated = "time_created"
)

var buckets = outbox.Define("kv_bucket", "/kv/buckets", docstore.Schema[Bucket]{
	Name: "kv_buckets", Noun: "bucket",
	Sortable: []string{byTimeCreated, byName},
	Indexes: slices.Concat([]docstore.Index[Bucket]{
		docstore.Unique(docstore.ByText(byName, func(b *Bucket) string { return b.Name }), "name"),
		docstore.ByNumber(byTimeCreated, func(b *Bucket) docstore.Value { return docstore.Moment(b.TimeCreated) }),
	}, textindex.KeywordIndexes(func(b *Bucket) []string { return []string{b.Name} })),
	Due: func(b *Bucket) clock.Time { return b.TimeDeleted },
})

// BucketDoc is a bucket as read or written.
type BucketDoc = docstore.Doc[Bucket]

// KV are the use cases.
type KV struct {
	store   *docstore.Store
	ids     *cache.Cache[string, string] // of objects, by tenant, bucket and key
	buckets *cache.Cache[string, *known] // by tenant and name
	turn    atomic.Uint32                // counts the gates that transactions have taken
}

const (
	maxIDs   = 10_000 // how many ids of objects are cached: about 2 MB
	maxKnown = 2_000  // how many buckets are cached: about 2 MB with the longest descriptions
)

// New makes the use cases.
func New(store *docstore.Store) *KV {
	s := &KV{store: store, ids: cache.New[string, string](maxIDs), buckets: cache.New[string, *known](maxKnown)}
	s.turn.Store(rand.Uint32()) // so that replicas begin with different gates
	return s
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{buckets.Def(), objects.Def(), values.Def(), versions.Def(), removals.Def(), gates.Def()}
}

// check sets defaults and reports every fault.
func (b *Bucket) check() error {
	var faults apperr.Faults
	faults.Code("bucket", b.Name)
	faults.Prose("description", b.Description, maxDescription)
	faults.Check(b.TTLSeconds >= 0 && b.TTLSeconds <= maxTTL, "ttl_seconds", "must lie in 0…%d", maxTTL)
	faults.Check(b.History >= 0 && b.History <= MaxHistory, "history", "must lie in 0…%d", MaxHistory)
	if b.MaxObjectBytes == 0 {
		b.MaxObjectBytes = MaxObject
	}
	faults.Check(b.MaxObjectBytes >= 1 && b.MaxObjectBytes <= MaxObject, "max_object_bytes", "must lie in 1…%d",
		MaxObject)
	return faults.Err()
}

// BucketFilter selects buckets by a part of their name; an empty keyword selects all.
type BucketFilter struct {
	textindex.Search
	docstore.Paging
}

// Buckets returns a page of the buckets.
func (s *KV) Buckets(ctx context.Context, f BucketFilter) (docstore.Page[Bucket], error) {
	return buckets.List(ctx, s.store, textindex.HavingPart(f.Keyword), f.Paging)
}

// Bucket returns the bucket with a name. The error is apperr.NotFound if there is none.
func (s *KV) Bucket(ctx context.Context, name string) (BucketDoc, error) {
	return buckets.First(ctx, s.store, named(name))
}

func named(bucket string) docstore.Filter { return docstore.Eq(byName, docstore.Text(bucket)) }

// PutBucket creates a bucket or replaces its settings. The error is apperr.InvalidParameters, VersionMismatch, or
// InvalidState if the tenant has too many buckets or the bucket is being deleted.
func (s *KV) PutBucket(ctx context.Context, name string, settings Settings) (BucketDoc, error) {
	draft := Bucket{Name: name, Settings: settings}
	if err := draft.check(); err != nil {
		return BucketDoc{}, err
	}
	id, err := s.store.NewID(ctx)
	if err != nil {
		return BucketDoc{}, err
	}
	if err := s.yield(ctx, name); err != nil {
		return BucketDoc{}, err
	}
	return docstore.Write(inTurn(ctx, name), s.store, func(tx *docstore.Tx) (BucketDoc, error) {
		b, err := loadBucket(ctx, tx, name)
		if apperr.IsNotFound(err) {
			if docstore.Expects(ctx, name) {
				return BucketDoc{}, apperr.New(apperr.VersionMismatch, "the bucket does not exist")
			}
			return addBucket(ctx, tx, id, draft)
		}
		if err != nil {
			return BucketDoc{}, err
		}
		if err := b.usable(); err != nil {
			return BucketDoc{}, err
		}
		b.Settings = draft.Settings
		doc, err := buckets.Replace(ctx, tx, b)
		if err != nil || !doc.Changed() {
			return doc, err
		}
		return doc, shutGates(ctx, tx, b)
	})
}

// loadBucket loads the bucket with a name. A request's If-Match applies to it if its path has this name.
func loadBucket(ctx context.Context, tx *docstore.Tx, name string) (*Bucket, error) {
	doc, err := buckets.First(ctx, tx, named(name))
	if err != nil {
		return nil, err
	}
	return buckets.Load(docstore.ExpectFor(ctx, name, doc.ID), tx, doc.ID)
}

// usable returns an error for a bucket that is being deleted.
func (b *Bucket) usable() error {
	if b.State == deleting {
		return apperr.New(apperr.InvalidState, "the bucket is being deleted")
	}
	return nil
}

func addBucket(ctx context.Context, tx *docstore.Tx, id string, b Bucket) (BucketDoc, error) {
	if err := buckets.CheckLimit(ctx, tx, docstore.Filter{}, maxBuckets,
		"a tenant has at most %d buckets"); err != nil {
		return BucketDoc{}, err
	}
	b.Meta, b.State = docstore.Meta{ID: id}, active
	doc, err := buckets.Insert(ctx, tx, &b)
	if err != nil {
		return BucketDoc{}, err
	}
	return doc, addGates(ctx, tx, &b)
}

const (
	deletionStep = 200 // objects and former states that one transaction deletes, or those of one object
	maxSteps     = 10  // transactions of a request; the task does the rest
)

// DeleteBucket deletes a bucket. With force it deletes the objects first, in several transactions; a task deletes those
// of a large bucket. Nothing can be written meanwhile. The error is apperr.NotFound, VersionMismatch, or InUse if there
// are objects and force is not set.
func (s *KV) DeleteBucket(ctx context.Context, name string, force bool) (docstore.Deleted, error) {
	if err := s.yield(ctx, name); err != nil {
		return docstore.Deleted{}, err
	}
	deleted, err := docstore.Write(inTurn(ctx, name), s.store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		b, err := loadBucket(ctx, tx, name)
		if err != nil {
			return docstore.Deleted{}, err
		}
		if !force && b.State == active {
			if err := unused(ctx, tx, name); err != nil {
				return docstore.Deleted{}, err
			}
		}
		b.State, b.TimeDeleted = deleting, tx.Now
		replace := buckets.Collection.Replace
		if force { // tells who ordered it: the platform does the rest
			replace = buckets.Replace
		}
		if _, err := replace(ctx, tx, b); err != nil {
			return docstore.Deleted{}, err
		}
		return docstore.Deleted{ID: b.ID}, shutGates(ctx, tx, b)
	})
	if err != nil || docstore.IsDryRun(ctx) {
		return deleted, err
	}
	// If a step fails, the task goes on with the deletion.
	for range maxSteps {
		if left, err := s.purge(docstore.WithoutCommitHook(ctx), deleted.ID); err != nil || !left {
			break
		}
	}
	return deleted, nil
}

// unused returns apperr.InUse if the bucket has objects.
func unused(ctx context.Context, tx *docstore.Tx, bucket string) error {
	page, err := objects.Page(ctx, tx, docstore.Query{Filter: alive(within(bucket, ""), tx.Now), Limit: 1, Count: true})
	if err != nil {
		return err
	}
	return apperr.InUseBy("the bucket has objects",
		apperr.Use{What: "objects", Count: page.Total, AtLeast: page.More})
}

// DueBuckets lists buckets whose deletion has begun.
func DueBuckets(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return buckets.Due(ctx, store, limit)
}

// Purge finishes the deletion of a bucket. The error is apperr.NotFound or VersionMismatch.
func (s *KV) Purge(ctx context.Context, id string) error {
	for {
		if left, err := s.purge(ctx, id); err != nil || !left {
			return err
		}
	}
}

// purge deletes some objects of a bucket that is being deleted or, if there are none, the bucket. left says that the
// bucket is still there.
func (s *KV) purge(ctx context.Context, id string) (left bool, err error) {
	return docstore.Write(ctx, s.store, func(tx *docstore.Tx) (bool, error) {
		b, err := buckets.Load(ctx, tx, id)
		if err != nil {
			return false, err
		}
		found, err := objects.LoadWhere(ctx, tx, within(b.Name, ""), "", deletionStep)
		if err != nil {
			return false, err
		}
		size := int64(0)
		for i, o := range found {
			if size += 1 + o.Kept; size > deletionStep && i > 0 {
				break
			}
			if err := remove(ctx, tx, o, "deleted"); err != nil {
				return false, err
			}
		}
		if len(found) > 0 {
			return true, nil
		}
		if _, err := buckets.Delete(ctx, tx, b); err != nil {
			return false, err
		}
		return false, removeGates(ctx, tx, id)
	})
}
