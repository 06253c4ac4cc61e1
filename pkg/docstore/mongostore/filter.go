package mongostore

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// entryField is the path of an index's entry in a document.
func entryField(index string) string { return fieldEntries + "." + index }

// selection is the query document for the documents that f selects in a tenant. Every branch of an "or" names the
// tenant, so that each branch can use an index, which starts with the tenant.
func selection(def *docstore.Def, tenant string, f docstore.Filter) bson.D {
	switch f.Op {
	case docstore.OpAll:
		return bson.D{{Key: fieldKey, Value: keysOf(tenant)}}
	case docstore.OpOr:
		branches := make(bson.A, len(f.Sub))
		for i, sub := range f.Sub {
			branches[i] = selection(def, tenant, sub)
		}
		if len(branches) == 0 {
			return bson.D{{Key: fieldKey, Value: bson.D{{Key: "$in", Value: bson.A{}}}}} // selects nothing
		}
		return bson.D{{Key: "$or", Value: branches}}
	}
	return append(bson.D{{Key: fieldTenant, Value: tenant}}, condition(def, tenant, f)...)
}

// condition is selection without the tenant.
func condition(def *docstore.Def, tenant string, f docstore.Filter) bson.D {
	switch f.Op {
	case docstore.OpID:
		return bson.D{{Key: fieldKey, Value: oneOf(keys(tenant, f.IDs))}}
	case docstore.OpAnd:
		all := make(bson.A, len(f.Sub)) // under $and, because two conditions may be about one field
		for i, sub := range f.Sub {
			if sub.Op == docstore.OpAll || sub.Op == docstore.OpOr {
				all[i] = selection(def, tenant, sub)
			} else {
				all[i] = condition(def, tenant, sub)
			}
		}
		if len(all) == 0 {
			return bson.D{}
		}
		return bson.D{{Key: "$and", Value: all}}
	}
	d, field := def.Index(f.Index), entryField(f.Index)
	switch f.Op {
	case docstore.OpRange:
		bounds := bson.D{}
		if f.From != nil {
			bounds = append(bounds, bson.E{Key: "$gte", Value: scalar(d, *f.From)})
		}
		if f.To != nil {
			bounds = append(bounds, bson.E{Key: "$lt", Value: scalar(d, *f.To)})
		}
		if len(bounds) == 0 {
			return bson.D{}
		}
		return bson.D{{Key: field, Value: bounds}}
	case docstore.OpPrefix:
		prefix := f.Values[0].Text
		bounds := bson.D{{Key: "$gte", Value: prefix}}
		if end := prefixEnd(prefix); end != "" {
			bounds = append(bounds, bson.E{Key: "$lt", Value: end})
		}
		if d.Many { // one element must be within both bounds; without $elemMatch different elements could meet them
			bounds = bson.D{{Key: "$elemMatch", Value: bounds}}
		}
		return bson.D{{Key: field, Value: bounds}}
	case docstore.OpContains:
		// a BSON pattern cannot contain NUL
		pattern := strings.ReplaceAll(regexp.QuoteMeta(f.Values[0].Text), "\x00", `\x00`)
		return bson.D{{Key: field, Value: bson.D{{Key: "$regex", Value: pattern}}}}
	default: // OpIn; for a list, MongoDB compares the elements
		values := make(bson.A, len(f.Values))
		for i, v := range f.Values {
			values[i] = scalar(d, v)
		}
		return bson.D{{Key: field, Value: oneOf(values)}}
	}
}

func oneOf(values bson.A) any {
	if len(values) == 1 {
		return values[0]
	}
	return bson.D{{Key: "$in", Value: values}}
}

// keysOf selects a tenant's documents by their keys: "<tenant>/" ≤ key < "<tenant>0", because '0' is the byte after
// '/'.
func keysOf(tenant string) bson.D {
	prefix := keyPrefix(tenant)
	return bson.D{{Key: "$gte", Value: prefix}, {Key: "$lt", Value: prefixEnd(prefix)}}
}

// prefixEnd returns the least text, in the order of UTF-8 bytes, that is greater than all texts with the prefix; "" if
// there is none. It is valid UTF-8 if prefix is.
func prefixEnd(prefix string) string {
	for prefix != "" {
		r, size := utf8.DecodeLastRuneInString(prefix)
		rest := prefix[:len(prefix)-size]
		switch {
		case r == utf8.RuneError && size == 1: // invalid UTF-8
			if last := prefix[len(rest)]; last < 0xff {
				return rest + string([]byte{last + 1})
			}
		case r == 0xd7ff: // next are the surrogates, which UTF-8 does not have
			return rest + "\ue000"
		case r < utf8.MaxRune:
			return rest + string(r+1)
		}
		prefix = rest
	}
	return ""
}

// sorting is the sort document for an order. The key, which is in the order of ids within a tenant, is always its last
// member.
func sorting(order []docstore.Order) bson.D {
	sort, direction := bson.D{}, 1
	seen := map[string]bool{}
	for _, o := range order {
		direction = 1
		if o.Desc {
			direction = -1
		}
		if !seen[o.Index] { // a field can be named only once, and the second time would change nothing
			sort = append(sort, bson.E{Key: entryField(o.Index), Value: direction})
		}
		seen[o.Index] = true
	}
	return append(sort, bson.E{Key: fieldKey, Value: direction})
}

// after is the query document for the documents that find's filter selects after find's position, or for all that it
// selects if there is no position. The "or" is at the top and each branch is complete, so that the server can walk an
// index range for each branch and merge them in order.
func after(def *docstore.Def, tenant string, find docstore.Find) bson.D {
	selected := selection(def, tenant, find.Filter)
	if find.Filter.Op == docstore.OpAll && len(find.Sort) > 0 {
		selected = bson.D{{Key: fieldTenant, Value: tenant}} // so that the sort's index is used, not that of keys
	}
	if find.After == nil {
		return selected
	}
	var branches bson.A
	var same bson.D // the values of earlier sort keys
	past := "$gt"
	for i, o := range find.Sort {
		past = "$gt"
		if o.Desc {
			past = "$lt"
		}
		value := scalar(def.Index(o.Index), find.After.Values[i])
		beyond := bson.E{Key: entryField(o.Index), Value: bson.D{{Key: past, Value: value}}}
		branches = append(branches, both(selected, append(same[:len(same):len(same)], beyond)))
		same = append(same, bson.E{Key: entryField(o.Index), Value: value})
	}
	last := bson.E{Key: fieldKey, Value: bson.D{{Key: past, Value: key(tenant, find.After.ID)}}}
	branches = append(branches, both(selected, append(same, last)))
	if len(branches) == 1 {
		return branches[0].(bson.D)
	}
	return bson.D{{Key: "$or", Value: branches}}
}

func both(a, b bson.D) bson.D {
	return bson.D{{Key: "$and", Value: bson.A{a, b}}}
}
