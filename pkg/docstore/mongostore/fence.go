package mongostore

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// unique is a value of a unique index.
type unique struct {
	collection, tenant, index string
	value                     docstore.Value
}

// noteAbsent notes the ids and unique values that a filter asks for and that none of the rows has. The rows are all
// that the filter selects.
func (t *tx) noteAbsent(def *docstore.Def, tenant string, f docstore.Filter, rows []docstore.Row) {
	switch f.Op {
	case docstore.OpOr:
		for _, sub := range f.Sub {
			t.noteAbsent(def, tenant, sub, rows)
		}
	case docstore.OpID:
		present := make(map[string]bool, len(rows))
		for i := range rows {
			present[rows[i].ID] = true
		}
		for _, id := range f.IDs {
			if !present[id] {
				t.absent[document{def.Name, key(tenant, id)}] = tenant
			}
		}
	case docstore.OpIn:
		d := def.Index(f.Index)
		if !d.Unique || len(rows) > 0 && rows[0].Data == nil {
			return // bare rows do not tell which values they have
		}
		present := map[docstore.Value]bool{}
		for i := range rows {
			addValues(present, rows[i].Data, d)
		}
		for _, v := range f.Values {
			if isValue(d, v) && !present[v] {
				t.absentValues[unique{def.Name, tenant, d.Name, v}] = d
			}
		}
	}
}

// isValue reports whether v is a present value.
func isValue(d *docstore.IndexDef, v docstore.Value) bool {
	if d.Number {
		return v.Num != math.MinInt64
	}
	return v.Text != ""
}

// addValues adds the values that a stored document has in an index.
func addValues(to map[docstore.Value]bool, stored bson.Raw, d *docstore.IndexDef) {
	entries, _ := stored.Lookup(fieldEntries).DocumentOK()
	entry := entries.Lookup(d.Name)
	if n, ok := entry.AsInt64OK(); ok {
		to[docstore.Number(n)] = true
	}
	if text, ok := entry.StringValueOK(); ok {
		to[docstore.Text(text)] = true
	}
	if list, ok := entry.ArrayOK(); ok {
		texts, _ := list.Values()
		for _, e := range texts {
			text, _ := e.StringValueOK()
			to[docstore.Text(text)] = true
		}
	}
}

// noteValues notes the unique values of a document that the transaction writes.
func (t *tx) noteValues(def *docstore.Def, e *docstore.Entry) {
	for i := range def.Indexes {
		d := &def.Indexes[i]
		switch {
		case !d.Unique:
		case d.Many:
			for _, text := range e.Lists[d.Slot] {
				t.valuesWritten[unique{def.Name, e.Tenant, d.Name, docstore.Text(text)}] = true
			}
		default:
			t.valuesWritten[unique{def.Name, e.Tenant, d.Name, e.Keys[d.Slot]}] = true
		}
	}
}

// fence makes the transaction conflict with any other that, at the same time, inserts an id or a unique value that this
// one looked for and did not find, or that counts by a filter by which this one counted. For this, fence inserts
// placeholders with these ids and unique values, and with the keys of the counts, and deletes them again. Nobody ever
// sees a placeholder, but the keys of the unique indexes have been written: of two transactions that write the same key
// of a unique index at the same time, one gets a write conflict. A transaction that only inserts needs no placeholders.
func (t *tx) fence() {
	placeholders := map[string]bson.A{} // the placeholders' keys, by collection
	add := func(collection string, id any, more ...bson.E) {
		t.add(statement{
			kind: insertOne, collection: collection, document: append(bson.D{{Key: fieldKey, Value: id}}, more...),
		})
		placeholders[collection] = append(placeholders[collection], id)
	}
	for d, tenant := range t.absent {
		if _, seen := t.seen[d]; !seen {
			add(d.collection, d.key, bson.E{Key: fieldTenant, Value: tenant})
		}
	}
	for u, d := range t.absentValues {
		if t.valuesWritten[u] {
			continue
		}
		value := scalar(d, u.value)
		if d.Many {
			value = bson.A{value}
		}
		add(u.collection, bson.NewObjectID(), bson.E{Key: fieldTenant, Value: u.tenant},
			bson.E{Key: fieldEntries, Value: bson.D{{Key: u.index, Value: value}}})
	}
	for counted := range t.counted {
		add(countsCollection, counted)
	}
	for name, keys := range placeholders {
		for part := range slices.Chunk(keys, touchedAtOnce) {
			t.add(statement{
				kind: deleteMany, collection: name, filter: withKeys(part), selects: int64(len(part)),
			})
		}
	}
}
