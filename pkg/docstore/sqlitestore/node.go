package sqlitestore

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// node is a filter in the few normal forms that the rest of the package handles: without empty or trivial parts, with
// at most one range for each column of an "and".
type node struct {
	op     op
	column *column
	values []docstore.Value // isIn: at least one, distinct; isContains: the text to find
	// isBetween: low <= value < high; nil is unbounded. A prefix is such a range, too.
	low  *docstore.Value
	high *docstore.Value
	sub  []node // isAnd, isOr: at least two
}

type op int

const (
	isAll op = iota
	isNone
	isIn
	isBetween
	isAnd
	isOr
	isContains
)

func (n *node) isLeaf() bool { return n.op == isIn || n.op == isBetween || n.op == isContains }

// isFacet reports whether a node selects by values of a facet.
func (n *node) isFacet() bool { return n.op == isIn && n.column.facet }

// isCounted reports whether a node selects by values whose documents are counted.
func (n *node) isCounted() bool { return n.op == isIn && n.column.counter != "" }

// outside returns the range that a node excludes, if there is one: the node selects what is below the range or above
// it.
func (n *node) outside() *node {
	if n.op != isOr || len(n.sub) != 2 {
		return nil
	}
	a, b := &n.sub[0], &n.sub[1]
	if a.op != isBetween || b.op != isBetween || a.column != b.column || a.column.many {
		return nil
	}
	if a.low != nil {
		a, b = b, a
	}
	if a.low != nil || a.high == nil || b.low == nil || b.high != nil {
		return nil
	}
	left := between(a.column, a.high, b.low)
	if left.op != isBetween {
		return nil
	}
	return &left
}

// normalize makes the node of a filter.
func (t *table) normalize(f docstore.Filter) (node, error) {
	switch f.Op {
	case docstore.OpAll:
		return node{}, nil
	case docstore.OpID:
		values := make([]docstore.Value, len(f.IDs))
		for i, id := range f.IDs {
			values[i] = docstore.Text(id)
		}
		return in(&t.id, values), nil
	case docstore.OpAnd, docstore.OpOr:
		sub := make([]node, len(f.Sub))
		for i := range f.Sub {
			var err error
			if sub[i], err = t.normalize(f.Sub[i]); err != nil {
				return node{}, err
			}
		}
		if f.Op == docstore.OpOr {
			return or(sub), nil
		}
		return and(sub), nil
	}
	c := t.byName[f.Index]
	if c == nil {
		return node{}, fmt.Errorf("sqlitestore: %s has no index %q", t.name, f.Index)
	}
	switch f.Op {
	case docstore.OpIn:
		return in(c, f.Values), nil
	case docstore.OpRange:
		return between(c, f.From, f.To), nil
	case docstore.OpPrefix:
		prefix := f.Values[0].Text
		if prefix == "" {
			return node{}, nil
		}
		return between(c, &f.Values[0], successor(prefix)), nil
	case docstore.OpContains:
		if f.Values[0].Text == "" {
			return node{}, nil
		}
		return node{op: isContains, column: c, values: f.Values}, nil
	}
	return node{}, fmt.Errorf("sqlitestore: unknown filter operation %d", f.Op)
}

func in(c *column, values []docstore.Value) node {
	values = slices.Clone(values)
	slices.SortFunc(values, c.compare)
	values = slices.Compact(values)
	if len(values) == 0 {
		return node{op: isNone}
	}
	return node{op: isIn, column: c, values: values}
}

func between(c *column, low, high *docstore.Value) node {
	switch {
	case low == nil && high == nil:
		return node{}
	case low != nil && high != nil && c.compare(*low, *high) >= 0:
		return node{op: isNone}
	}
	return node{op: isBetween, column: c, low: low, high: high}
}

// successor returns the least text that is greater than all texts with the prefix, nil if there is none. It need not be
// valid UTF-8.
func successor(prefix string) *docstore.Value {
	b := []byte(prefix)
	for len(b) > 0 && b[len(b)-1] == 0xff {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return nil
	}
	b[len(b)-1]++
	v := docstore.Text(string(b))
	return &v
}

func or(sub []node) node {
	var kept []node
	for _, n := range sub {
		switch n.op {
		case isAll:
			return node{}
		case isNone:
		case isOr:
			kept = append(kept, n.sub...)
		default:
			kept = append(kept, n)
		}
	}
	switch len(kept) {
	case 0:
		return node{op: isNone}
	case 1:
		return kept[0]
	}
	return node{op: isOr, sub: kept}
}

