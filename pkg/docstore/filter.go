package docstore

import (
	"fmt"
	"math"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Op is the kind of a Filter.
type Op int

// The operations. An index must serve each of them. The zero Filter selects all documents.
const (
	OpAll      Op = iota // every document
	OpID                 // the id is in IDs
	OpIn                 // the value, or one of the list, is in Values
	OpRange              // From <= value < To; an unset bound is open; only for single-value indexes
	OpPrefix             // the text, or one of the list, starts with Values[0].Text
	OpAnd                // every filter of Sub
	OpOr                 // any filter of Sub
	OpContains           // the text contains Values[0].Text; only for single-value indexes
)

// Filter selects documents by indexed values. Build it with the functions below.
type Filter struct {
	Op       Op
	Index    string
	IDs      []string
	Values   []Value
	From, To *Value
	Sub      []Filter
	Known    bool   // see Known
	moving   bool   // see Moving
	from     string // see FollowingFrom
}

// Known marks a redundant part: of an And, one that is true for every document that the other parts select; of an Or,
// one that selects only documents that the other parts select, too. It does not change the result. An engine uses it to
// search in the index that documents are sorted by, and leaves it out of all other queries.
func Known(f Filter) Filter {
	f.Known = true
	return f
}

// For returns the filter without the Known parts, except those about the index that the documents are sorted by first.
func (f Filter) For(sort ...Order) Filter {
	if f.Op != OpAnd && f.Op != OpOr {
		return f
	}
	var sub []Filter
	for _, part := range f.Sub {
		if !part.Known || len(sort) > 0 && sort[0].Index == part.Index {
			sub = append(sub, part.For(sort...))
		}
	}
	if f.Op == OpAnd {
		return And(sub...)
	}
	return Or(sub...)
}

// TimeBound marks a filter whose bounds change with time, such as "due before now". A page token remains valid when the
// bounds have moved.
func TimeBound(f Filter) Filter {
	f.moving = true
	return f
}

// FollowingFrom marks a filter whose values follow from source and from stored data, such as the types that a pattern
// selects. A page token remains valid as long as source is the same.
func FollowingFrom(source string, f Filter) Filter {
	f.from = source
	return f
}

// steady is the filter without the bounds and values that may change from page to page.
func (f Filter) steady() Filter {
	if f.from != "" {
		return Filter{Op: f.Op, Index: f.Index, Values: []Value{Text(f.from)}}
	}
	if f.moving {
		f.From, f.To = nil, nil
	}
	sub := make([]Filter, len(f.Sub))
	for i := range f.Sub {
		part := f.Sub[i]
		part.moving = part.moving || f.moving
		sub[i] = part.steady()
	}
	f.Sub = sub
	return f
}

// Text is a text value. The empty text counts as absent.
func Text(s string) Value { return Value{Text: s} }

// Number is a number value.
func Number(n int64) Value { return Value{Num: n} }

// NoNumber is the absent number.
var NoNumber = Number(math.MinInt64)

// Moment is a time as a number value. The zero time is absent.
func Moment(t clock.Time) Value {
	if t.IsZero() {
		return NoNumber
	}
	return Number(t.Millis())
}

// Eq selects documents whose value is v, or whose list has v.
func Eq(index string, v Value) Filter { return In(index, v) }

// EqOrAll selects documents whose text is text; an empty text selects all documents. It is for the optional parameters
// of lists.
func EqOrAll(index, text string) Filter {
	if text == "" {
		return Filter{}
	}
	return Eq(index, Text(text))
}

// In selects documents whose value is in vs, or whose list has one of vs.
func In(index string, vs ...Value) Filter { return Filter{Op: OpIn, Index: index, Values: vs} }

// ID selects documents by id.
func ID(ids ...string) Filter { return Filter{Op: OpID, IDs: ids} }

// IDOrAll selects documents by id; without ids it selects all documents. It is for the optional parameters of lists.
func IDOrAll(ids ...string) Filter {
	if len(ids) == 0 {
		return Filter{}
	}
	return ID(ids...)
}

// From selects values that are at least v.
func From(index string, v Value) Filter { return Filter{Op: OpRange, Index: index, From: &v} }

// Range selects values that are at least from and less than to.
func Range(index string, from, to Value) Filter {
	return Filter{Op: OpRange, Index: index, From: &from, To: &to}
}

// Outside selects values that are less than from, or at least to.
func Outside(index string, from, to Value) Filter { return Or(Until(index, from), From(index, to)) }

// Above selects texts greater than s. Code that goes through an index uses it to continue after s.
func Above(index, s string) Filter { return From(index, Text(s+"\x00")) }

// Until selects values less than v.
func Until(index string, v Value) Filter { return Filter{Op: OpRange, Index: index, To: &v} }

// Prefix selects texts that start with s. An empty s selects all documents.
func Prefix(index, s string) Filter {
	if s == "" {
		return Filter{}
	}
	return Filter{Op: OpPrefix, Index: index, Values: []Value{Text(s)}}
}

// Contains selects texts that contain s. No index serves it directly: engines test the documents that the rest of an
// And selects or, without one, every entry of the index. See textindex.Containing. An empty s selects all documents.
func Contains(index, s string) Filter {
	if s == "" {
		return Filter{}
	}
	return Filter{Op: OpContains, Index: index, Values: []Value{Text(s)}}
}

// And selects the documents that all filters select; without filters, all documents. It leaves out filters that select
// all documents.
func And(filters ...Filter) Filter {
	var sub []Filter
	for _, f := range filters {
		if f.Op != OpAll {
			sub = append(sub, f)
		}
	}
	switch len(sub) {
	case 0:
		return Filter{}
	case 1:
		return sub[0]
	}
	return Filter{Op: OpAnd, Sub: sub}
}

// Or selects the documents that any filter selects; without filters, none.
func Or(filters ...Filter) Filter {
	if len(filters) == 1 {
		return filters[0]
	}
	return Filter{Op: OpOr, Sub: filters}
}

// check returns an error if no index serves the filter or the sort, which is a programming error.
func (d *Def) check(f Filter, sort []Order) error {
	for _, o := range sort {
		if ix := d.Index(o.Index); ix == nil || !ix.sorts() {
			return fmt.Errorf("docstore: %s cannot be sorted by %q", d.Name, o.Index)
		}
	}
	switch f.Op {
	case OpAll, OpID:
		return nil
	case OpAnd, OpOr:
		for _, s := range f.Sub {
			if err := d.check(s, nil); err != nil {
				return err
			}
		}
		return nil
	}
	ix := d.Index(f.Index)
	if ix == nil || (ix.Many && (f.Op == OpRange || f.Op == OpContains)) ||
		(ix.Number && (f.Op == OpPrefix || f.Op == OpContains)) {
		return fmt.Errorf("docstore: no index of %s serves the filter on %q", d.Name, f.Index)
	}
	return nil
}
