package replicaset

import (
	"bytes"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// unused returns a *heldError if a transaction in progress has read or written a collection: a change of the catalog
// waits for its lock (https://www.mongodb.com/docs/manual/core/transactions-production-consideration/#acquiring-locks).
func unused(d *database, c *collection) error {
	for tx := range d.open {
		if tx.used[c] {
			return &heldError{tx}
		}
	}
	return nil
}

// create is idempotent since MongoDB 7.0: "If you try to create a collection that already exists and you provide
// identical options, no action is taken and success is returned."
func (s *Server) create(c *command, _ *transaction) (bson.D, error) {
	var args struct {
		Name string `bson:"create"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	d, err := s.database(c.db)
	if err != nil {
		return nil, err
	}
	if d.collections[args.Name] == nil {
		s.time++
		d.create(args.Name, s.time)
	}
	return bson.D{}, nil
}

type indexSpec struct {
	Key     bson.D   `bson:"key"`
	Name    string   `bson:"name"`
	Unique  bool     `bson:"unique"`
	Partial bson.Raw `bson:"partialFilterExpression"`
}

func (s *Server) createIndexes(c *command, _ *transaction) (bson.D, error) {
	var args struct {
		Collection string     `bson:"createIndexes"`
		Indexes    []bson.Raw `bson:"indexes"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	d, err := s.database(c.db)
	if err != nil {
		return nil, err
	}
	created := d.collections[args.Collection] == nil
	if created {
		s.time++
		d.create(args.Collection, s.time)
	}
	collection := d.collections[args.Collection]
	if err := unused(d, collection); err != nil {
		return nil, err
	}
	before := len(collection.indexes)
	for _, raw := range args.Indexes {
		x, err := parseIndex(raw)
		if err != nil {
			return nil, err
		}
		same, err := collection.conflict(x)
		if err != nil {
			return nil, err
		}
		if same {
			continue
		}
		if err := s.build(d, collection, x); err != nil {
			return nil, err
		}
	}
	return bson.D{
		{Key: "numIndexesBefore", Value: int32(before)},
		{Key: "numIndexesAfter", Value: int32(len(collection.indexes))},
		{Key: "createdCollectionAutomatically", Value: created},
	}, nil
}

func parseIndex(raw bson.Raw) (*index, error) {
	var spec indexSpec
	if err := decode("an index", raw, &spec, nil); err != nil {
		return nil, err
	}
	x := &index{name: spec.Name, unique: spec.Unique}
	for _, e := range spec.Key {
		if e.Value != int32(1) {
			return nil, unsupported("index that is not of ascending fields")
		}
		x.fields = append(x.fields, e.Key)
	}
	stored := bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: spec.Key}, {Key: "name", Value: spec.Name}}
	if spec.Unique {
		stored = append(stored, bson.E{Key: "unique", Value: true})
	}
	if spec.Partial != nil {
		// https://www.mongodb.com/docs/manual/core/index-partial/: equality, $exists: true, $gt, $gte, $lt, $lte,
		// $type, $and, $or, $in
		var err error
		if x.partial, err = parseFilter(spec.Partial); err != nil {
			return nil, err
		}
		stored = append(stored, bson.E{Key: "partialFilterExpression", Value: spec.Partial})
	}
	x.spec = marshal(stored)
	return x, nil
}

// conflict reports whether the collection has the same index already. It refuses another index with its name, or with
// its fields and options (https://www.mongodb.com/docs/manual/reference/method/db.collection.createIndex/).
func (c *collection) conflict(x *index) (same bool, _ error) {
	if have := c.index(x.name); have != nil {
		if !bytes.Equal(have.spec, x.spec) {
			return false, refuse(codeIndexSpecsConflict,
				"An existing index has the same name as the requested index: %s", x.name)
		}
		return true, nil
	}
	for _, have := range c.indexes {
		if slices.Equal(have.fields, x.fields) && have.unique == x.unique &&
			bytes.Equal(
				have.spec.Lookup("partialFilterExpression").Value,
				x.spec.Lookup("partialFilterExpression").Value,
			) {
			return false, refuse(codeIndexOptionsConflict, "Index already exists with a different name: %s", have.name)
		}
	}
	return false, nil
}

