package sqlitestore

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// plannedQuery is a query with everything that follows from it before the file is read.
type plannedQuery struct {
	docstore.Find
	def    *docstore.Def
	tenant string
	table  *table
	filter node
	guided node // the filter with those Known parts that are about the index that orders the rows
	order  *ordering
	walk   *indexWalk
	// byIndexAlone are walks that find the rows by SQL alone, one after the other; nil if rows must be tested or sorted
	byIndexAlone []*indexWalk
	ids          []string // the ids of a filter by id alone, if rows are bare
	simple       bool     // see simplified
}

// planQuery makes all that follows from a query alone. It reads nothing from the file.
func (e *Engine) planQuery(def *docstore.Def, tenant string, find docstore.Find) (*plannedQuery, error) {
	t, err := e.table(def)
	if err != nil {
		return nil, err
	}
	filter, err := t.normalize(find.Filter.For())
	if err != nil {
		return nil, err
	}
	guided, err := t.normalize(find.Filter.For(find.Sort...))
	if err != nil {
		return nil, err
	}
	order, err := t.ordering(find.Sort)
	if err != nil {
		return nil, err
	}
	planned := &plannedQuery{Find: find, def: def, tenant: tenant, table: t, order: order}
	planned.plan(filter, guided)
	return planned, nil
}

// plan sets the filter and what follows from it.
func (a *plannedQuery) plan(filter, guided node) {
	a.filter, a.guided = filter, guided
	a.walk = planWalk(a.table, a.tenant, &guided, a.order)
	a.byIndexAlone, a.ids = nil, nil
	switch {
	case a.walk.rest == nil:
		a.byIndexAlone = []*indexWalk{a.walk}
	case !a.Bare || a.After != nil:
	case filter.op == isIn && filter.column == &a.table.id:
		a.ids = a.Find.Filter.IDs
	case filter.isLeaf() && !filter.column.many:
		a.byIndexAlone = []*indexWalk{{table: a.table, tenant: a.tenant, index: filter.column.index, fixed: &filter}}
	case filter.op == isOr && a.Offset == 0:
		a.byIndexAlone = a.ranges()
	}
}

// ranges plans one walk for each part of an "or" if all parts are disjoint ranges of the index that orders the rows.
func (a *plannedQuery) ranges() []*indexWalk {
	if len(a.order.keys) != 1 || a.order.desc[0] {
		return nil
	}
	key := a.order.keys[0]
	walks := make([]*indexWalk, len(a.filter.sub))
	for i := range a.filter.sub {
		if part := &a.filter.sub[i]; part.op != isBetween || part.column != key || part.low == nil || part.high == nil {
			return nil
		}
		walks[i] = planWalk(a.table, a.tenant, &a.filter.sub[i], a.order)
	}
	slices.SortFunc(walks, func(x, y *indexWalk) int { return key.compare(*x.low, *y.low) })
	for i := 1; i < len(walks); i++ {
		if key.compare(*walks[i-1].high, *walks[i].low) > 0 {
			return nil
		}
	}
	return walks
}

// simplified removes parts of a query's filter that, in this snapshot, select nothing or exclude nothing, such as parts
// about records whose Due time has come, which a task updates after a short while. Counters and indexes often serve the
// rest of the filter.
func (q *queries) simplified(ctx context.Context, planned *plannedQuery) (*plannedQuery, error) {
	if planned.simple {
		return planned, nil
	}
	simple := *planned
	simple.simple = true
	filter, changed, err := q.simplify(ctx, planned.table, planned.tenant, &planned.filter)
	if err != nil || !changed {
		return &simple, err
	}
	guided, _, err := q.simplify(ctx, planned.table, planned.tenant, &planned.guided)
	if err != nil {
		return nil, err
	}
	simple.plan(filter, guided)
	return &simple, nil
}

// simplify is simplified for one node. It tests ranges of numbers.
func (q *queries) simplify(ctx context.Context, t *table, tenant string, n *node) (_ node, changed bool, _ error) {
	empty := func(leaf *node) (bool, error) {
		n, err := q.probe(ctx, t, tenant, leaf, 1)
		return n == 0, err
	}
	if n.op == isBetween && n.column.number && n.low != nil && n.high != nil {
		none, err := empty(n)
		if none {
			return node{op: isNone}, true, err
		}
		return *n, false, err
	}
	if left := n.outside(); left != nil && left.column.number {
		none, err := empty(left)
		if none {
			return node{}, true, err
		}
		return *n, false, err
	}
	if n.op != isAnd && n.op != isOr {
		return *n, false, nil
	}
	parts := make([]node, len(n.sub))
	for i := range n.sub {
		part, other, err := q.simplify(ctx, t, tenant, &n.sub[i])
		if err != nil {
			return *n, false, err
		}
		parts[i], changed = part, changed || other
	}
	switch {
	case !changed:
		return *n, false, nil
	case n.op == isAnd:
		return and(parts), true, nil
	}
	return or(parts), true, nil
}
