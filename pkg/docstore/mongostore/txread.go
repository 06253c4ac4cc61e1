package mongostore

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// keptOfFind is the number of rows up to which the documents that a query found are kept for later calls of Get.
const keptOfFind = 100

// Get returns the documents that exist among ids, in no particular order.
func (t *tx) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	rows, err := t.get(ctx, def, tenant, ids)
	if err != nil {
		return nil, err
	}
	t.dependOn(def, tenant, rows)
	t.noteAbsent(def, tenant, docstore.ID(ids...), rows)
	return rows, nil
}

// Find returns the rows that a query selects, in its order.
func (t *tx) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row, error) {
	rows, err := t.find(ctx, def, tenant, q)
	if err != nil {
		return nil, err
	}
	t.dependOn(def, tenant, rows)
	if len(rows) < q.Limit && q.Offset == 0 && q.After == nil {
		t.noteAbsent(def, tenant, q.Filter, rows)
	}
	return rows, nil
}

// Page finds and then counts, in the transaction's snapshot.
func (t *tx) Page(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find,
	exactTo int64) ([]docstore.Row, docstore.Total, error) {
	rows, err := t.Find(ctx, def, tenant, q)
	if err != nil {
		return nil, docstore.Total{}, err
	}
	total, err := t.Count(ctx, def, tenant, q.Filter, exactTo)
	return rows, total, err
}

// Count counts exactly up to exactTo. The transaction does not depend on the counted documents, which others may change
// for other reasons. It depends on no other transaction counting by the same filter at the same time: of two
// transactions that count before they add documents, or before they change counted ones, only one can be right.
func (t *tx) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter,
	exactTo int64) (docstore.Total, error) {
	total, err := t.count(ctx, def, tenant, filter, exactTo)
	if err != nil {
		return total, err
	}
	if total.N == 0 {
		t.noteAbsent(def, tenant, filter, nil)
	}
	counted, err := countKey(def, tenant, filter)
	if err != nil {
		return total, t.fail(ctx, err)
	}
	t.counted[counted] = true
	return total, nil
}

// countKey identifies a filter of a tenant's collection that a transaction counts by.
func countKey(def *docstore.Def, tenant string, filter docstore.Filter) (string, error) {
	text, err := json.Marshal(filter.For())
	if err != nil {
		return "", fmt.Errorf("mongostore: encode a filter: %w", err)
	}
	h := fnv.New64a()
	_, _ = h.Write(text) // never fails
	return fmt.Sprintf("%s%s/%016x", keyPrefix(tenant), def.Name, h.Sum64()), nil
}

// Peek returns reads on which the transaction does not depend.
func (t *tx) Peek() docstore.Queries { return peek{t} }

type peek struct{ tx *tx }

func (p peek) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	return p.tx.get(ctx, def, tenant, ids)
}

func (p peek) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row, error) {
	return p.tx.find(ctx, def, tenant, q)
}

func (p peek) Page(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find,
	exactTo int64) ([]docstore.Row, docstore.Total, error) {
	rows, err := p.tx.find(ctx, def, tenant, q)
	if err != nil {
		return nil, docstore.Total{}, err
	}
	total, err := p.tx.count(ctx, def, tenant, q.Filter, exactTo)
	return rows, total, err
}

func (p peek) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter,
	exactTo int64) (docstore.Total, error) {
	return p.tx.count(ctx, def, tenant, filter, exactTo)
}

// ReadAhead makes documents known.
func (t *tx) ReadAhead(ctx context.Context, def *docstore.Def, tenant string, ids []string) error {
	_, err := t.get(ctx, def, tenant, ids)
	return err
}

// get answers from the known documents, and asks the server for the others.
func (t *tx) get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	var rows []docstore.Row
	var unknown []string
	asked := make(map[string]bool, len(ids))
	for _, id := range ids {
		if asked[id] {
			continue
		}
		asked[id] = true
		switch row, ok := t.known[document{def.Name, key(tenant, id)}]; {
		case !ok || row != nil && row.Data == nil:
			unknown = append(unknown, id)
		case row != nil:
			rows = append(rows, *row)
		}
	}
	if len(unknown) == 0 {
		return rows, nil
	}
	found, err := t.engine.Get(t.in(ctx), def, tenant, unknown)
	if err != nil {
		return nil, t.fail(ctx, err)
	}
	for _, id := range unknown {
		t.known[document{def.Name, key(tenant, id)}] = nil
	}
	for i := range found {
		row := found[i]
		t.known[document{def.Name, key(tenant, row.ID)}] = &row
	}
	return append(rows, found...), nil
}

// flushFor sends the waiting writes if a query about a collection must see them.
func (t *tx) flushFor(ctx context.Context, def *docstore.Def) error {
	if t.failed != nil {
		return t.failed
	}
	if t.dirty[def.Name] {
		return t.Flush(ctx)
	}
	return nil
}

func (t *tx) find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row, error) {
	if err := t.flushFor(ctx, def); err != nil {
		return nil, err
	}
	rows, err := t.engine.Find(t.in(ctx), def, tenant, q)
	if err != nil {
		return nil, t.fail(ctx, err)
	}
	if q.Bare {
		return rows, nil
	}
	for i := range rows {
		row := docstore.Row{ID: rows[i].ID, Stamp: rows[i].Stamp, Due: rows[i].Due}
		if len(rows) <= keptOfFind {
			row.Data = rows[i].Data
		}
		t.known[document{def.Name, key(tenant, row.ID)}] = &row
	}
	return rows, nil
}

func (t *tx) count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter,
	exactTo int64) (docstore.Total, error) {
	if err := t.flushFor(ctx, def); err != nil {
		return docstore.Total{}, err
	}
	total, err := t.engine.Count(t.in(ctx), def, tenant, filter, exactTo)
	return total, t.fail(ctx, err)
}

// dependOn notes that the transaction has read documents.
func (t *tx) dependOn(def *docstore.Def, tenant string, rows []docstore.Row) {
	for i := range rows {
		d := document{def.Name, key(tenant, rows[i].ID)}
		if !t.seen[d] { // otherwise it is written
			t.seen[d] = false
		}
	}
}
