package replicaset

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The query operators that mongostore uses (https://www.mongodb.com/docs/manual/reference/operator/query/).
const (
	opEqual   = "$eq"
	opIn      = "$in"
	opGreater = "$gt"
	opFrom    = "$gte"
	opLess    = "$lt"
	opTo      = "$lte"
	opExists  = "$exists"
	opRegex   = "$regex"
	opElem    = "$elemMatch"
	opAnd     = "$and"
	opOr      = "$or"
)

// filter is a parsed query document.
type filter struct {
	op     string
	path   string
	values []string // encoded; exactly one for comparisons
	exists bool
	regex  *regexp.Regexp
	sub    []*filter // for and, or and elemMatch, where the paths are empty
}

func parseFilter(query bson.Raw) (*filter, error) {
	all := &filter{op: opAnd}
	members, err := query.Elements()
	if err != nil {
		return nil, refuse(codeFailedToParse, "%v", err)
	}
	for _, m := range members {
		var sub []*filter
		switch name := m.Key(); {
		case name == opAnd || name == opOr:
			branches, err := parseBranches(m.Value())
			if err != nil {
				return nil, err
			}
			sub = []*filter{{op: name, sub: branches}}
		case strings.HasPrefix(name, "$"):
			return nil, unsupported("query operator %s", name)
		default:
			if sub, err = parseConditions(name, m.Value()); err != nil {
				return nil, err
			}
		}
		all.sub = append(all.sub, sub...)
	}
	return all, nil
}

func parseBranches(v bson.RawValue) ([]*filter, error) {
	list, ok := v.ArrayOK()
	if !ok {
		return nil, refuse(codeBadValue, "$and/$or needs an array")
	}
	values, err := list.Values()
	if err != nil || len(values) == 0 {
		return nil, refuse(codeBadValue, "$and/$or/$nor must be a nonempty array")
	}
	branches := make([]*filter, len(values))
	for i, v := range values {
		doc, ok := v.DocumentOK()
		if !ok {
			return nil, refuse(codeBadValue, "$or/$and/$nor entries need to be full objects")
		}
		if branches[i], err = parseFilter(doc); err != nil {
			return nil, err
		}
	}
	return branches, nil
}

// parseConditions parses {path: value} and {path: {$op: value, …}}.
func parseConditions(path string, v bson.RawValue) ([]*filter, error) {
	doc, ok := v.DocumentOK()
	if !ok {
		f, err := parseCondition(path, opEqual, v)
		return []*filter{f}, err
	}
	members, err := doc.Elements()
	if err != nil {
		return nil, refuse(codeFailedToParse, "%v", err)
	}
	if len(members) == 0 || !strings.HasPrefix(members[0].Key(), "$") {
		return nil, unsupported("comparison of %s with a document", path)
	}
	all := make([]*filter, len(members))
	for i, m := range members {
		if all[i], err = parseCondition(path, m.Key(), m.Value()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func parseCondition(path, op string, v bson.RawValue) (f *filter, err error) {
	f = &filter{op: op, path: path}
	operands := []bson.RawValue{v}
	switch op {
	case opEqual, opGreater, opFrom, opLess, opTo:
	case opIn:
		list, ok := v.ArrayOK()
		if !ok {
			return nil, refuse(codeBadValue, "$in needs an array")
		}
		if operands, err = list.Values(); err != nil {
			return nil, refuse(codeFailedToParse, "%v", err)
		}
	case opExists:
		var ok bool
		if f.exists, ok = v.BooleanOK(); !ok || !f.exists {
			return nil, unsupported("$exists other than true")
		}
		return f, nil
	case opRegex:
		pattern, ok := v.StringValueOK()
		if !ok {
			return nil, unsupported("$regex other than a string")
		}
		if f.regex, err = regexp.Compile(pattern); err != nil {
			return nil, unsupported("pattern %q", pattern)
		}
		return f, nil
	case opElem:
		doc, ok := v.DocumentOK()
		if !ok {
			return nil, refuse(codeBadValue, "$elemMatch needs an Object")
		}
		f.sub, err = parseConditions("", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc})
		return f, err
	default:
		return nil, unsupported("query operator %s", op)
	}
	for _, v := range operands {
		if v.Type == bson.TypeNull && op != opEqual && op != opIn { // absent members are equal to null, too
			return nil, unsupported("comparison %s of %s with null", op, path)
		}
		encoded, err := encodeValue(v)
		if err != nil {
			return nil, err
		}
		f.values = append(f.values, encoded)
	}
	slices.Sort(f.values)
	f.values = slices.Compact(f.values)
	return f, nil
}

func (f *filter) matches(doc bson.Raw) (bool, error) {
	switch f.op {
	case opAnd:
		for _, sub := range f.sub {
			if ok, err := sub.matches(doc); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	case opOr:
		for _, sub := range f.sub {
			if ok, err := sub.matches(doc); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
	v, err := lookup(doc, f.path)
	if err != nil {
		return false, err
	}
	return f.holds(v)
}

// holds reports whether one value meets a condition. For a list any element may; the conditions of $elemMatch must all
// be met by one element.
func (f *filter) holds(v bson.RawValue) (bool, error) {
	if f.op == opExists {
		return v.Type != 0, nil
	}
	list, isList := v.ArrayOK()
	if f.op == opElem && !isList {
		return false, nil
	}
	if !isList {
		return f.holdsOne(v)
	}
	values, err := list.Values()
	if err != nil {
		return false, err
	}
	for _, element := range values {
		if ok, err := f.holdsElement(element); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (f *filter) holdsElement(v bson.RawValue) (bool, error) {
	if f.op != opElem {
		return f.holdsOne(v)
	}
	for _, sub := range f.sub {
		if ok, err := sub.holdsOne(v); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (f *filter) holdsOne(v bson.RawValue) (bool, error) {
	if f.op == opRegex {
		text, ok := v.StringValueOK()
		return ok && f.regex.MatchString(text), nil
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return false, unsupported("comparison of %s, a %s", f.path, v.Type)
	}
	var space [64]byte
	encoded, err := appendValue(space[:0], v)
	if err != nil {
		return false, err
	}
	if f.op == opEqual || f.op == opIn {
		_, found := slices.BinarySearchFunc(
			f.values,
			encoded,
			func(a string, b []byte) int { return strings.Compare(a, string(b)) },
		)
		return found, nil
	}
	if encoded[0] != f.values[0][0] {
		return false, nil // ranges contain values of one type only ("type bracketing")
	}
	switch order := bytes.Compare(encoded, []byte(f.values[0])); f.op {
	case opGreater:
		return order > 0, nil
	case opFrom:
		return order >= 0, nil
	case opLess:
		return order < 0, nil
	case opTo:
		return order <= 0, nil
	}
	return false, unsupported("comparison %s of an element", f.op)
}
