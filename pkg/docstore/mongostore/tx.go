package mongostore

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/idplatform/idplatform/pkg/docstore"
)

const (
	// touchedAtOnce bounds the read documents that one statement touches.
	touchedAtOnce = 1000
	// maxPending bounds the writes that wait to be sent, in bytes.
	maxPending = 16 << 20
)

// tx is one attempt of one transaction. Its writes are sent together: at the end, or before a query about their
// collection, which must see them. It remembers documents that it has read or written, and answers requests for them by
// id without asking the server.
type tx struct {
	engine  *Engine
	session *mongo.Session // nil on a server without transactions
	failed  error          // the first failure: the transaction is aborted, or is to be aborted
	wrote   bool
	seen    map[document]bool // documents that the transaction depends on: read (false) or written (true)

	// known are the documents that the transaction has read or written; nil for one that does not exist. A row without
	// Data tells only the document's stamp.
	known map[document]*docstore.Row

	pending []statement
	size    int             // size of pending in bytes
	dirty   map[string]bool // the collections that pending writes to

	assumed       map[document]int64            // versions of documents that it has not read
	absent        map[document]string           // documents that were looked for and not found, with their tenants
	absentValues  map[unique]*docstore.IndexDef // unique values that were looked for and not found
	valuesWritten map[unique]bool               // unique values that the transaction has written
	counted       map[string]bool               // the filters that it counted by: see countKey

	messages []docstore.Message
	undo     []func(context.Context) error // only without transactions
}

type document struct{ collection, key string }

func newTx(e *Engine, session *mongo.Session) *tx {
	return &tx{
		engine: e, session: session, dirty: map[string]bool{},
		seen: map[document]bool{}, known: map[document]*docstore.Row{},
		assumed: map[document]int64{}, absent: map[document]string{}, absentValues: map[unique]*docstore.IndexDef{},
		valuesWritten: map[unique]bool{}, counted: map[string]bool{},
	}
}

var _ docstore.EngineTx = (*tx)(nil)

