package sqlitestore

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// What a filter selects, and how many, costs what there is to be counted; page after page of a search would pay it again. So an engine
// keeps what it found, with the generations of all indexes that it depends on, for as long as these stay the same.
//
// Why what is kept is never old: by generations' promise the entries of an index are a function of its generation, and a reader uses and keeps
// matches only for generations that it knows its snapshot to show. So what it is given is what it would find in its own
// snapshot, no matter who found it when, and each row id is of a row that is there. And a caller whose write was answered finds it: the write's commit has ended, so
// any later snapshot has it, and whatever was kept before it has another generation.
//
// The age of matches is the sum of their generations. Each reader has seen all of them stand still at one moment, and none ever gets less, so the
// later reader sees each at least as great as the earlier does; equal sums then mean that all are equal.

// matches are what a filter selects. They never change.
type matches struct {
	age    uint64
	total  int64
	rids   []int64      // sorted, or in the order of a sort; nil if there are too many
	walked atomic.Int64 // rows that were looked at since, for want of an order
	places *places      // of an order, where nothing else is kept
}

func (m *matches) complete() bool { return int64(len(m.rids)) == m.total }

func (m *matches) has(rid int64) bool {
	_, found := slices.BinarySearch(m.rids, rid)
	return found
}

// What is kept under one filter.
const (
	asSet   = "s" // the row ids, sorted
	asTotal = "t" // the total alone
	asBound = "b" // up to how many there were counted, and there are more
	asPlace = "p" // and what ordering.kind says: places in the order
	// or what ordering.kind says: the row ids in order
)

const (
	maxKept   = 16 << 20 // bytes of an engine's matches
	maxRIDs   = maxKept / 8 / 8
	leastKept = 10 // what took fewer rows or entries is found as fast as it is looked up

	maxRecurring = 64 // values of a filter
)

type matchesKey struct {
	scope
	filter string // and what is kept of it
}

// memory is an engine's matches.
type memory struct {
	generations *generations
	entries     *otter.Cache[matchesKey, *matches]
}

func newMemory(g *generations) *memory {
	return &memory{generations: g, entries: otter.Must(&otter.Options[matchesKey, *matches]{
		MaximumWeight: maxKept,
		Weigher: func(k matchesKey, m *matches) uint32 {
			const rest, position = 200, 150 // about what an entry takes beside, and a place
			if m.places != nil {
				return uint32(rest + len(k.filter) + maxPositions*position)
			}
			return uint32(rest + len(k.filter) + 8*len(m.rids))
		},
		Executor: func(task func()) { task() }, // no goroutines that outlive the engine
	})}
}

// sight is what a reader knows of the state that its snapshot shows.
type sight struct {
	scope scope
	all   int64    // documents
	ages  []uint64 // of the table's indexes, by place; empty if nothing may be used or kept
}

const unsettled = math.MaxUint64

// look takes the snapshot: nothing may have been read on the connection before. In a transaction, which sees what is not committed,
// it only counts.
func (q *queries) look(ctx context.Context, t *table, def *docstore.Def, tenant string) (err error) {
	s := &q.sight
	if q.memory == nil {
		s.all, err = q.total(ctx, def, tenant)
		return err
	}
	if s.scope != everything {
		return nil // Count after find
	}
	s.scope = scope{def.Name, tenant}
	g := q.memory.generations
	first := g.first(s.scope)
	s.ages = make([]uint64, t.places)
	for place := range s.ages {
		n := g.at(first, place)
		ended := n.ended.Load() // before begun, so that equal numbers mean that they were equal now
		if s.ages[place] = n.begun.Load(); s.ages[place] != ended {
			s.ages[place] = unsettled
		}
	}
	if s.all, err = q.total(ctx, def, tenant); err != nil {
		return err
	}
	for place := range s.ages {
		if g.at(first, place).begun.Load() != s.ages[place] {
			s.ages[place] = unsettled
		}
	}
	return nil
}

// age is of what a filter selects, in an order or none.
func (s *sight) age(n *node, order *ordering) (age uint64, settled bool) {
	settled = len(s.ages) > 0
	add := func(c *column) {
		if settled = settled && s.ages[c.place] != unsettled; settled {
			age += s.ages[c.place]
		}
	}
	n.uses(add)
	if order != nil {
		for _, c := range order.keys {
			add(c)
		}
	}
	return age, settled
}

