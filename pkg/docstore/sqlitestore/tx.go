package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

var errEnded = errors.New("sqlitestore: the transaction has ended")

// tx is the transaction of a caller's turn at the writer. Its statements are never interrupted: see Conn.
type tx struct {
	queries
	broken error // a write failed half-way: nothing may be committed, even if the caller ignores the error
	late   late  // postings that are not written yet; they are written before anything reads or removes postings
}

// Peek returns the transaction itself: there is only one writer, so nothing that it finds can change.
func (x *tx) Peek() docstore.Queries { return x }

// ReadAhead does nothing: a later read costs no round trip.
func (x *tx) ReadAhead(context.Context, *docstore.Def, string, []string) error { return nil }

// Flush does nothing: SQLite checks each write at once.
func (x *tx) Flush(context.Context) error { return nil }

// ready returns the table for a write. It fails if the transaction is broken or the context has ended.
func (x *tx) ready(ctx context.Context, def *docstore.Def) (*table, error) {
	if x.broken != nil {
		return nil, x.broken
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return x.engine.table(def)
}

// scope is a tenant's part of a collection.
type scope struct{ collection, tenant string }

// counter identifies a counter of documents: all of a tenant, or those with one value of a counted index.
type counter struct {
	scope
	index, value string
}

// count adds n to the counters of all documents and of a document's values of counted indexes.
func (x *tx) count(t *table, tenant string, keys []docstore.Value, n int64) {
	of := scope{t.def.Name, tenant}
	x.counts[counter{scope: of}] += n
	for _, c := range t.counts {
		x.counts[counter{of, c.counter, keys[c.slot].Text}] += n
	}
}

// fail marks the transaction as broken if err is not nil, and returns err.
func (x *tx) fail(err error) error {
	if err != nil {
		x.broken = err
	}
	return err
}

// ExpectVersion compares the version of a document. Nobody changes it while the transaction runs.
func (x *tx) ExpectVersion(ctx context.Context, def *docstore.Def, tenant, id string, version int64) error {
	rows, err := x.Get(ctx, def, tenant, []string{id})
	if err == nil && (len(rows) == 0 || rows[0].Version != version) {
		err = docstore.ErrStale
	}
	return err
}

func (x *tx) Insert(ctx context.Context, def *docstore.Def, e *docstore.Entry) error {
	t, err := x.ready(ctx, def)
	if err != nil {
		return err
	}
	x.count(t, e.Tenant, e.Keys, 1)
	return x.fail(t.add(x.conn, def, e, &x.late))
}

// add writes a document and its index entries. Its postings are written later: see late.
func (t *table) add(conn Conn, def *docstore.Def, e *docstore.Entry, late *late) error {
	row, err := t.insertRow(conn, def, e)
	if err != nil {
		return err
	}
	for _, c := range t.columns() {
		late.add(c, e.Tenant, row, c.postingsOf(e.Keys, listsOf(e))...)
		if !c.many || !c.unique {
			continue
		}
		if err := t.addValues(conn, def, c, e.Tenant, row, e.Lists[c.slot]); err != nil {
			return err
		}
	}
	return late.flushIfMany(conn)
}

// taken returns the *DuplicateError for a violated constraint, and other errors unchanged. It looks for the value that
// another document has, because SQLite names only the columns, in a message that would have to be parsed.
func (t *table) taken(conn Conn, def *docstore.Def, e *docstore.Entry, rid int64, cause error) error {
	if !isConstraint(cause) {
		return cause
	}
	for _, c := range append([]*column{&t.id}, t.keys...) {
		index, value := "", docstore.Text(e.ID)
		if c != &t.id {
			index, value = indexName(def, false, c.slot), e.Keys[c.slot]
		}
		if !c.unique {
			continue
		}
		sql := fmt.Sprintf("SELECT rid FROM %s INDEXED BY %s WHERE tenant = ?1 AND %s = ?2 AND rid <> ?3 LIMIT 1",
			t.name, c.index, c.field)
		holder, err := number(context.Background(), conn, sql, e.Tenant, c.arg(value), rid)
		if err != nil {
			return err
		}
		if holder != 0 && (c == &t.id || !c.isAbsent(value)) {
			return &docstore.DuplicateError{Collection: def.Name, Index: index, Value: fmt.Sprint(c.arg(value))}
		}
	}
	return cause
}

func (c *column) isAbsent(v docstore.Value) bool {
	if c.number {
		return v == docstore.NoNumber
	}
	return v.Text == ""
}

// stored is a document's row without the document.
type stored struct {
	rid, due int64
	docstore.Stamp
	keys  []docstore.Value
	lists []byte
}

// listsOf returns the lists of an entry in the form of stored.list.
func listsOf(e *docstore.Entry) func(slot int) []string {
	return func(slot int) []string { return e.Lists[slot] }
}

func (s *stored) list(slot int) []string { return decodeList(s.lists, slot) }

// locate reads the row of a document that is to be replaced or deleted, and checks its stamp.
func (x *tx) locate(t *table, tenant, id string, expect docstore.Stamp) (*stored, error) {
	if err := x.late.flush(x.conn); err != nil {
		return nil, x.fail(err)
	}
	var s *stored
	err := x.byID(context.Background(), t, tenant, []string{id}, "rid, version, counts, due, lists"+t.keyFields(),
		func(c Columns) error {
			s = &stored{
				rid: c.Int(0), Stamp: docstore.Stamp{Version: c.Int(1), Counts: c.Int(2)}, due: c.Int(3),
				lists: append([]byte(nil), c.Bytes(4)...),
			}
			for i, k := range t.keys {
				s.keys = append(s.keys, k.value(c, 5+i))
			}
			return nil
		})
	switch {
	case err != nil:
		return nil, x.fail(err)
	case s == nil:
		return nil, docstore.ErrNotFound
	case s.Stamp != expect:
		return nil, &docstore.VersionError{Current: s.Version}
	}
	return s, nil
}

func (c *column) value(from Columns, i int) docstore.Value {
	if c.number {
		return docstore.Number(from.Int(i))
	}
	return docstore.Text(string(from.Bytes(i)))
}

func (x *tx) Replace(ctx context.Context, def *docstore.Def, e *docstore.Entry, expect docstore.Stamp) error {
	t, err := x.ready(ctx, def)
	if err != nil {
		return err
	}
	old, err := x.locate(t, e.Tenant, e.ID, expect)
	if err != nil {
		return err
	}
	x.counts[counter{scope: scope{def.Name, e.Tenant}}] += 0 // so that finish increments changes
	for _, c := range t.counts {
		if is, was := e.Keys[c.slot], old.keys[c.slot]; is != was {
			x.counts[counter{scope{def.Name, e.Tenant}, c.counter, was.Text}]--
			x.counts[counter{scope{def.Name, e.Tenant}, c.counter, is.Text}]++
		}
	}
	return x.fail(t.update(x.conn, def, e, old, &x.late))
}

// update writes only the columns that have changed: SQLite rewrites the entries of every index on a named column, even
// if its value is the same.
func (t *table) update(conn Conn, def *docstore.Def, e *docstore.Entry, old *stored, late *late) error {
	var set strings.Builder
	args := []any{old.rid, e.Version, e.Counts, e.JSON}
	change := func(field string, value any) {
		args = append(args, value)
		fmt.Fprintf(&set, ", %s = ?%d", field, len(args))
	}
	if e.Due != old.due {
		change("due", e.Due)
	}
	lists := encodeLists(e.Lists)
	if string(lists) != string(old.lists) {
		change("lists", lists)
	}
	for i, c := range t.keys {
		if e.Keys[i] != old.keys[i] {
			change(c.field, c.arg(e.Keys[i]))
		}
	}
	sql := "UPDATE OR FAIL " + t.name + " SET version = ?2, counts = ?3, doc = ?4" + set.String() + " WHERE rid = ?1"
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		return t.taken(conn, def, e, old.rid, err)
	}
	for _, c := range t.columns() {
		if err := t.updateEntries(conn, def, c, e, old, late); err != nil {
			return err
		}
	}
	return nil
}

