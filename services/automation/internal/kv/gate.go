package kv

import (
	"context"
	"fmt"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// gate is one of a bucket's lock documents. A transaction that writes an object touches one of them, and one that
// changes the bucket writes all: so a writer of objects conflicts with every change of the bucket, but hardly ever with
// another writer of objects.
//
// Under load there is always a gate that somebody writes, and a change of the bucket would never come to its turn. So
// it first writes the head, which is gate 0, alone. Writers of objects that meet it, or read it, take turns with the
// change until Yield: they depend on the bucket itself, as if there were no gates.
type gate struct {
	docstore.Meta            // with gateID as id; all gates of a bucket but the head have the same version
	Of            int64      `json:"of"`             // the bucket's version
	Yield         clock.Time `json:"yield,omitzero"` // only of the head
}

// gatesOfBucket is more than the transactions that a replica usually has under way in one bucket, because two with the
// same gate at the same time conflict.
const gatesOfBucket = 32

var gates = docstore.Define(docstore.Schema[gate]{Name: "kv_gates", Noun: "gate", NoIfMatch: true})

const (
	head     = 0
	yieldFor = 5 * time.Second // a change that takes longer is delayed by other writers
)

func gateID(bucketID string, n int) string { return fmt.Sprintf("%s.%d", bucketID, n) }

func gateIDs(bucketID string) []string {
	ids := make([]string, gatesOfBucket)
	for n := range ids {
		ids[n] = gateID(bucketID, n)
	}
	return ids
}

// shutGates makes all transactions fail or run again that depend on a gate of the bucket at its present version.
func shutGates(ctx context.Context, tx *docstore.Tx, bucket *Bucket) error {
	ids := gateIDs(bucket.ID)
	found, err := gates.LoadMany(ctx, tx, ids)
	if err != nil {
		return err
	}
	for _, g := range found {
		g.Of, g.Yield = bucket.Version, clock.Time{}
		if _, err := gates.Touch(ctx, tx, g); err != nil {
			return err
		}
	}
	return nil
}

func addGates(ctx context.Context, tx *docstore.Tx, bucket *Bucket) error {
	for _, id := range gateIDs(bucket.ID) {
		g := &gate{Meta: docstore.Meta{ID: id}, Of: bucket.Version}
		if _, err := gates.Insert(ctx, tx, g); err != nil {
			return err
		}
	}
	return nil
}

func removeGates(ctx context.Context, tx *docstore.Tx, bucketID string) error {
	return gates.DeleteWhere(ctx, tx, docstore.ID(gateIDs(bucketID)...), nil)
}

// yield makes writers of objects take turns with a change of the bucket that follows.
func (s *KV) yield(ctx context.Context, name string) error {
	doc, err := buckets.First(ctx, s.store, named(name))
	if err != nil || docstore.IsDryRun(ctx) {
		return apperr.Ignore(err, apperr.NotFound)
	}
	err = docstore.Do(docstore.WithoutCommitHook(ctx), s.store, func(tx *docstore.Tx) error {
		g, err := gates.Load(ctx, tx, gateID(doc.ID, head))
		if err != nil {
			return err
		}
		g.Yield = tx.Now.Add(yieldFor)
		_, err = gates.Touch(ctx, tx, g)
		return err
	})
	return apperr.Ignore(err, apperr.NotFound)
}

// inTurn makes a transaction that reads the bucket, or changes it, take turns with others of this process.
func inTurn(ctx context.Context, bucket string) context.Context {
	return docstore.InTurn(ctx, "bucket "+bucket)
}

// known is what a replica remembers of a bucket, with the version of the gates at which it is true. A transaction that
// relies on it assumes one of the gates to be at that version.
type known struct {
	id          string
	settings    Settings
	head, gates int64 // their versions
}

// knownBucket returns what is known of an active bucket, or reads it; nil if there is no such bucket, it has no gates,
// or writers are to yield.
func (s *KV) knownBucket(ctx context.Context, name string) (*known, error) {
	where := request.Tenant(ctx) + "/" + name
	if k, ok := s.buckets.Get(where); ok {
		return k, nil
	}
	doc, err := buckets.First(ctx, s.store, named(name))
	if apperr.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := doc.Value()
	if err != nil || b.State != active {
		return nil, err
	}
	found, err := gates.FindMany(ctx, s.store, []string{gateID(b.ID, head), gateID(b.ID, head+1)})
	if err != nil || len(found) < 2 {
		return nil, err
	}
	k := &known{id: b.ID, settings: b.Settings}
	for i := range found {
		g, err := found[i].Value()
		// Of differs if the bucket has changed between the two reads.
		if err != nil || g.Of != b.Version || g.Yield.After(s.store.Now()) {
			return nil, err
		}
		if g.ID == gateID(b.ID, head) {
			k.head = g.Version
		} else {
			k.gates = g.Version
		}
	}
	s.buckets.Set(where, k)
	return k, nil
}

func (s *KV) forgetBucket(ctx context.Context, name string) {
	s.buckets.Delete(request.Tenant(ctx) + "/" + name)
}

// assume makes a transaction depend on the bucket being as it is known. Transactions of this replica take the gates in
// turn.
func (s *KV) assume(ctx context.Context, tx *docstore.Tx, k *known) error {
	n, version := int(s.turn.Add(1)%gatesOfBucket), k.gates
	if n == head {
		version = k.head
	}
	return gates.ExpectVersion(ctx, tx, gateID(k.id, n), version)
}
