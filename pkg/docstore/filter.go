package docstore

import (
	"fmt"
	"math"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Op is what a Filter does.
type Op int

// The operations. An index must serve each of them; the empty Filter is All.
const (
	OpAll      Op = iota // every document
	OpID                 // the id is one of IDs
	OpIn                 // the value, or one of the list, is one of Values
	OpRange              // From <= value < To; an unset bound is open. Single-value indexes only
	OpPrefix             // the text, or one of the list, starts with Values[0].Text
	OpAnd                // every one of Sub
	OpOr                 // any of Sub
	OpContains           // Values[0].Text is a part of the text. Single-value indexes only
)

// Filter selects documents by indexed values. Build it with the functions below.
type Filter struct {
	Op       Op
	Index    string
	IDs      []string
	Values   []Value
	From, To *Value
	Sub      []Filter
	Known    bool // see Known
	moving   bool // see Moving
}

// Known marks a part of an And that all documents meet that the other parts select, or a part of an Or that selects
// only what the others do: it changes nothing, but shows the way where documents are sorted by its index. Engines
// leave it out elsewhere.
func Known(f Filter) Filter {
	f.Known = true
	return f
}

// For is the filter without what is Known, but for what is about the index that documents are sorted by first.
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

// Moving marks ranges whose bounds follow the time: a page token is good for them at any other time, too.
func Moving(f Filter) Filter {
	f.moving = true
	return f
}

// steady is the filter without what moves.
func (f Filter) steady() Filter {
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

// Text is a text value; the empty one counts as absent.
func Text(s string) Value { return Value{Text: s} }

// Number is a number value.
func Number(n int64) Value { return Value{Num: n} }

// NoNumber is the absent number.
var NoNumber = Number(math.MinInt64)

// Moment is a time as a number value, absent for the zero time.
func Moment(t clock.Time) Value {
	if t.IsZero() {
		return NoNumber
	}
	return Number(t.Millis())
}

// Eq selects documents whose value, or one of whose list, is v.
func Eq(index string, v Value) Filter { return In(index, v) }

// In selects documents whose value, or one of whose list, is one of vs.
func In(index string, vs ...Value) Filter { return Filter{Op: OpIn, Index: index, Values: vs} }

// ID selects by id.
func ID(ids ...string) Filter { return Filter{Op: OpID, IDs: ids} }

// From selects values from v on.
func From(index string, v Value) Filter { return Filter{Op: OpRange, Index: index, From: &v} }

// Range selects values from from on and below to.
func Range(index string, from, to Value) Filter {
	return Filter{Op: OpRange, Index: index, From: &from, To: &to}
}

// Outside selects values below from, and those from to on.
func Outside(index string, from, to Value) Filter { return Or(Until(index, from), From(index, to)) }

// Above selects texts that follow s: where a walk along an index goes on.
func Above(index, s string) Filter { return From(index, Text(s+"\x00")) }

// Until selects values below v.
func Until(index string, v Value) Filter { return Filter{Op: OpRange, Index: index, To: &v} }

// Prefix selects texts that start with s. An empty s selects all documents.
func Prefix(index, s string) Filter {
	if s == "" {
		return Filter{}
	}
	return Filter{Op: OpPrefix, Index: index, Values: []Value{Text(s)}}
}

// Contains selects texts of which s is a part. No index leads there: engines test what the rest of an And selects, or else every entry
// of the index. See textindex.Containing. An empty s selects all documents.
func Contains(index, s string) Filter {
	if s == "" {
		return Filter{}
	}
	return Filter{Op: OpContains, Index: index, Values: []Value{Text(s)}}
}

// And selects what all filters select; no filters select all. Filters that select all are left out.
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

// Or selects what any filter selects; no filters select nothing.
func Or(filters ...Filter) Filter {
	if len(filters) == 1 {
		return filters[0]
	}
	return Filter{Op: OpOr, Sub: filters}
}

// check reports a filter or sort that no index serves: a programming error.
func (d *Def) check(f Filter, sort []Order) error {
	for _, o := range sort {
		if ix := d.Index(o.Index); ix == nil || ix.Many {
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
	if ix == nil || (ix.Many && (f.Op == OpRange || f.Op == OpContains)) || (ix.Number && (f.Op == OpPrefix || f.Op == OpContains)) {
		return fmt.Errorf("docstore: no index of %s serves the filter on %q", d.Name, f.Index)
	}
	return nil
}