func and(sub []node) node {
	var kept []node
	add := func(n node) bool {
		if n.op == isBetween && !n.column.many {
			for i := range kept {
				if k := &kept[i]; k.op == isBetween && k.column == n.column {
					*k = between(k.column, higher(k.column, k.low, n.low), lower(k.column, k.high, n.high))
					return k.op != isNone
				}
			}
		}
		if n.op == isIn && !n.column.many {
			for i := range kept {
				if k := &kept[i]; k.op == isIn && k.column == n.column {
					*k = in(k.column, slices.DeleteFunc(slices.Clone(k.values),
						func(v docstore.Value) bool { return !slices.Contains(n.values, v) }))
					return k.op != isNone
				}
			}
		}
		kept = append(kept, n)
		return n.op != isNone
	}
	for _, n := range sub {
		parts := []node{n}
		switch n.op {
		case isAll:
			continue
		case isAnd:
			parts = n.sub
		}
		for _, p := range parts {
			if !add(p) {
				return node{op: isNone}
			}
		}
	}
	switch len(kept) {
	case 0:
		return node{}
	case 1:
		return kept[0]
	}
	return node{op: isAnd, sub: kept}
}

func higher(c *column, a, b *docstore.Value) *docstore.Value {
	if a == nil || (b != nil && c.compare(*b, *a) > 0) {
		return b
	}
	return a
}

func lower(c *column, a, b *docstore.Value) *docstore.Value {
	if a == nil || (b != nil && c.compare(*b, *a) < 0) {
		return b
	}
	return a
}

func (c *column) compare(a, b docstore.Value) int {
	if c.number {
		return cmp.Compare(a.Num, b.Num)
	}
	return strings.Compare(a.Text, b.Text)
}

// interval returns the range of values that a leaf on a single-value column selects, if it is one range.
func (n *node) interval() (low, high *docstore.Value, ok bool) {
	switch {
	case n.column == nil || n.column.many:
		return nil, nil, false
	case n.op == isBetween:
		return n.low, n.high, true
	case n.op == isIn && len(n.values) == 1:
		v := n.values[0]
		if !n.column.number {
			next := docstore.Text(v.Text + "\x00")
			return &v, &next, true
		}
		if v.Num == math.MaxInt64 {
			return &v, nil, true
		}
		next := docstore.Number(v.Num + 1)
		return &v, &next, true
	}
	return nil, nil, false
}

// candidate is a row being tested. Its bytes belong to SQLite and are valid for this row only.
type candidate struct {
	id    []byte
	texts [][]byte // by slot; set where needed
	nums  []int64  // by slot; set where needed
	lists []byte
}

// matches reports whether a node selects a row. It must agree with the SQL of a leaf.
func (n *node) matches(row *candidate) bool {
	switch n.op {
	case isAll:
		return true
	case isAnd:
		for i := range n.sub {
			if !n.sub[i].matches(row) {
				return false
			}
		}
		return true
	case isOr:
		for i := range n.sub {
			if n.sub[i].matches(row) {
				return true
			}
		}
		return false
	case isNone:
		return false
	}
	switch c := n.column; {
	case c.many:
		return values(row.lists, c.slot, func(b []byte) bool { return !n.accepts(b, 0) })
	case c.slot < 0:
		return n.accepts(row.id, 0)
	case c.number:
		return n.accepts(nil, row.nums[c.slot])
	default:
		return n.accepts(row.texts[c.slot], 0)
	}
}

// accepts reports whether a leaf selects one value.
func (n *node) accepts(text []byte, num int64) bool {
	order := func(v docstore.Value) int {
		if n.column.number {
			return cmp.Compare(v.Num, num)
		}
		return compareText(v.Text, text)
	}
	switch n.op {
	case isContains:
		return bytes.Contains(text, []byte(n.values[0].Text))
	case isIn:
		_, found := slices.BinarySearchFunc(n.values, struct{}{},
			func(v docstore.Value, _ struct{}) int { return order(v) })
		return found
	}
	return (n.low == nil || order(*n.low) <= 0) && (n.high == nil || order(*n.high) > 0)
}

func compareText(a string, b []byte) int {
	return -bytes.Compare(b, []byte(a)) // the conversion does not allocate, because Compare does not keep its arguments
}

// uses calls each for every column of the leaves.
func (n *node) uses(each func(*column)) {
	if n.column != nil {
		each(n.column)
	}
	for i := range n.sub {
		n.sub[i].uses(each)
	}
}
