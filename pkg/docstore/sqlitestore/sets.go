package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// The rows that a filter selects are found as a set of row ids, from postings and index entries alone as long as those
// are fewer than reading the rows would justify: reading a row costs as much as about forty index entries.

const (
	lookup      = 40     // cost of reading a row, in index entries
	perPosting  = 30     // cost of reading a row of postings, in index entries
	perFacet    = 20     // documents in a facet's postings that cost as much as one index entry
	maxEstimate = 20_000 // at most so many index entries are counted to estimate the cost of a leaf
	maxPostings = 1000   // at most so many rows of postings are counted
)

// set finds the rows that a filter selects: all of them, or, if there are more than limit, some number above limit.
func (q *queries) set(ctx context.Context, t *table, tenant string, n *node, limit int64) (*set, error) {
	rows := newSet()
	var err error
	switch {
	case n.op == isAnd:
		rows, err = q.intersection(ctx, t, tenant, n)
	case n.op == isOr:
		for i := range n.sub {
			if err = q.unite(ctx, t, tenant, &n.sub[i], limit, rows); err != nil {
				break
			}
		}
	case n.op == isAll:
		err = q.entries(ctx, t, tenant, nil, limit, rows)
	case n.op != isNone:
		err = q.unite(ctx, t, tenant, n, limit, rows)
	}
	return rows, ignore(err, errEnough)
}

// unite adds the rows that a part selects to a set. It returns errEnough when the set has more than limit.
func (q *queries) unite(ctx context.Context, t *table, tenant string, n *node, limit int64, rows *set) error {
	if !n.isLeaf() {
		part, err := q.set(ctx, t, tenant, n, limit)
		if err != nil {
			return err
		}
		for _, rid := range part.rids() {
			rows.add(rid)
		}
		return rows.bound(limit)
	}
	ends := []node{*n}
	postings := n
	switch {
	case n.column.postings == "" || n.column.span > 0 && n.op != isBetween:
		postings = nil
	case n.column.span > 0:
		postings, ends = n.inside()
	default:
		ends = nil
	}
	if postings != nil {
		if err := q.postings(ctx, tenant, postings, limit, rows); err != nil {
			return err
		}
	}
	for i := range ends {
		if err := q.entries(ctx, t, tenant, &ends[i], limit, rows); err != nil {
			return err
		}
	}
	return nil
}

// entries adds the rows of the index entries that a leaf selects. A nil leaf selects all.
func (q *queries) entries(ctx context.Context, t *table, tenant string, n *node, limit int64, rows *set) error {
	s := &statement{}
	if n == nil {
		s.add("SELECT rid FROM %s INDEXED BY %s WHERE tenant = %s", t.name, t.id.index, s.arg(tenant))
	} else {
		s.entries(t, n, "rid", s.arg(tenant))
	}
	return q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		rows.add(c.Int(0))
		return rows.bound(limit)
	})
}

// postings adds the rows in a leaf's postings.
func (q *queries) postings(ctx context.Context, tenant string, n *node, limit int64, rows *set) error {
	return q.eachPosting(ctx, tenant, n, func(first int64, more []byte) error {
		rows.addPostings(first, more)
		return rows.bound(limit)
	})
}

// eachPosting calls each with the rows of a leaf's postings.
func (q *queries) eachPosting(ctx context.Context, tenant string, n *node,
	each func(first int64, more []byte) error) error {
	s := &statement{}
	s.postings(n, "first, more", s.arg(tenant))
	return q.conn.Query(ctx, s.String(), s.args, func(c Columns) error { return each(c.Int(0), c.Bytes(1)) })
}

// setWithin finds the rows that a filter selects. It may leave out rows that are not in the given set.
func (q *queries) setWithin(ctx context.Context, t *table, tenant string, n *node, rows *set) (*set, error) {
	if !n.isLeaf() || n.column.postings == "" || n.column.span > 0 {
		return q.set(ctx, t, tenant, n, math.MaxInt64)
	}
	both := newSet()
	err := q.eachPosting(ctx, tenant, n, func(first int64, more []byte) error {
		rows.common(first, more, both.add)
		return nil
	})
	return both, err
}

// part is one condition of an "and".
type part struct {
	*node
	without bool // set is what the condition excludes, because that is smaller
	cost    int64
}

// intersection finds the rows that all parts of an "and" select: it combines the sets of parts that cost little, and
// tests each row for the others.
func (q *queries) intersection(ctx context.Context, t *table, tenant string, n *node) (*set, error) {
	parts, err := q.parts(ctx, t, tenant, n)
	if err != nil {
		return nil, err
	}
	begin := parts[0].node
	if parts[0].without {
		begin = &node{} // selects all
	} else {
		parts = parts[1:]
	}
	rows, err := q.set(ctx, t, tenant, begin, math.MaxInt64)
	for ; err == nil && len(parts) > 0 && rows.size > 0; parts = parts[1:] {
		p := &parts[0]
		if lookup*rows.size <= p.cost {
			return q.passing(ctx, t, rows, n)
		}
		var other *set
		if other, err = q.setWithin(ctx, t, tenant, p.node, rows); err != nil {
			break
		}
		if p.without {
			rows.subtract(other)
		} else {
			rows.intersect(other)
		}
	}
	return rows, err
}

