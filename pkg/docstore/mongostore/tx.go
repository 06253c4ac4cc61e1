package mongostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// touchedAtOnce is how many read documents are touched with one command, and how many a count may have found to be touched.
const touchedAtOnce = 1000

// tx is one attempt of one transaction.
type tx struct {
	engine  *Engine
	session *mongo.Session // nil on a server without transactions
	failed  error          // the first failure: the server has aborted the transaction
	wrote   bool
	seen    map[document]bool // documents that were read (false) or written (true)

	absent       map[document]string           // documents that were looked for and not found, with their tenants
	absentValues map[unique]*docstore.IndexDef // unique values likewise
	held         map[unique]bool               // unique values that the transaction has written

	messages []docstore.Message
	undo     []func(context.Context) error // without transactions only
}

type document struct{ collection, key string }

func newTx(e *Engine, session *mongo.Session) *tx {
	return &tx{
		engine: e, session: session, seen: map[document]bool{},
		absent: map[document]string{}, absentValues: map[unique]*docstore.IndexDef{}, held: map[unique]bool{},
	}
}

var _ docstore.EngineTx = (*tx)(nil)

// run does fn and what must be done before the commit.
func (t *tx) run(ctx context.Context, fn func(docstore.EngineTx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("mongostore: panic in a transaction: %v", p)
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	if t.failed != nil {
		return t.failed
	}
	if err := t.touch(ctx); err != nil {
		return t.fail(ctx, err)
	}
	if len(t.messages) > 0 {
		return t.fail(ctx, t.send(ctx))
	}
	return nil
}

// in is ctx with the transaction's session.
func (t *tx) in(ctx context.Context) context.Context {
	if t.session == nil {
		return ctx
	}
	return mongo.NewSessionContext(ctx, t.session)
}

// fail notes a failure and returns it. One that came of the operation's own context is no reason to try again.
func (t *tx) fail(ctx context.Context, err error) error {
	if err != nil && t.failed == nil {
		t.failed = err
		if ctx.Err() != nil {
			t.failed = fmt.Errorf("mongostore: in a transaction: %w", ctx.Err())
		}
	}
	return err
}

// Get returns the documents that exist among ids, in no particular order.
func (t *tx) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	rows, err := t.engine.Get(t.in(ctx), def, tenant, ids)
	t.read(def, tenant, rows)
	if err == nil {
		t.missed(def, tenant, docstore.ID(ids...), rows)
	}
	return rows, t.fail(ctx, err)
}

// Find returns the rows of a query in its order.
func (t *tx) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	rows, err := t.engine.Find(t.in(ctx), def, tenant, q)
	t.read(def, tenant, rows)
	if err == nil && len(rows) < q.Limit && q.Offset == 0 && q.After == nil {
		t.missed(def, tenant, q.Filter, rows)
	}
	return rows, t.fail(ctx, err)
}

// Page finds and counts, one after the other, in the transaction's snapshot.
func (t *tx) Page(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find, most int64) ([]docstore.Row,
	docstore.Total, error) {
	rows, err := t.Find(ctx, def, tenant, q)
	if err != nil {
		return nil, docstore.Total{}, err
	}
	total, err := t.Count(ctx, def, tenant, q.Filter, most)
	return rows, total, err
}

// Count counts exactly up to most. What it counts counts as read, unless it is more than anybody decides by.
func (t *tx) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter,
	most int64) (docstore.Total, error) {
	if t.failed != nil {
		return docstore.Total{}, t.failed
	}
	found, err := t.engine.keys(t.in(ctx), def, tenant, filter, touchedAtOnce+1)
	if err == nil && len(found) <= touchedAtOnce {
		rows := make([]docstore.Row, len(found))
		for i, k := range found {
			t.see(def, k, false)
			rows[i].ID = strings.TrimPrefix(k, keyPrefix(tenant))
		}
		t.missed(def, tenant, filter, rows)
		return docstore.UpTo(most, int64(len(found))), nil
	}
	var total docstore.Total
	if err == nil {
		total, err = t.engine.Count(t.in(ctx), def, tenant, filter, most)
	}
	return total, t.fail(ctx, err)
}

// Insert adds a document.
func (t *tx) Insert(ctx context.Context, def *docstore.Def, e *docstore.Entry) error {
	if t.failed != nil {
		return t.failed
	}
	raw, err := stored(def, e)
	if err != nil {
		return err
	}
	if _, err := t.engine.collection(def).InsertOne(t.in(ctx), raw); err != nil {
		return t.refused(ctx, def, "insert into "+def.Name, err)
	}
	t.written(def, e.Tenant, e.ID)
	t.holds(def, e)
	t.undone(func(ctx context.Context) error {
		_, err := t.engine.collection(def).DeleteOne(ctx, stampOf(e.Tenant, e.ID, e.Stamp))
		return err
	})
	return nil
}

