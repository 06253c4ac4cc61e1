package sqlitestore

import (
	"context"
	"math"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// A query goes one of two ways, when nothing is known yet.
//
// Walk: along the index of the first sort key, which gives the order for nothing, testing each row until the page is full. It is
// right when the filter selects much, or is itself a range of that index.
//
// Drive: take the rows that one part of the filter selects, from that part's index, test them for the rest, and sort. It is right
// when that part selects little: fewer rows than the walk would look at.
//
// Where neither will do, or all must be counted, the set of rows is made from index entries alone, and sorted or looked for along a walk. What was
// found is kept: see matches.go.
//
// SQLite's own planner is not asked to choose: without statistics it takes "status = 1" for selective, and with them it
// changes its mind when they age. INDEXED BY and NOT INDEXED fix the way, so that it is tested, not hoped for.
type plan struct {
	table  *table
	tenant string
	rest   *node // what is left to be tested on each row; nil = nothing
	needs  needs // the columns for that

	// Of a walk.
	index     string
	facet     *node // a leaf of a facet, each of whose values has a part of the index of its own
	fixed     *node // a leaf of the index's column: of one value, when the order is by id alone; of any, when bare rows are to be sorted
	key       *column
	low, high *docstore.Value // of key

	list *node // or a leaf of a list and one value, whose rows come in no order that is asked for

	// Of a drive.
	drivers []*node // leaves; the rows that any of them selects
}

// worthwhile is up to how many candidates driving costs less than walking along so many. A walk for n of m matches
// among all looks at n·all/m rows, a drive at m: even at √(n·all).
func worthwhile(n int, all int64) int64 {
	return int64(math.Sqrt(float64(min(int64(n), all)) * float64(all)))
}

// extent is among how many rows a walk looks for those that a filter selects.
func (q *queries) extent(ctx context.Context, t *table, tenant string, n *node) (int64, error) {
	if n.isFacet() {
		return q.facetTotal(ctx, t, tenant, n)
	}
	if n.op == isAnd {
		for i := range n.sub {
			if n.sub[i].isFacet() {
				return q.facetTotal(ctx, t, tenant, &n.sub[i])
			}
		}
	}
	return q.sight.all, nil
}

// drivers chooses the leaves that select the least: a leaf itself, the best part of an "and", all parts of an "or". nil if that is more than limit.
func (q *queries) drivers(ctx context.Context, t *table, tenant string, n *node, limit int64) (leaves []*node, size int64, err error) {
	switch n.op {
	case isIn, isBetween:
		switch {
		case n.op == isIn && n.column.unique && (n.column.many || n.column.slot < 0):
			size = int64(len(n.values))
		case n.isFacet():
			size, err = q.facetTotal(ctx, t, tenant, n)
		default:
			size, err = q.probe(ctx, t, tenant, n, limit+1)
		}
		if err != nil {
			return nil, 0, err
		}
		if size > limit {
			return nil, size, nil
		}
		return []*node{n}, size, nil
	case isAnd:
		size = limit + 1
		for i := range n.sub {
			some, k, err := q.drivers(ctx, t, tenant, &n.sub[i], size-1)
			if err != nil {
				return nil, 0, err
			}
			if some != nil {
				if leaves, size = some, k; size == 0 {
					break
				}
			}
		}
		return leaves, size, nil
	case isOr:
		if len(n.sub) > maxDrivers {
			return nil, limit + 1, nil
		}
		for i := range n.sub {
			some, k, err := q.drivers(ctx, t, tenant, &n.sub[i], limit-size)
			if err != nil || some == nil {
				return nil, limit + 1, err
			}
			leaves, size = append(leaves, some...), size+k
		}
		if len(leaves) > maxDrivers {
			return nil, limit + 1, nil
		}
		return leaves, size, nil
	}
	return nil, limit + 1, nil
}

const maxDrivers = 100 // SQLite takes 500 parts of a compound SELECT

// probe counts a leaf's index entries, but no more than limit.
func (q *queries) probe(ctx context.Context, t *table, tenant string, n *node, limit int64) (int64, error) {
	s := &statement{}
	s.add("SELECT count(*) FROM (")
	s.entries(t, n, "1", s.arg(tenant))
	s.limit(limit, 0)
	s.add(")")
	return number(ctx, q.conn, s.String(), s.args...)
}

// walk plans to go along an index in order.
func walk(t *table, tenant string, filter *node, order *ordering) *plan {
	p := &plan{table: t, tenant: tenant, index: t.id.index, key: &t.id}
	if len(order.keys) > 0 {
		p.key = order.keys[0]
		p.index = p.key.index
	}
	parts := []node{*filter}
	if filter.op == isAnd {
		parts = slices.Clone(filter.sub)
	}
	take := func(fits func(*node) bool) *node {
		at := slices.IndexFunc(parts, func(n node) bool { return fits(&n) })
		if at < 0 {
			return nil
		}
		part := parts[at]
		parts = slices.Delete(slices.Clone(parts), at, at+1)
		return &part
	}
	if p.facet = take(func(n *node) bool { return n.isFacet() && n.column.orders[p.key] != "" }); p.facet != nil {
		p.index = p.facet.column.orders[p.key]
	}
	ranged := take(func(n *node) bool {
		_, _, ok := n.interval()
		return ok && n.column == p.key
	})
	if ranged != nil {
		p.low, p.high, _ = ranged.interval()
	} else if len(order.keys) == 0 && p.facet == nil {
		p.fixed = take(func(n *node) bool {
			return n.op == isIn && len(n.values) == 1 && !n.column.many &&
				n.column.slot >= 0
		})
		if p.fixed != nil {
			p.index = p.fixed.column.index
		}
	}
	if rest := and(parts); rest.op != isAll {
		p.rest = &rest
		p.needs = needsOf(t, &rest)
	}
	return p
}

// drive plans to test the rows that the leaves select. The whole filter is tested again: the leaves may be parts of an "or".
func drive(t *table, tenant string, leaves []*node, filter *node) *plan {
	return &plan{table: t, tenant: tenant, rest: filter, needs: needsOf(t, filter), drivers: leaves}
}

// statement writes the query, without a limit. What is driven comes from its start and in no order, as a walk does
// where order is nil. A walk that merges needs the id and the order's keys among what it reads.
func (p *plan) statement(what string, order *ordering, after *docstore.Position) *statement {
	s := &statement{}
	tenant := s.arg(p.tenant)
	if p.drivers != nil {
		s.add("SELECT %s FROM %s NOT INDEXED WHERE rid IN (", what, p.table.name)
		for i, n := range p.drivers {
			if i > 0 {
				s.add(" UNION ALL ")
			}
			s.entries(p.table, n, "rid", tenant)
		}
		s.add(") AND tenant = %s", tenant)
		return s
	}
	if p.list != nil {
		s.add("SELECT %s FROM (SELECT rid AS entry FROM %s WHERE tenant = %s AND ", what, p.list.column.index, tenant)
		s.leaf(p.list)
		s.add(") CROSS JOIN %s NOT INDEXED WHERE rid = entry AND tenant = %s", p.table.name, tenant)
		return s
	}
	arms := 1
	if p.facet != nil {
		arms = len(p.facet.values)
	}
	low, high, after := p.bounds(order, after)
	for i := range arms { // SQLite merges what each part of the index gives in order
		if i > 0 {
			s.add(" UNION ALL ")
		}
		s.add("SELECT %s FROM %s INDEXED BY %s WHERE tenant = %s", what, p.table.name, p.index, tenant)
		if p.facet != nil {
			s.add(" AND %s = %s", p.facet.column.field, s.arg(p.facet.values[i].Text))
		}
		if p.fixed != nil {
			s.add(" AND ")
			s.leaf(p.fixed)
		}
		if low != nil || high != nil {
			s.add(" AND ")
			s.between(p.key, low, high)
		}
		if after != nil {
			s.add(" AND ")
			s.after(order, after)
		}
	}
	if order != nil {
		s.orderBy(order)
	}
	return s
}

// merges says whether rows come from several parts of an index. Then what is read of them must be in it, or it is
// read of those that are skipped too.
func (p *plan) merges() bool { return p.facet != nil && len(p.facet.values) > 1 }

// bounds leaves one condition at each end of the walk: given the range's bound and the position, SQLite might start at the first and
// step over all rows up to the second.
func (p *plan) bounds(order *ordering, after *docstore.Position) (low, high *docstore.Value, rest *docstore.Position) {
	low, high = p.low, p.high
	if order == nil || after == nil {
		return low, high, nil
	}
	at := docstore.Text(after.ID)
	if len(order.keys) > 0 {
		at = after.Values[0]
	}
	if order.desc[0] {
		if high != nil && p.key.compare(at, *high) >= 0 {
			return low, high, nil
		}
		return low, nil, after
	}
	if low != nil && p.key.compare(at, *low) < 0 {
		return low, high, nil
	}
	return nil, high, after
}

// needs are the columns that a test reads.
type needs struct {
	fields  string // each after a comma
	width   int
	columns []*column // keys, in the order of fields; then lists, if any
	lists   bool
}

func needsOf(t *table, n *node) needs {
	var needed needs
	n.uses(func(c *column) {
		switch {
		case c.many:
			needed.lists = true
		case c.slot >= 0 && !slices.Contains(needed.columns, c):
			needed.columns = append(needed.columns, c)
		}
	})
	for _, c := range needed.columns {
		needed.fields += ", " + c.field
	}
	if needed.width = len(needed.columns); needed.lists {
		needed.fields += ", lists"
		needed.width++
	}
	return needed
}

// candidate is what a row is read into, to be tested.
func (p *plan) candidate() candidate {
	return candidate{texts: make([][]byte, len(p.table.keys)), nums: make([]int64, len(p.table.keys))}
}

// fill reads the columns of a row that begins with rid and id.
func (d *needs) fill(row *candidate, c Columns) {
	row.id = c.Bytes(1)
	for i, k := range d.columns {
		if k.number {
			row.nums[k.slot] = c.Int(2 + i)
		} else {
			row.texts[k.slot] = c.Bytes(2 + i)
		}
	}
	if d.lists {
		row.lists = c.Bytes(1 + d.width)
	}
}