// build makes the entries of an index.
func (s *Server) build(d *database, c *collection, x *index) error {
	x.number = c.numbered
	v := &view{db: d, tree: d.tree.Clone()}
	docs, err := v.all(c)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		key, err := c.key(doc)
		if err != nil {
			return err
		}
		values, err := c.values(x, doc)
		if err != nil {
			return err
		}
		for _, value := range values {
			if _, taken := v.taken(value); x.unique && taken {
				return duplicate(d, c, x, doc)
			}
			v.tree.ReplaceOrInsert(item{key: value + key, to: key})
		}
	}
	s.time++
	c.changed, d.tree, d.changed = s.time, v.tree, s.time
	c.add(x)
	return nil
}

// all lists a collection's documents.
func (v *view) all(c *collection) ([]bson.Raw, error) {
	return v.find(c, &filter{op: opAnd}, []sortField{{path: "_id"}}, 0, 0)
}

func (s *Server) dropIndexes(c *command, _ *transaction) (bson.D, error) {
	var args struct {
		Collection string `bson:"dropIndexes"`
		Index      string `bson:"index"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	d, err := s.database(c.db)
	if err != nil {
		return nil, err
	}
	collection := d.collections[args.Collection]
	if collection == nil {
		return nil, refuse(codeNamespaceNotFound, "ns not found %s.%s", c.db, args.Collection)
	}
	x := collection.index(args.Index)
	if x == nil {
		return nil, refuse(codeIndexNotFound, "index not found with name [%s]", args.Index)
	}
	if x == collection.indexes[0] {
		return nil, refuse(codeInvalidOptions, "cannot drop _id index")
	}
	if err := unused(d, collection); err != nil {
		return nil, err
	}
	before := len(collection.indexes)
	s.time++
	collection.changed = s.time
	collection.indexes = slices.DeleteFunc(collection.indexes, func(have *index) bool { return have == x })
	d.tree, d.changed = without(d.tree, collection.prefix(x)), s.time
	return bson.D{{Key: "nIndexesWas", Value: int32(before)}}, nil
}

// without returns a tree without the keys that begin with a prefix.
func without(t *tree, prefix string) *tree {
	var gone []item
	t.AscendGreaterOrEqual(item{key: prefix}, func(i item) bool {
		if !strings.HasPrefix(i.key, prefix) {
			return false
		}
		gone = append(gone, i)
		return true
	})
	t = t.Clone()
	for _, i := range gone {
		t.Delete(i)
	}
	return t
}

func (s *Server) listIndexes(c *command, _ *transaction) (bson.D, error) {
	var args struct {
		Collection string   `bson:"listIndexes"`
		Cursor     bson.Raw `bson:"cursor"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	d, err := s.database(c.db)
	if err != nil {
		return nil, err
	}
	collection := d.collections[args.Collection]
	if collection == nil {
		return nil, refuse(codeNamespaceNotFound, "ns does not exist: %s.%s", c.db, args.Collection)
	}
	var specs []bson.Raw
	for _, x := range collection.indexes {
		specs = append(specs, x.spec)
	}
	return s.firstBatch(c.db+"."+args.Collection, specs, firstBatch, false), nil
}

func (s *Server) drop(c *command, _ *transaction) (bson.D, error) {
	var args struct {
		Collection string `bson:"drop"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	d, err := s.database(c.db)
	if err != nil {
		return nil, err
	}
	collection := d.collections[args.Collection]
	if collection == nil {
		return bson.D{}, nil // not an error since MongoDB 7.0
	}
	if err := unused(d, collection); err != nil {
		return nil, err
	}
	s.time++
	d.tree, d.changed = without(d.tree, collection.prefix(collection.indexes[0])[:4]), s.time
	delete(d.collections, args.Collection)
	return bson.D{
		{Key: "nIndexesWas", Value: int32(len(collection.indexes))},
		{Key: "ns", Value: c.db + "." + args.Collection},
	}, nil
}

func (s *Server) dropDatabase(c *command, _ *transaction) (bson.D, error) {
	d, err := s.database(c.db)
	if err != nil {
		return nil, err
	}
	for tx := range d.open {
		return nil, &heldError{tx}
	}
	s.time++
	delete(s.databases, c.db)
	return bson.D{{Key: "dropped", Value: c.db}}, nil
}