// parts are the conditions of an "and", cheapest first. Conditions that are found by what they exclude come last.
func (q *queries) parts(ctx context.Context, t *table, tenant string, n *node) ([]part, error) {
	all, err := q.total(ctx, t.def, tenant)
	if err != nil {
		return nil, err
	}
	parts := make([]part, len(n.sub))
	positive := 0 // number of parts that are not found by what they exclude
	for i := range parts {
		if left := n.sub[i].outside(); left != nil {
			parts[i] = part{node: left, without: true}
		} else {
			parts[i].node = &n.sub[i]
			positive++
		}
	}
	for i := range parts {
		p := &parts[i]
		if p.isFacet() && positive > 1 {
			if p.node, p.without, err = q.fewerOf(ctx, t, tenant, p.node, all); err != nil {
				return nil, err
			}
			if p.without {
				positive--
			}
		}
		if p.cost, err = q.cost(ctx, t, tenant, p.node, all); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		switch {
		case a.without == b.without:
			return cmp.Compare(a.cost, b.cost)
		case a.without:
			return 1
		}
		return -1
	})
	return parts, nil
}

// fewerOf returns n, or the facet's other values if fewer documents have those; others then is true.
func (q *queries) fewerOf(ctx context.Context, t *table, tenant string, n *node,
	all int64) (_ *node, others bool, _ error) {
	total, err := q.valuesTotal(ctx, t, tenant, n)
	if err != nil || total <= all/2 {
		return n, false, err
	}
	values, err := q.facetValues(ctx, t, tenant, n.column)
	if err != nil {
		return nil, false, err
	}
	rest := in(n.column, slices.DeleteFunc(values, func(v docstore.Value) bool { return slices.Contains(n.values, v) }))
	return &rest, true, nil
}

// cost estimates what it costs to find a filter's rows, in index entries.
func (q *queries) cost(ctx context.Context, t *table, tenant string, n *node, all int64) (int64, error) {
	if n.op == isAll || n.op == isNone {
		return 0, nil
	}
	if !n.isLeaf() {
		var costs []int64
		total := int64(0)
		for i := range n.sub {
			cost, err := q.cost(ctx, t, tenant, &n.sub[i], all)
			if err != nil {
				return 0, err
			}
			costs = append(costs, cost)
			total += cost
		}
		if n.op == isAnd {
			return slices.Min(costs), nil
		}
		return total, nil
	}
	switch c := n.column; {
	case n.op == isContains:
		return max(lookup*all, maxEstimate), nil
	case n.op == isIn && (c.slot < 0 || c.many && c.unique):
		return int64(len(n.values)), nil
	case c.span > 0 && n.op == isBetween:
		inside, ends := n.inside()
		total := int64(0)
		if inside != nil {
			rows, err := q.probePostings(ctx, tenant, inside, maxPostings)
			if err != nil {
				return 0, err
			}
			total = perPosting * rows
		}
		for i := range ends {
			entries, err := q.probe(ctx, t, tenant, &ends[i], maxEstimate)
			if err != nil {
				return 0, err
			}
			total += entries
		}
		return total, nil
	case n.isFacet():
		total, err := q.valuesTotal(ctx, t, tenant, n)
		return total / perFacet, err
	case c.postings != "" && c.span == 0:
		rows, err := q.probePostings(ctx, tenant, n, maxPostings)
		return perPosting * rows, err
	}
	entries, err := q.probe(ctx, t, tenant, n, maxEstimate)
	if entries == maxEstimate {
		entries = max(all, maxEstimate) // counting stopped: assume all documents
	}
	return entries, err
}

// probe counts a leaf's index entries, up to limit.
func (q *queries) probe(ctx context.Context, t *table, tenant string, n *node, limit int64) (int64, error) {
	s := &statement{}
	s.add("SELECT count(*) FROM (")
	s.entries(t, n, "1", s.arg(tenant))
	s.limit(limit, 0)
	s.add(")")
	return number(ctx, q.conn, s.String(), s.args...)
}

// probePostings counts rows of postings, up to a limit.
func (q *queries) probePostings(ctx context.Context, tenant string, n *node, limit int64) (int64, error) {
	s := &statement{}
	s.add("SELECT count(*) FROM (")
	s.postings(n, "1", s.arg(tenant))
	s.limit(limit, 0)
	s.add(")")
	return number(ctx, q.conn, s.String(), s.args...)
}

// passing returns the rows of a set that a filter selects. It reads each row.
func (q *queries) passing(ctx context.Context, t *table, rows *set, n *node) (*set, error) {
	passed := newSet()
	needs := needsOf(t, n)
	row := t.candidate()
	err := q.rows(ctx, t, rows.rids(), "rid, id"+needs.fields, func(c Columns) error {
		if needs.fill(&row, c); n.matches(&row) {
			passed.add(c.Int(0))
		}
		return nil
	})
	return passed, err
}

// rows reads columns of rows, in no particular order.
func (q *queries) rows(ctx context.Context, t *table, rids []int64, columns string, each func(Columns) error) error {
	values := make([]any, 0, maxIDs)
	for chunk := range slices.Chunk(rids, maxIDs) {
		values = values[:0]
		for _, rid := range chunk {
			values = append(values, rid)
		}
		s := &statement{}
		s.add("SELECT %s FROM %s NOT INDEXED WHERE ", columns, t.name)
		s.oneOf("rid", values)
		if err := q.conn.Query(ctx, s.String(), s.args, each); err != nil {
			return err
		}
	}
	return nil
}

var errEnough = errors.New("sqlitestore: enough rows")
