package sqlitestore

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
)

func (q *queries) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter,
	exactTo int64) (docstore.Total, error) {
	planned, err := q.engine.planQuery(def, tenant, docstore.Find{Filter: filter})
	if err != nil {
		return docstore.Total{}, err
	}
	if planned, err = q.simplified(ctx, planned); err != nil {
		return docstore.Total{}, err
	}
	return q.count(ctx, planned.table, tenant, &planned.filter, exactTo)
}

// count returns the number of documents that a filter selects, exact up to exactTo. It reads counters if there are some
// for the filter; otherwise it counts the rows.
func (q *queries) count(ctx context.Context, t *table, tenant string, n *node, exactTo int64) (docstore.Total, error) {
	limit := int64(math.MaxInt64)
	if exactTo > 0 {
		limit = exactTo + 1
	}
	switch {
	case n.op == isNone:
		return docstore.Total{}, nil
	case n.op == isAll:
		total, err := q.total(ctx, t.def, tenant)
		return docstore.Total{N: total}, err
	case n.isCounted():
		total, err := q.valuesTotal(ctx, t, tenant, n)
		return docstore.Total{N: total}, err
	}
	text := fmt.Sprintf("count %d %s", exactTo, n.text(nil))
	found, err := q.result(ctx, t, tenant, text, func() (result, error) {
		total, err := q.countRows(ctx, t, tenant, n, limit)
		return result{total: total}, err
	})
	return found.total, err
}

// countRows counts the rows that a filter selects, up to limit.
func (q *queries) countRows(ctx context.Context, t *table, tenant string, n *node,
	limit int64) (docstore.Total, error) {
	if n.isLeaf() && !n.column.many {
		total, err := q.probe(ctx, t, tenant, n, limit)
		return docstore.UpTo(limit-1, total), err
	}
	if group, within := n.groupWithin(); group != nil {
		total, err := q.countGroup(ctx, t, tenant, group, within, limit)
		return docstore.UpTo(limit-1, total), err
	}
	if facet, few, without := n.nearFacet(); facet != nil {
		total, ok, err := q.countNear(ctx, t, tenant, facet, few, without)
		if ok || err != nil {
			return docstore.Total{N: total}, err
		}
	}
	rows, err := q.set(ctx, t, tenant, n, limit-1)
	if err != nil {
		return docstore.Total{}, err
	}
	return docstore.UpTo(limit-1, rows.size), nil
}

// groupWithin splits an "and" of values of a grouped column and a range of its order. It returns nil for other filters.
func (n *node) groupWithin() (group, within *node) {
	if n.op != isAnd || len(n.sub) != 2 {
		return nil, nil
	}
	for i := range n.sub {
		group, within = &n.sub[i], &n.sub[1-i]
		if _, _, ranged := within.interval(); ranged && group.op == isIn && group.column.order == within.column {
			return group, within
		}
	}
	return nil, nil
}

// countGroup counts the index entries of a group within a range, up to limit.
func (q *queries) countGroup(ctx context.Context, t *table, tenant string, group, within *node,
	limit int64) (int64, error) {
	s := &statement{}
	s.add("SELECT count(*) FROM (")
	s.entries(t, group, "1", s.arg(tenant))
	s.add(" AND ")
	s.leaf(within)
	s.limit(limit, 0)
	s.add(")")
	return number(ctx, q.conn, s.String(), s.args...)
}

// nearFacet splits an "or" into values of a facet and the rest, and an "and" of a facet's values and everything outside
// a range into these values and the range. It returns nil for other filters.
func (n *node) nearFacet() (facet, few *node, without bool) {
	at := slices.IndexFunc(n.sub, func(n node) bool { return n.isFacet() })
	if at < 0 {
		return nil, nil, false
	}
	rest := slices.Delete(slices.Clone(n.sub), at, at+1)
	switch {
	case n.op == isOr:
		others := or(rest)
		return &n.sub[at], &others, false
	case len(rest) == 1 && rest[0].outside() != nil:
		return &n.sub[at], rest[0].outside(), true
	}
	return nil, nil, false
}

const maxNear = 1000 // at most so many rows are read to correct a facet's counters

// countNear counts the documents with values of a facet, plus or minus few other rows, by the facet's counters. ok is
// false if the rows are more than maxNear.
func (q *queries) countNear(ctx context.Context, t *table, tenant string, facet, few *node,
	without bool) (total int64, ok bool, err error) {
	rows, err := q.set(ctx, t, tenant, few, maxNear)
	if err != nil || rows.size > maxNear {
		return 0, false, err
	}
	both, err := q.passing(ctx, t, rows, facet)
	if err != nil {
		return 0, false, err
	}
	if total, err = q.valuesTotal(ctx, t, tenant, facet); without {
		return total - both.size, true, err
	}
	return total + rows.size - both.size, true, err
}

// valuesTotal returns how many documents have one of the values of a counted index, from the counters that every
// transaction updates.
func (q *queries) valuesTotal(ctx context.Context, t *table, tenant string, n *node) (int64, error) {
	s := &statement{}
	s.add("SELECT coalesce(sum(n), 0) FROM facet_counters WHERE collection = %s AND facet = %s AND tenant = %s AND ",
		s.arg(t.def.Name), s.arg(n.column.counter), s.arg(tenant))
	values := make([]any, len(n.values))
	for i, v := range n.values {
		values[i] = v.Text
	}
	s.oneOf("value", values)
	total, err := number(ctx, q.conn, s.String(), s.args...)
	if err != nil {
		return 0, err
	}
	for _, v := range n.values {
		total += q.counts[counter{scope{t.def.Name, tenant}, n.column.counter, v.Text}]
	}
	return total, nil
}

// facetValues returns all values of a facet that documents have, and possibly others.
func (q *queries) facetValues(ctx context.Context, t *table, tenant string,
	facet *column) (values []docstore.Value, err error) {
	err = q.conn.Query(ctx, "SELECT value FROM facet_counters WHERE collection = ?1 AND facet = ?2 AND tenant = ?3",
		[]any{t.def.Name, facet.counter, tenant}, func(c Columns) error {
			values = append(values, facet.value(c, 0))
			return nil
		})
	for of := range q.counts {
		if of.scope == (scope{t.def.Name, tenant}) && of.index == facet.counter {
			values = append(values, docstore.Text(of.value))
		}
	}
	return values, err
}

// total is the number of a tenant's documents, from the counter that every transaction updates.
func (q *queries) total(ctx context.Context, def *docstore.Def, tenant string) (int64, error) {
	n, err := number(ctx, q.conn, "SELECT n FROM counters WHERE collection = ?1 AND tenant = ?2", def.Name, tenant)
	return n + q.counts[counter{scope: scope{def.Name, tenant}}], err
}
