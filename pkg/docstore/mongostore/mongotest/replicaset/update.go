package replicaset

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// change returns the document that replaces old; old is nil for an upsert that found none (inserting).
type change func(old bson.Raw, inserting bool) (bson.Raw, error)

// parseChange parses a replacement, or an update document of operators
// (https://www.mongodb.com/docs/manual/reference/operator/update/).
func parseChange(v bson.RawValue) (change, error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, unsupported("update by a pipeline")
	}
	members, err := doc.Elements()
	if err != nil {
		return nil, refuse(codeFailedToParse, "%v", err)
	}
	if len(members) == 0 || !strings.HasPrefix(members[0].Key(), "$") {
		return func(old bson.Raw, _ bool) (bson.Raw, error) { return replaced(old, doc) }, nil
	}
	type step struct {
		op, path string
		value    bson.RawValue
	}
	var steps []step
	for _, m := range members {
		switch m.Key() {
		case "$set", "$unset", "$inc", "$max", "$setOnInsert":
		default:
			return nil, unsupported("update operator %s", m.Key())
		}
		fields, ok := m.Value().DocumentOK()
		if !ok {
			return nil, refuse(codeFailedToParse, "Modifiers operate on fields")
		}
		list, err := fields.Elements()
		if err != nil {
			return nil, refuse(codeFailedToParse, "%v", err)
		}
		for _, f := range list {
			steps = append(steps, step{m.Key(), f.Key(), f.Value()})
		}
	}
	// "Starting in MongoDB 5.0, update operators process document fields with string-based names in lexicographic
	// order."
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Compare(a.path, b.path) })
	return func(old bson.Raw, inserting bool) (bson.Raw, error) {
		doc := old
		for _, s := range steps {
			if s.op == "$setOnInsert" && !inserting {
				continue
			}
			var err error
			doc, err = changed(
				doc,
				s.path,
				func(v bson.RawValue) (bson.RawValue, error) { return operate(s.op, v, s.value) },
			)
			if err != nil {
				return nil, err
			}
		}
		return doc, sameID(old, doc)
	}, nil
}

func operate(op string, old, operand bson.RawValue) (bson.RawValue, error) {
	switch op {
	case "$unset":
		return bson.RawValue{}, nil
	case "$max":
		if old.Type != 0 {
			a, err := encodeValue(old)
			if err != nil {
				return old, err
			}
			b, err := encodeValue(operand)
			if err != nil || a >= b {
				return old, err
			}
		}
		return operand, nil
	case "$inc":
		if old.Type == 0 {
			return operand, nil
		}
		a, aOK := old.AsInt64OK()
		b, bOK := operand.AsInt64OK()
		if !aOK || !bOK || old.Type == bson.TypeDouble || operand.Type == bson.TypeDouble {
			return old, unsupported("$inc of something other than integers")
		}
		if old.Type == bson.TypeInt32 && operand.Type == bson.TypeInt32 && int64(int32(a+b)) == a+b {
			return rawValue(int32(a + b)), nil
		}
		return rawValue(a + b), nil
	}
	return operand, nil // $set, $setOnInsert
}

func rawValue(v any) bson.RawValue {
	return marshal(bson.D{{Key: "v", Value: v}}).Lookup("v")
}

// changed returns doc with another value at a path. The zero value removes the member.
func changed(doc bson.Raw, path string, to func(bson.RawValue) (bson.RawValue, error)) (bson.Raw, error) {
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		return changedMember(doc, name, to)
	}
	return changedMember(doc, name, func(v bson.RawValue) (bson.RawValue, error) {
		inner, ok := v.DocumentOK()
		if !ok && v.Type != 0 {
			return v, unsupported("change of %s, which is not in a document", path)
		}
		if !ok {
			inner = marshal(bson.D{})
		}
		after, err := changed(inner, rest, to)
		return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: after}, err
	})
}

