package replicaset

import (
	"encoding/binary"
	"strings"

	"github.com/google/btree"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// database keeps all its documents and index entries in one ordered copy-on-write tree. A transaction's snapshot is a
// clone of it.
type database struct {
	name        string
	collections map[string]*collection
	numbered    uint32 // the last number of a collection
	tree        *tree
	changed     uint64                // when the tree last changed
	open        map[*transaction]bool // transactions that are in progress

	// locks are the documents and unique values that transactions in progress, or transactions that ended while those
	// ran, have written.
	locks map[string]*lock
}

// lock is the state of a document or a unique value: who is writing it, and when it last changed.
type lock struct {
	owner   *transaction
	changed uint64
}

type collection struct {
	name     string
	number   uint32
	indexes  []*index // the first is the index of _id
	numbered uint16   // the number of the next index
	changed  uint64   // when an index was last built or dropped

	indexed map[string]bool // members that indexes cover or covered
}

type index struct {
	name    string
	number  uint16
	fields  []string
	unique  bool
	partial *filter
	spec    bson.Raw // as listIndexes returns it

	multikey bool // a document has, or had, a list in it
}

// item is a document, under its _id's key, or an index entry, which holds the document's key.
type item struct {
	key string
	to  string   // of entries
	doc bson.Raw // of documents
}

type tree = btree.BTreeG[item]

func newDatabase(name string) *database {
	return &database{
		name: name, collections: map[string]*collection{}, open: map[*transaction]bool{}, locks: map[string]*lock{},
		tree: btree.NewG(32, func(a, b item) bool { return a.key < b.key }),
	}
}

func (d *database) create(name string, now uint64) *collection {
	d.numbered++
	c := &collection{name: name, number: d.numbered, changed: now, indexed: map[string]bool{}}
	c.add(&index{name: "_id_", fields: []string{"_id"}, unique: true, spec: marshal(bson.D{
		{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}},
		{Key: "name", Value: "_id_"},
	})})
	d.collections[name] = c
	return c
}

func (c *collection) add(x *index) {
	x.number = c.numbered
	c.numbered++
	c.indexes = append(c.indexes, x)
	for _, field := range x.fields {
		name, _, _ := strings.Cut(field, ".")
		c.indexed[name] = true
	}
	if x.partial != nil {
		for _, f := range x.partial.sub {
			name, _, _ := strings.Cut(f.path, ".")
			c.indexed[name] = true
		}
	}
}

func (c *collection) index(name string) *index {
	for _, x := range c.indexes {
		if x.name == name {
			return x
		}
	}
	return nil
}

// prefix is the beginning of all keys of an index.
func (c *collection) prefix(x *index) string {
	b := binary.BigEndian.AppendUint32(nil, c.number)
	return string(binary.BigEndian.AppendUint16(b, x.number))
}

// key is the key of a document.
func (c *collection) key(doc bson.Raw) (string, error) {
	id, err := encodeValue(doc.Lookup("_id"))
	return c.prefix(c.indexes[0]) + id, err
}

// values are the joined encodings of a document's values in an index: several if a field is a list ("multikey").
func (c *collection) values(x *index, doc bson.Raw) ([]string, error) {
	if x.partial != nil {
		if in, err := x.partial.matches(doc); !in || err != nil {
			return nil, err
		}
	}
	joined := []string{c.prefix(x)}
	for _, field := range x.fields {
		v, err := lookup(doc, field)
		if err != nil {
			return nil, err
		}
		elements, err := encodeElements(v)
		if err != nil {
			return nil, err
		}
		x.multikey = x.multikey || v.Type == bson.TypeArray
		if len(joined) > 1 && len(elements) > 1 {
			return nil, unsupported("index %s over two lists", x.name)
		}
		longer := make([]string, 0, len(joined)*len(elements))
		for _, start := range joined {
			for _, end := range elements {
				longer = append(longer, start+end)
			}
		}
		joined = longer
	}
	return joined, nil
}

func encodeElements(v bson.RawValue) ([]string, error) {
	list, ok := v.ArrayOK()
	if !ok {
		one, err := encodeValue(v)
		return []string{one}, err
	}
	values, err := list.Values()
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return []string{string(orderUndefined)}, nil
	}
	seen := map[string]bool{}
	var encoded []string
	for _, v := range values {
		one, err := encodeValue(v)
		if err != nil {
			return nil, err
		}
		if !seen[one] {
			encoded = append(encoded, one)
		}
		seen[one] = true
	}
	return encoded, nil
}

// view is what one statement reads and writes: a transaction's snapshot with its own writes, or the last committed
// state.
type view struct {
	db   *database
	tree *tree
	tx   *transaction // nil outside transactions
	// applying is set during a commit: its locks are held and its unique values checked.
	applying bool
	// changed are the collections that a statement outside transactions writes.
	changed []string
}

func (v *view) get(key string) bson.Raw {
	found, _ := v.tree.Get(item{key: key})
	return found.doc
}

// taken finds the document that has a unique value.
func (v *view) taken(value string) (key string, found bool) {
	v.tree.AscendGreaterOrEqual(item{key: value}, func(i item) bool {
		if strings.HasPrefix(i.key, value) {
			key, found = i.to, true
		}
		return false
	})
	return key, found
}