// updateEntries writes the changes in the tables of a column's postings and list.
func (t *table) updateEntries(conn Conn, def *docstore.Def, c *column, e *docstore.Entry, old *stored,
	late *late) error {
	removed, added := difference(c.postingsOf(old.keys, old.list), c.postingsOf(e.Keys, listsOf(e)), c.compare)
	for _, v := range removed {
		if err := c.removePosting(conn, e.Tenant, v, old.rid); err != nil {
			return err
		}
	}
	late.add(c, e.Tenant, old.rid, added...)
	if !c.many || !c.unique {
		return nil
	}
	former, fresh := difference(old.list(c.slot), e.Lists[c.slot], strings.Compare)
	if err := c.removeValues(conn, e.Tenant, old.rid, former); err != nil {
		return err
	}
	return t.addValues(conn, def, c, e.Tenant, old.rid, fresh)
}

func (x *tx) Delete(ctx context.Context, def *docstore.Def, tenant, id string, expect docstore.Stamp) error {
	t, err := x.ready(ctx, def)
	if err != nil {
		return err
	}
	old, err := x.locate(t, tenant, id, expect)
	if err != nil {
		return err
	}
	x.count(t, tenant, old.keys, -1)
	for _, c := range t.columns() {
		for _, v := range c.postingsOf(old.keys, old.list) {
			if err := c.removePosting(x.conn, tenant, v, old.rid); err != nil {
				return x.fail(err)
			}
		}
		if !c.many || !c.unique {
			continue
		}
		if err := c.removeValues(x.conn, tenant, old.rid, old.list(c.slot)); err != nil {
			return x.fail(err)
		}
	}
	_, err = x.conn.Exec(context.Background(), t.remove, old.rid)
	return x.fail(err)
}

