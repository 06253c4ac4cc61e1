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

// The name of an index of the engine is made from its whole declaration: an index whose declaration changes gets
// another name and is built again. Indexes with other names belong to operators and are left alone.
const (
	orderPrefix  = "order."  // for single values: equality, ranges, sorting
	listPrefix   = "list."   // for lists
	facetPrefix  = "facet."  // for facets, one for each order
	groupPrefix  = "group."  // for grouped values
	uniquePrefix = "unique." // for uniqueness only; uniqueName adds the rest
	dueIndex     = "due"
)

func isOurs(name string) bool {
	return name == dueIndex || strings.HasPrefix(name, orderPrefix) || strings.HasPrefix(name, listPrefix) ||
		strings.HasPrefix(name, facetPrefix) || strings.HasPrefix(name, groupPrefix) ||
		strings.HasPrefix(name, uniquePrefix)
}

// index is one index to be built.
type index struct {
	name    string
	keys    bson.D
	unique  bool
	partial bson.D // selects the documents that it covers; nil means all
}

// indexes are the indexes for a collection. The key is the last member of each, so that documents with equal values
// come in the order of ids. Uniqueness has an index of its own that covers present values only, because sorting needs
// the documents without a value, too.
func indexes(def *docstore.Def) []index {
	list := []index{{name: dueIndex, keys: ascending(fieldDue), partial: present(fieldDue)}}
	for i := range def.Indexes {
		d := &def.Indexes[i]
		prefix := orderPrefix
		if d.Many {
			prefix = listPrefix
		}
		field := entryField(d.Name)
		if d.GroupedBy != "" {
			list = append(list, index{name: groupPrefix + d.Name + "." + d.GroupedBy,
				keys: ascending(fieldTenant, field, entryField(d.GroupedBy), fieldKey)})
			continue
		}
		list = append(list, index{name: prefix + d.Name, keys: ascending(fieldTenant, field, fieldKey)})
		for _, order := range d.Orders {
			list = append(list, index{name: facetPrefix + d.Name + "." + order, keys: ascending(fieldTenant, field,
				entryField(order), fieldKey)})
		}
		if d.Unique {
			list = append(list, index{name: uniqueName(def, d), keys: ascending(fieldTenant, field), unique: true,
				partial: notAbsent(d)})
		}
	}
	return list
}

// uniqueName contains the revision: a rebuild must not meet an index of the old values, in which a new value may be
// taken.
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

// notAbsent selects the documents that have a value: it is greater than the value that stands for absence. An empty
// list has no such element.
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