// run runs fn, and then sends all writes that wait.
func (t *tx) run(ctx context.Context, fn func(docstore.EngineTx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("mongostore: panic in a transaction: %v\n%s", p, debug.Stack())
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	if t.failed != nil {
		return t.failed
	}
	// A transaction that writes nothing has read one snapshot, which needs no protection.
	if t.session != nil && (t.wrote || len(t.messages) > 0 || len(t.assumed) > 0) {
		t.touch()
		t.touchAssumed()
		t.fence()
	}
	if err := t.post(); err != nil {
		return t.fail(ctx, err)
	}
	return t.Flush(ctx)
}

// in returns ctx with the transaction's session.
func (t *tx) in(ctx context.Context) context.Context {
	if t.session == nil {
		return ctx
	}
	return mongo.NewSessionContext(ctx, t.session)
}

// fail notes the first failure and returns err. If the operation's own context has ended, it notes an error without the
// labels of err, so that the transaction does not run again.
func (t *tx) fail(ctx context.Context, err error) error {
	if err != nil && t.failed == nil {
		t.failed = err
		if ctx.Err() != nil {
			t.failed = fmt.Errorf("mongostore: in a transaction: %w", ctx.Err())
		}
	}
	return err
}

// Insert adds a document.
func (t *tx) Insert(ctx context.Context, def *docstore.Def, e *docstore.Entry) error {
	if t.failed != nil {
		return t.failed
	}
	if t.known[document{def.Name, key(e.Tenant, e.ID)}] != nil {
		return t.fail(ctx, &docstore.DuplicateError{Collection: def.Name, Value: e.ID, Entry: e})
	}
	raw, err := stored(def, e)
	if err != nil {
		return err
	}
	t.noteValues(def, e)
	return t.write(ctx, e.Tenant, e.ID, rowOf(e, raw), statement{
		kind: insertOne, collection: def.Name, document: raw, def: def, entry: e,
	})
}

// Replace stores e in place of the document with the same id, whose stamp must be expect.
func (t *tx) Replace(ctx context.Context, def *docstore.Def, e *docstore.Entry, expect docstore.Stamp) error {
	if err := t.expect(ctx, def, e.Tenant, e.ID, expect); err != nil {
		return err
	}
	raw, err := stored(def, e)
	if err != nil {
		return err
	}
	t.noteValues(def, e)
	return t.write(ctx, e.Tenant, e.ID, rowOf(e, raw), statement{
		kind: replaceOne, collection: def.Name, filter: stampOf(e.Tenant, e.ID, expect), document: raw, selects: 1,
		def: def, entry: e,
	})
}

// Delete removes the document with the id, whose stamp must be expect.
func (t *tx) Delete(ctx context.Context, def *docstore.Def, tenant, id string, expect docstore.Stamp) error {
	if err := t.expect(ctx, def, tenant, id, expect); err != nil {
		return err
	}
	return t.write(ctx, tenant, id, nil, statement{
		kind: deleteOne, collection: def.Name, filter: stampOf(tenant, id, expect), selects: 1, def: def,
	})
}

// expect checks a document's stamp. The transaction knows the stamp if it has read the document.
func (t *tx) expect(ctx context.Context, def *docstore.Def, tenant, id string, stamp docstore.Stamp) error {
	if t.failed != nil {
		return t.failed
	}
	d := document{def.Name, key(tenant, id)}
	if _, ok := t.known[d]; !ok {
		if _, err := t.Get(ctx, def, tenant, []string{id}); err != nil {
			return err
		}
	}
	switch row := t.known[d]; {
	case row == nil:
		return docstore.ErrNotFound
	case row.Stamp != stamp:
		return &docstore.VersionError{Current: row.Version}
	}
	return nil
}

// stampOf selects a document in one state. It names the tenant beside the key because the tenant is a likely shard key.
func stampOf(tenant, id string, s docstore.Stamp) bson.D {
	var counts any // null also selects absent members
	if s.Counts != 0 {
		counts = s.Counts
	}
	return bson.D{
		{Key: fieldKey, Value: key(tenant, id)}, {Key: fieldTenant, Value: tenant},
		{Key: fieldVersion, Value: s.Version}, {Key: fieldCounts, Value: counts},
	}
}

func withKeys(keys bson.A) bson.D {
	return bson.D{{Key: fieldKey, Value: bson.D{{Key: "$in", Value: keys}}}}
}

func rowOf(e *docstore.Entry, raw bson.Raw) *docstore.Row {
	return &docstore.Row{ID: e.ID, Stamp: e.Stamp, Due: e.Due, Data: raw}
}

// write adds a statement that turns a document into row, or deletes it if row is nil.
func (t *tx) write(ctx context.Context, tenant, id string, row *docstore.Row, s statement) error {
	d := document{s.collection, key(tenant, id)}
	t.wrote, t.seen[d], t.known[d] = true, true, row
	t.dirty[s.collection] = true
	t.add(s)
	if t.size > maxPending {
		return t.Flush(ctx)
	}
	return nil
}

func (t *tx) add(s statement) {
	t.pending = append(t.pending, s)
	t.size += s.size()
}

// Append adds a message for the relay. It gets its number and is written after fn has returned.
func (t *tx) Append(_ context.Context, m docstore.Message) error {
	if t.failed != nil {
		return t.failed
	}
	t.messages = append(t.messages, m)
	return nil
}

// Flush sends the waiting writes.
func (t *tx) Flush(ctx context.Context) error {
	if t.failed != nil {
		return t.failed
	}
	list := t.pending
	t.pending, t.size = nil, 0
	clear(t.dirty)
	if len(list) == 0 {
		return nil
	}
	for i := range list { // from here on Get asks the server for these documents, to free the memory
		if e := list[i].entry; e != nil {
			if row := t.known[document{list[i].collection, key(e.Tenant, e.ID)}]; row != nil {
				row.Data = nil
			}
		}
	}
	if t.session == nil {
		return t.fail(ctx, t.sendSingly(ctx, list))
	}
	return t.fail(ctx, t.send(ctx, list))
}

// ExpectVersion makes the transaction depend on a document at a version, without reading it: see touchAssumed. Without
// transactions it reads the document.
func (t *tx) ExpectVersion(ctx context.Context, def *docstore.Def, tenant, id string, version int64) error {
	if t.failed != nil {
		return t.failed
	}
	if t.session != nil {
		t.assumed[document{def.Name, key(tenant, id)}] = version
		return nil
	}
	rows, err := t.Get(ctx, def, tenant, []string{id})
	if err == nil && (len(rows) == 0 || rows[0].Version != version) {
		err = docstore.ErrStale
	}
	return err
}

// touchAssumed is touch for documents that the transaction assumes to be at a version. The server finds those that are.
func (t *tx) touchAssumed() {
	for d, version := range t.assumed {
		t.add(statement{
			kind: updateMany, collection: d.collection, selects: 1,
			filter:   bson.D{{Key: fieldKey, Value: d.key}, {Key: fieldVersion, Value: version}},
			document: bson.D{{Key: "$inc", Value: bson.D{{Key: fieldReads, Value: int64(1)}}}},
		})
	}
}

// touch changes the documents that the transaction has read but not written, so that the server refuses the transaction
// if one of them has changed since.
func (t *tx) touch() {
	read := map[string]bson.A{}
	for d, written := range t.seen {
		if !written {
			read[d.collection] = append(read[d.collection], d.key)
		}
	}
	for name, keys := range read {
		for part := range slices.Chunk(keys, touchedAtOnce) {
			t.add(statement{
				kind: updateMany, collection: name, filter: withKeys(part), selects: int64(len(part)),
				document: bson.D{{Key: "$inc", Value: bson.D{{Key: fieldReads, Value: int64(1)}}}},
			})
		}
	}
}
