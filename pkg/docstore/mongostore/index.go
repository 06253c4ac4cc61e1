package mongostore

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// The engine's indexes are named for all that makes them what they are, so that one whose declaration changes gets another name, and is
// made anew. Indexes with other names are an operator's and are left alone.
const (
	orderPrefix  = "order."  // single values: equality, ranges, sorting
	listPrefix   = "list."   // lists
	facetPrefix  = "facet."  // facets, each with an order
	uniquePrefix = "unique." // uniqueness alone; the name goes on with uniqueName's form
	dueIndex     = "due"
)

func isOurs(name string) bool {
	return name == dueIndex || strings.HasPrefix(name, orderPrefix) || strings.HasPrefix(name, listPrefix) ||
		strings.HasPrefix(name, facetPrefix) || strings.HasPrefix(name, uniquePrefix)
}

// index is one index to be made.
type index struct {
	name    string
	keys    bson.D
	unique  bool
	partial bson.D // which documents are in it; nil is all
}

// indexes are those that serve a collection. The key is the last member of each, so that a walk along an index is in the order of
// ids among equals. Uniqueness has an index of its own, of present values only, since sorting needs the documents without one too.
func indexes(def *docstore.Def) []index {
	list := []index{{name: dueIndex, keys: ascending(fieldDue), partial: present(fieldDue)}}
	for i := range def.Indexes {
		d := &def.Indexes[i]
		prefix := orderPrefix
		if d.Many {
			prefix = listPrefix
		}
		field := entryField(d.Name)
		list = append(list, index{name: prefix + d.Name, keys: ascending(fieldTenant, field, fieldKey)})
		for _, order := range d.Orders {
			list = append(list, index{name: facetPrefix + d.Name + "." + order, keys: ascending(fieldTenant, field,
				entryField(order), fieldKey)})
		}
		if d.Unique {
			list = append(list, index{name: uniqueName(def, d), keys: ascending(fieldTenant, field), unique: true, partial: notAbsent(d)})
		}
	}
	return list
}

// uniqueName has the revision in it: a rebuild must not meet an index of the old values, among which a new one may be taken.
func uniqueName(def *docstore.Def, d *docstore.IndexDef) string {
	kind := "text"
	switch {
	case d.Many:
		kind = "list"
	case d.Number:
		kind = "number"
	}
	return fmt.Sprintf("%s%s.%s.%d", uniquePrefix, d.Name, kind, def.Revision)
}

func ascending(fields ...string) bson.D {
	keys := make(bson.D, len(fields))
	for i, field := range fields {
		keys[i] = bson.E{Key: field, Value: 1}
	}
	return keys
}

func present(field string) bson.D {
	return bson.D{{Key: field, Value: bson.D{{Key: "$exists", Value: true}}}}
}

// notAbsent selects the documents that have a value, by being above the one that stands for none. An empty list has no element above.
func notAbsent(d *docstore.IndexDef) bson.D {
	var absent any = ""
	if d.Number {
		absent = int64(math.MinInt64)
	}
	return bson.D{{Key: entryField(d.Name), Value: bson.D{{Key: "$gt", Value: absent}}}}
}

func (x *index) model() mongo.IndexModel {
	o := options.Index().SetName(x.name)
	if x.unique {
		o.SetUnique(true)
	}
	if x.partial != nil {
		o.SetPartialFilterExpression(x.partial)
	}
	return mongo.IndexModel{Keys: x.keys, Options: o}
}

// signature changes when the entries of stored documents must be made again.
func signature(def *docstore.Def) string {
	h := fnv.New64a()
	for i := range def.Indexes {
		d := &def.Indexes[i]
		fmt.Fprintf(h, "%s %t %t\n", d.Name, d.Many, d.Number)
	}
	return fmt.Sprintf("%d-%016x", def.Revision, h.Sum64())
}