// Replace puts e in the place of the document of the same id whose stamp is expect.
func (t *tx) Replace(ctx context.Context, def *docstore.Def, e *docstore.Entry, expect docstore.Stamp) error {
	if t.failed != nil {
		return t.failed
	}
	raw, err := stored(def, e)
	if err != nil {
		return err
	}
	before, err := t.engine.collection(def).FindOneAndReplace(t.in(ctx), stampOf(e.Tenant, e.ID, expect), raw).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return t.elsewhere(ctx, def, e.Tenant, e.ID)
	}
	if err != nil {
		return t.refused(ctx, def, "replace in "+def.Name, err)
	}
	t.written(def, e.Tenant, e.ID)
	t.holds(def, e)
	t.undone(func(ctx context.Context) error {
		_, err := t.engine.collection(def).ReplaceOne(ctx, stampOf(e.Tenant, e.ID, e.Stamp), before)
		return err
	})
	return nil
}

// Delete removes the document of that id whose stamp is expect.
func (t *tx) Delete(ctx context.Context, def *docstore.Def, tenant, id string, expect docstore.Stamp) error {
	if t.failed != nil {
		return t.failed
	}
	before, err := t.engine.collection(def).FindOneAndDelete(t.in(ctx), stampOf(tenant, id, expect)).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return t.elsewhere(ctx, def, tenant, id)
	}
	if err != nil {
		return t.refused(ctx, def, "delete from "+def.Name, err)
	}
	t.written(def, tenant, id)
	t.undone(func(ctx context.Context) error {
		_, err := t.engine.collection(def).InsertOne(ctx, before)
		return err
	})
	return nil
}

// Append adds a message for the relay. It is written, and gets its number, when fn is done.
func (t *tx) Append(_ context.Context, m docstore.Message) error {
	if t.failed != nil {
		return t.failed
	}
	t.messages = append(t.messages, m)
	return nil
}

// stampOf selects a document in one state. The tenant is named beside the key since it is a likely shard key.
func stampOf(tenant, id string, s docstore.Stamp) bson.D {
	var counts any // null, which means absent too
	if s.Counts != 0 {
		counts = s.Counts
	}
	return bson.D{
		{Key: fieldKey, Value: key(tenant, id)}, {Key: fieldTenant, Value: tenant},
		{Key: fieldVersion, Value: s.Version}, {Key: fieldCounts, Value: counts},
	}
}

// elsewhere says why no document had the stamp expected.
func (t *tx) elsewhere(ctx context.Context, def *docstore.Def, tenant, id string) error {
	var found struct {
		Version int64 `bson:"version"`
	}
	err := t.engine.collection(def).FindOne(t.in(ctx), bson.D{{Key: fieldKey, Value: key(tenant, id)}, {Key: fieldTenant, Value: tenant}},
		options.FindOne().SetProjection(bson.D{{Key: fieldVersion, Value: 1}})).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return docstore.ErrNotFound
	}
	if err != nil {
		return t.fail(ctx, failure(ctx, "read a version in "+def.Name, err))
	}
	return &docstore.VersionError{Current: found.Version}
}

// refused translates a failed write.
func (t *tx) refused(ctx context.Context, def *docstore.Def, doing string, err error) error {
	if d := duplicate(def, err); d != nil {
		if t.session == nil {
			return d // nothing was aborted
		}
		return t.fail(ctx, d)
	}
	return t.fail(ctx, failure(ctx, doing, err))
}

func (t *tx) read(def *docstore.Def, tenant string, rows []docstore.Row) {
	for i := range rows {
		t.see(def, key(tenant, rows[i].ID), false)
	}
}

func (t *tx) written(def *docstore.Def, tenant, id string) {
	t.wrote = true
	t.see(def, key(tenant, id), true)
}

func (t *tx) see(def *docstore.Def, key string, written bool) {
	d := document{def.Name, key}
	t.seen[d] = t.seen[d] || written
}

// touch changes the documents that the transaction read but did not write, so that the server refuses it if one of them has
// changed since, and fences what it did not find. A transaction that writes nothing read one snapshot and needs none.
func (t *tx) touch(ctx context.Context) error {
	if t.session == nil || !t.wrote && len(t.messages) == 0 {
		return nil
	}
	read := map[string]bson.A{}
	for d, written := range t.seen {
		if !written {
			read[d.collection] = append(read[d.collection], d.key)
		}
	}
	for name, keys := range read {
		for some := range slices.Chunk(keys, touchedAtOnce) {
			is := bson.D{{Key: fieldKey, Value: bson.D{{Key: "$in", Value: some}}}}
			add := bson.D{{Key: "$inc", Value: bson.D{{Key: fieldReads, Value: int64(1)}}}}
			if _, err := t.engine.db.Collection(name).UpdateMany(t.in(ctx), is, add); err != nil {
				return failure(ctx, "touch documents of "+name, err)
			}
		}
	}
	return t.fence(ctx)
}

// undone notes how to take back a write, for servers that cannot.
func (t *tx) undone(step func(context.Context) error) {
	if t.session == nil {
		t.undo = append(t.undo, step)
	}
}