func (x *tx) Append(ctx context.Context, m docstore.Message) error {
	if x.broken != nil {
		return x.broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := x.conn.Exec(context.Background(),
		"INSERT INTO outbox (id, subject, record, payload) VALUES (?1, ?2, ?3, ?4)", m.ID, m.Subject, m.Record,
		m.Payload)
	return x.fail(err)
}

// finish writes the late postings and the changed counters: one statement for each counter, however many documents were
// written.
func (x *tx) finish(ctx context.Context) error {
	if x.broken != nil {
		return x.broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := x.late.flush(x.conn); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	for c, n := range x.counts {
		switch {
		case c.index == "": // also if n is 0: changes must grow
			const sql = "INSERT INTO counters (collection, tenant, n, changes) VALUES (?1, ?2, ?3, 1) " +
				"ON CONFLICT DO UPDATE SET n = n + excluded.n, changes = changes + 1"
			if _, err := x.conn.Exec(ctx, sql, c.collection, c.tenant, n); err != nil {
				return err
			}
		case n != 0:
			const sql = "INSERT INTO facet_counters (collection, tenant, n, facet, value) " +
				"VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET n = n + excluded.n"
			if _, err := x.conn.Exec(ctx, sql, c.collection, c.tenant, n, c.index, c.value); err != nil {
				return err
			}
			if n > 0 {
				continue
			}
			const none = "DELETE FROM facet_counters WHERE collection = ?1 AND tenant = ?2 AND facet = ?3 " +
				"AND value = ?4 AND n = 0"
			if _, err := x.conn.Exec(ctx, none, c.collection, c.tenant, c.index, c.value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *tx) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) (rows []docstore.Row, err error) {
	err = x.reading(ctx, func(ctx context.Context) error {
		rows, err = x.queries.Get(ctx, def, tenant, ids)
		return err
	})
	return rows, err
}

func (x *tx) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) (rows []docstore.Row,
	err error) {
	err = x.reading(ctx, func(ctx context.Context) error {
		rows, err = x.queries.Find(ctx, def, tenant, q)
		return err
	})
	return rows, err
}

// Page reads a query's rows and its total in the state of the transaction.
func (x *tx) Page(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find,
	exactTo int64) (rows []docstore.Row, total docstore.Total, err error) {
	err = x.reading(ctx, func(ctx context.Context) error {
		rows, total, err = x.queries.Page(ctx, def, tenant, q, exactTo)
		return err
	})
	return rows, total, err
}

func (x *tx) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter,
	exactTo int64) (total docstore.Total, err error) {
	err = x.reading(ctx, func(ctx context.Context) error {
		total, err = x.queries.Count(ctx, def, tenant, filter, exactTo)
		return err
	})
	return total, err
}

// reading runs a query without interruption. If it fails, the transaction is broken: SQLite may have rolled it back.
func (x *tx) reading(ctx context.Context, query func(context.Context) error) error {
	if x.broken != nil {
		return x.broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := x.late.flush(x.conn); err != nil {
		return x.fail(err)
	}
	return x.fail(query(context.WithoutCancel(ctx)))
}