// recall gives what was kept of a filter, if it is good in this snapshot; else nil.
func (q *queries) recall(n *node, kind string, order *ordering) *matches {
	age, ok := q.sight.age(n, order)
	if !ok || !n.recurs() {
		return nil
	}
	m, ok := q.memory.entries.GetIfPresent(q.matchesKey(n, kind))
	if !ok || m.age != age {
		return nil
	}
	return m
}

// keep keeps what was found with so many rows or index entries looked at.
func (q *queries) keep(n *node, kind string, order *ordering, total int64, rids []int64, cost int64) *matches {
	m := &matches{total: total, rids: rids}
	var settled bool
	if m.age, settled = q.sight.age(n, order); !settled || cost < leastKept || !n.recurs() {
		return m
	}
	key := q.matchesKey(n, kind)
	if len(rids) > maxRIDs {
		q.memory.entries.Set(key, &matches{age: m.age, total: total})
	} else {
		q.memory.entries.Set(key, m)
	}
	return m
}

// places are positions in the order of what a filter selects, by the number of rows up to them. So a page far on in a
// list is found from the nearest one that an earlier query noted.
type places struct {
	sync.Mutex
	by map[int]docstore.Position
}

const maxPositions = 500 // in one order

// places gives those that are known of an order in this snapshot, nil if they cannot be.
func (q *queries) places(n *node, order *ordering) *places {
	kind := asPlace + order.kind()
	if m := q.recall(n, kind, order); m != nil {
		return m.places
	}
	age, settled := q.sight.age(n, order)
	if !settled || !n.recurs() {
		return nil
	}
	m := &matches{age: age, places: &places{by: map[int]docstore.Position{}}}
	q.memory.entries.Set(q.matchesKey(n, kind), m)
	return m.places
}

// before gives the last known place up to an offset, and what is left to be skipped.
func (p *places) before(offset int) (*docstore.Position, int) {
	if p == nil {
		return nil, offset
	}
	p.Lock()
	defer p.Unlock()
	for at := offset / far * far; at > 0; at -= far {
		if position, ok := p.by[at]; ok {
			return &position, offset - at
		}
	}
	return nil, offset
}

func (p *places) note(at int, position docstore.Position) {
	p.Lock()
	defer p.Unlock()
	if len(p.by) < maxPositions {
		p.by[at] = position
	}
}

func (q *queries) matchesKey(n *node, kind string) matchesKey {
	return matchesKey{q.sight.scope, string(n.text(append(make([]byte, 0, 128), kind...)))}
}

// recurs says whether the same filter is likely to be asked for again. Ranges of numbers are ranges of time, and their bounds often now; but
// those that only ask whether there is a number recur.
func (n *node) recurs() bool {
	passing := func(v *docstore.Value) bool { return v != nil && v.Num > docstore.NoNumber.Num+1 }
	switch n.op {
	case isIn:
		return len(n.values) <= maxRecurring
	case isBetween:
		return !n.column.number || !passing(n.low) && !passing(n.high)
	}
	return !slices.ContainsFunc(n.sub, func(part node) bool { return !part.recurs() })
}

// text appends a text that filters have in common only if they select the same.
func (n *node) text(b []byte) []byte {
	b = append(b, "*-=<&|~"[n.op])
	value := func(v docstore.Value) {
		if n.column.number {
			b = binary.BigEndian.AppendUint64(b, uint64(v.Num))
			return
		}
		b = append(binary.AppendUvarint(b, uint64(len(v.Text))), v.Text...)
	}
	switch n.op {
	case isIn, isContains:
		b = append(append(b, n.column.index...), ' ')
		b = binary.AppendUvarint(b, uint64(len(n.values)))
		for _, v := range n.values {
			value(v)
		}
	case isBetween:
		b = append(append(b, n.column.index...), ' ')
		for _, bound := range []*docstore.Value{n.low, n.high} {
			if bound == nil {
				b = append(b, '-')
				continue
			}
			b = append(b, '+')
			value(*bound)
		}
	case isAnd, isOr:
		b = binary.AppendUvarint(b, uint64(len(n.sub)))
		parts := make([]string, len(n.sub)) // in any order they select the same
		for i := range n.sub {
			parts[i] = string(n.sub[i].text(nil))
		}
		slices.Sort(parts)
		for _, part := range parts {
			b = append(b, part...)
		}
	}
	return b
}

// kind names an order.
func (o *ordering) kind() string {
	var b strings.Builder
	for i, down := range o.desc {
		if i < len(o.keys) {
			b.WriteString(o.keys[i].index)
		}
		b.WriteString(map[bool]string{true: ">", false: "<"}[down])
	}
	return b.String()
}