// lock checks that the view may change a document or a unique value. The first writer wins: in a transaction, what
// another transaction is writing, or has changed since the snapshot, is a write conflict
// (https://www.mongodb.com/docs/manual/core/transactions-production-consideration/
// #in-progress-transactions-and-write-conflicts). A write outside transactions waits for the other.
func (v *view) lock(key string) error {
	if v.applying {
		return nil
	}
	l := v.db.locks[key]
	if v.tx == nil {
		if l != nil && l.owner != nil {
			return &heldError{l.owner}
		}
		v.changed = append(v.changed, key)
		return nil
	}
	if l == nil {
		l = &lock{}
		v.db.locks[key] = l
	}
	if l.owner != nil && l.owner != v.tx || l.changed > v.tx.snapshot {
		return refuse(codeWriteConflict, "Caused by :: Write conflict during plan execution and yielding is disabled.")
	}
	if l.owner == nil {
		l.owner = v.tx
		v.tx.locks = append(v.tx.locks, l)
	}
	return nil
}

// put replaces the document old by doc. old is nil for an insert, doc for a delete.
func (v *view) put(c *collection, old, doc bson.Raw) error {
	either := doc
	if doc == nil {
		either = old
	}
	key, err := c.key(either)
	if err != nil {
		return err
	}
	if len(doc) > maxDocument {
		return refuse(codeTooLarge, "object to insert too large. size in bytes: %d, max size: %d", len(doc),
			maxDocument)
	}
	if err := v.lock(key); err != nil {
		return err
	}
	if old == nil && v.get(key) != nil {
		return duplicate(v.db, c, c.indexes[0], doc)
	}
	if err := v.putEntries(c, key, old, doc); err != nil {
		return err
	}
	if doc == nil {
		v.tree.Delete(item{key: key})
	} else {
		v.tree.ReplaceOrInsert(item{key: key, doc: doc})
	}
	if v.tx != nil {
		v.tx.changed[key] = c
	}
	return nil
}

// putEntries writes the index entries that differ. It locks no unique values that stay, because MongoDB writes no entry
// for them.
func (v *view) putEntries(c *collection, key string, old, doc bson.Raw) error {
	if old != nil && doc != nil && c.alike(old, doc) {
		return nil
	}
	for _, x := range c.indexes[1:] {
		gone, added, err := c.difference(x, old, doc)
		if err != nil {
			return err
		}
		for _, value := range gone {
			if x.unique {
				if err := v.lock(value); err != nil {
					return err
				}
			}
			v.tree.Delete(item{key: value + key})
		}
		for _, value := range added {
			if x.unique {
				if err := v.lock(value); err != nil {
					return err
				}
				if _, taken := v.taken(value); taken && !v.applying {
					return duplicate(v.db, c, x, doc)
				}
			}
			v.tree.ReplaceOrInsert(item{key: value + key, to: key})
		}
	}
	return nil
}

// alike reports whether two documents have equal indexed members.
func (c *collection) alike(a, b bson.Raw) bool {
	for name := range c.indexed {
		if !a.Lookup(name).Equal(b.Lookup(name)) {
			return false
		}
	}
	return true
}

// difference returns the entries that an index loses and gains with a change.
func (c *collection) difference(x *index, old, doc bson.Raw) (gone, added []string, err error) {
	before := map[string]bool{}
	if old != nil {
		if gone, err = c.values(x, old); err != nil {
			return nil, nil, err
		}
		for _, value := range gone {
			before[value] = true
		}
	}
	if doc == nil {
		return gone, nil, nil
	}
	all, err := c.values(x, doc)
	if err != nil {
		return nil, nil, err
	}
	gone = gone[:0]
	for _, value := range all {
		if !before[value] {
			added = append(added, value)
		}
		delete(before, value)
	}
	for value := range before {
		gone = append(gone, value)
	}
	return gone, added, nil
}

// duplicate is the error for a unique value that is taken (with keyPattern since MongoDB 4.2 and keyValue since 4.4).
func duplicate(d *database, c *collection, x *index, doc bson.Raw) error {
	values := bson.D{}
	pattern := bson.D{}
	for _, field := range x.fields {
		v, _ := lookup(doc, field)
		if v.Type == bson.TypeArray {
			// A server names the element that is taken. mongostore does not need it.
			elements, _ := v.Array().Values()
			if len(elements) > 0 {
				v = elements[0]
			}
		}
		values = append(values, bson.E{Key: field, Value: v})
		pattern = append(pattern, bson.E{Key: field, Value: int32(1)})
	}
	e := refuse(codeDuplicateKey, "E11000 duplicate key error collection: %s.%s index: %s dup key: %s", d.name, c.name,
		x.name, marshal(values))
	e.details = bson.D{{Key: "keyPattern", Value: pattern}, {Key: "keyValue", Value: values}}
	return e
}

func marshal(v any) bson.Raw {
	raw, err := bson.Marshal(v)
	if err != nil {
		panic(err) // these documents are the simulation's own
	}
	return raw
}