func changedMember(doc bson.Raw, name string, to func(bson.RawValue) (bson.RawValue, error)) (bson.Raw, error) {
	members, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	start, after := bsoncore.AppendDocumentStart(make([]byte, 0, len(doc)+32))
	add := func(v bson.RawValue) error {
		v, err := to(v)
		if v.Type != 0 {
			after = append(bsoncore.AppendHeader(after, bsoncore.Type(v.Type), name), v.Value...)
		}
		return err
	}
	present := false
	for _, m := range members {
		if m.Key() != name {
			after = append(after, m...)
			continue
		}
		present = true
		if err := add(m.Value()); err != nil {
			return nil, err
		}
	}
	if !present {
		if err := add(bson.RawValue{}); err != nil {
			return nil, err
		}
	}
	after, err = bsoncore.AppendDocumentEnd(after, start)
	return after, err
}

// replaced is a replacement with the _id of the replaced document as its first member.
func replaced(old, doc bson.Raw) (bson.Raw, error) {
	id := doc.Lookup("_id")
	if id.Type == 0 {
		id = old.Lookup("_id")
	}
	after, err := withID(doc, id)
	if err != nil {
		return nil, err
	}
	return after, sameID(old, after)
}

// withID is doc with _id as the first member.
func withID(doc bson.Raw, id bson.RawValue) (bson.Raw, error) {
	members, err := doc.Elements()
	if err != nil {
		return nil, refuse(codeFailedToParse, "%v", err)
	}
	if len(members) > 0 && members[0].Key() == "_id" {
		return doc, nil
	}
	if id.Type == 0 {
		id = rawValue(bson.NewObjectID())
	}
	d := bson.D{{Key: "_id", Value: id}}
	for _, m := range members {
		if m.Key() != "_id" {
			d = append(d, bson.E{Key: m.Key(), Value: m.Value()})
		}
	}
	return marshal(d), nil
}

func sameID(old, doc bson.Raw) error {
	if before := old.Lookup("_id"); before.Type != 0 && !before.Equal(doc.Lookup("_id")) {
		return refuse(
			codeImmutableField,
			"Performing an update on the path '_id' would modify the immutable field '_id'",
		)
	}
	return nil
}

// seed is the document that an upsert starts from: the members that the query requires to be equal to a value.
func seed(f *filter, query bson.Raw) (bson.Raw, error) {
	doc := marshal(bson.D{})
	for _, leaf := range f.sub {
		switch {
		case leaf.op == opOr:
			return nil, unsupported("upsert by an $or")
		case leaf.op == opAnd:
			return nil, unsupported("upsert by an $and")
		case leaf.op != opEqual:
			continue
		}
		value := query.Lookup(leaf.path)
		var err error
		doc, err = changed(doc, leaf.path, func(bson.RawValue) (bson.RawValue, error) { return value, nil })
		if err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// projected keeps the members that a projection names, and _id.
func projected(doc, projection bson.Raw) (bson.Raw, error) {
	fields, err := projection.Elements()
	if err != nil || len(fields) == 0 {
		return doc, err
	}
	keep := map[string][]string{"_id": nil}
	for _, f := range fields {
		if n, ok := f.Value().AsInt64OK(); !ok || n != 1 {
			return nil, unsupported("projection that removes members")
		}
		name, rest, nested := strings.Cut(f.Key(), ".")
		if !nested {
			keep[name] = nil
			continue
		}
		keep[name] = append(keep[name], rest)
	}
	return kept(doc, keep)
}

func kept(doc bson.Raw, keep map[string][]string) (bson.Raw, error) {
	members, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	d := bson.D{}
	for _, m := range members {
		paths, ok := keep[m.Key()]
		if !ok {
			continue
		}
		v := m.Value()
		if len(paths) > 0 {
			inner, ok := v.DocumentOK()
			if !ok {
				return nil, unsupported("projection of a part of a value that is not a document (%s)", m.Key())
			}
			below := map[string][]string{}
			for _, p := range paths {
				below[p] = nil // a name without dots: mongostore's paths have two parts
			}
			if inner, err = kept(inner, below); err != nil {
				return nil, err
			}
			v = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: inner}
		}
		d = append(d, bson.E{Key: m.Key(), Value: v})
	}
	return marshal(d), nil
}
