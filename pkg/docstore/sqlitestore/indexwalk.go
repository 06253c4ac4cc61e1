package sqlitestore

import (
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// indexWalk is a walk along an index that returns rows in the order of the query, with the conditions left to test on
// each row.
//
// SQLite's own planner does not choose the index: without statistics it takes "status = 1" for selective, and with
// statistics its choice changes as they age. INDEXED BY and NOT INDEXED fix the index, so that tests can check it.
type indexWalk struct {
	table  *table
	tenant string
	rest   *node // what is left to test on each row; nil means nothing
	needs  needs // the columns that rest reads

	index string
	// fixed is a leaf of the index's column: of one value if the order is by id alone; of any number of values if
	// SQLite sorts bare rows, or if the column is grouped by the key
	fixed     *node
	key       *column
	low, high *docstore.Value // bounds of the key
}

// planWalk plans to go along an index in order.
func planWalk(t *table, tenant string, filter *node, order *ordering) *indexWalk {
	p := &indexWalk{table: t, tenant: tenant, index: t.id.index, key: &t.id}
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
	ranged := take(func(n *node) bool {
		_, _, ok := n.interval()
		return ok && n.column == p.key
	})
	if ranged != nil {
		p.low, p.high, _ = ranged.interval()
	} else if len(order.keys) == 0 {
		p.fixed = take(func(n *node) bool {
			return n.op == isIn && len(n.values) == 1 && !n.column.many && n.column.order == nil &&
				n.column.slot >= 0
		})
		if p.fixed != nil {
			p.index = p.fixed.column.index
		}
	}
	if len(order.keys) == 1 {
		group := take(func(n *node) bool {
			return n.op == isIn && n.column.order == p.key && len(n.values) <= maxMerge
		})
		if group != nil {
			p.fixed, p.index = group, group.column.index
		}
	}
	if rest := and(parts); rest.op != isAll {
		p.rest = &rest
		p.needs = needsOf(t, &rest)
	}
	return p
}

// statement writes the query, without a limit.
func (p *indexWalk) statement(what string, order *ordering, after *docstore.Position) *statement {
	if p.merges() {
		return p.merged(what, order, after)
	}
	s := &statement{}
	s.add("SELECT %s FROM %s INDEXED BY %s WHERE tenant = %s", what, p.table.name, p.index, s.arg(p.tenant))
	if p.fixed != nil {
		s.add(" AND ")
		s.leaf(p.fixed)
	}
	low, high, after := p.bounds(order, after)
	if low != nil || high != nil {
		s.add(" AND ")
		s.between(p.key, low, high)
	}
	if after != nil {
		s.add(" AND ")
		s.after(order, after)
	}
	s.orderBy(order)
	return s
}

// grouped reports whether the walk is along the entries of some values of a grouped column.
func (p *indexWalk) grouped() bool {
	return p.key != nil && p.fixed != nil && p.fixed.column.order == p.key
}

// merges reports whether the walk consists of several that SQLite merges.
func (p *indexWalk) merges() bool { return p.grouped() && len(p.fixed.values) > 1 }

// maxMerge is how many walks SQLite merges in one statement.
const maxMerge = 500

// merged writes the query for several values of a grouped column: SQLite merges their walks.
func (p *indexWalk) merged(what string, order *ordering, after *docstore.Position) *statement {
	bounds := &statement{}
	tenant := bounds.arg(p.tenant)
	low, high, after := p.bounds(order, after)
	if low != nil || high != nil {
		bounds.add(" AND ")
		bounds.between(p.key, low, high)
	}
	if after != nil {
		bounds.add(" AND ")
		bounds.after(order, after)
	}
	s := &statement{args: bounds.args}
	for i, value := range p.fixed.values {
		if i > 0 {
			s.add(" UNION ALL ")
		}
		s.add("SELECT %s, %s FROM %s INDEXED BY %s WHERE tenant = %s AND %s = %s%s", what,
			strings.Join(order.fields(), ", "), p.table.name, p.index, tenant, p.fixed.column.field,
			s.arg(value.Text), bounds.String())
	}
	s.orderBy(order)
	return s
}

// bounds leaves one condition at each end of the walk: the range's bound, or the position if that is further. Given
// both, SQLite might start at the bound and step over all rows up to the position.
func (p *indexWalk) bounds(
	order *ordering, after *docstore.Position,
) (low, high *docstore.Value, rest *docstore.Position) {
	low, high = p.low, p.high
	if after == nil {
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
	fields  string // with a comma before each
	width   int
	columns []*column // keys in the order of fields, then lists, if any
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

// candidate returns an empty candidate, which needs.fill sets to one row after the other.
func (t *table) candidate() candidate {
	return candidate{texts: make([][]byte, len(t.keys)), nums: make([]int64, len(t.keys))}
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
