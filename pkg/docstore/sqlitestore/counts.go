package sqlitestore

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
)

func (q *queries) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter,
	most int64) (docstore.Total, error) {
	asked, err := q.engine.inquire(def, tenant, docstore.Find{Filter: filter})
	if err != nil {
		return docstore.Total{}, err
	}
	if err := q.look(ctx, asked.table, def, tenant); err != nil { // before anything is read
		return docstore.Total{}, err
	}
	if asked, err = q.simplified(ctx, asked); err != nil {
		return docstore.Total{}, err
	}
	return q.count(ctx, asked.table, tenant, &asked.filter, most)
}

// count counts what a filter selects, exactly up to most. It knows the counters and, of ranges and lists, the index
// entries; else it must test rows, or combine sets of them.
func (q *queries) count(ctx context.Context, t *table, tenant string, n *node, most int64) (docstore.Total, error) {
	switch {
	case n.op == isNone:
		return docstore.Total{}, nil
	case n.op == isAll:
		return docstore.Total{N: q.sight.all}, nil
	case n.isFacet():
		total, err := q.facetTotal(ctx, t, tenant, n)
		return docstore.Total{N: total}, err
	}
	byID, err := t.ordering(nil)
	if err != nil {
		return docstore.Total{}, err
	}
	for _, kind := range []string{asSet, asTotal, byID.kind()} {
		if m := q.recall(n, kind, nil); m != nil {
			return docstore.Total{N: m.total}, nil
		}
	}
	if m := q.recall(n, asBound, nil); m != nil && m.total == most {
		return docstore.Total{N: most, More: true}, nil
	}
	total, err := q.countAnew(ctx, t, tenant, n, most)
	if err == nil && total.More {
		q.keep(n, asBound, nil, total.N, nil, total.N)
	}
	return total, err
}

func (q *queries) countAnew(ctx context.Context, t *table, tenant string, n *node, most int64) (docstore.Total, error) {
	if parts := branches(n); len(parts) > 1 {
		total, err := q.countBranches(ctx, t, tenant, parts, most)
		if !errors.Is(err, errFar) {
			return total, err
		}
	} else if n.op == isAnd {
		total, err := q.countAnd(ctx, t, tenant, n, most)
		if !errors.Is(err, errFar) {
			return total, err
		}
	} else if total, ok, err := q.countEntries(ctx, t, tenant, n, most); ok || err != nil {
		return total, err
	}
	m, err := q.set(ctx, t, tenant, n, nil)
	if err != nil {
		return docstore.Total{}, err
	}
	return docstore.UpTo(most, m.total), nil
}

// facetTotal is how many documents have one of some values of a facet, from the counters that every transaction keeps.
func (q *queries) facetTotal(ctx context.Context, t *table, tenant string, n *node) (int64, error) {
	total := int64(0)
	for _, v := range n.values {
		of := counter{scope{t.def.Name, tenant}, n.column.facet, v.Text}
		have, err := number(ctx, q.conn,
			"SELECT n FROM facet_counters WHERE collection = ?1 AND facet = ?2 AND tenant = ?3 AND value = ?4",
			of.collection, of.facet, of.tenant, of.value)
		if err != nil {
			return 0, err
		}
		total += have + q.counts[of]
	}
	return total, nil
}

// total is the number of a tenant's documents, from the counter that every transaction keeps.
func (q *queries) total(ctx context.Context, def *docstore.Def, tenant string) (int64, error) {
	n, err := number(ctx, q.conn, "SELECT n FROM counters WHERE collection = ?1 AND tenant = ?2", def.Name, tenant)
	return n + q.counts[counter{scope: scope{def.Name, tenant}}], err
}

// countEntries counts by index entries alone what a leaf selects, or an "or" of leaves.
func (q *queries) countEntries(ctx context.Context, t *table, tenant string, n *node, most int64) (_ docstore.Total,
	ok bool, _ error) {
	leaves := []*node{n}
	if n.op == isOr {
		leaves = partsLast(n)
	}
	for _, leaf := range leaves {
		if !leaf.isLeaf() || len(leaves) > 1 && (leaf.op == isContains || most == 0) {
			return docstore.Total{}, false, nil
		}
	}
	limit := int64(math.MaxInt64)
	if most > 0 {
		limit = most + 1
	}
	if len(leaves) == 1 && (!n.column.many || n.op == isIn && len(n.values) == 1) {
		total, err := q.probe(ctx, t, tenant, n, limit)
		if err == nil && total < limit {
			q.keep(n, asTotal, nil, total, nil, total)
		}
		return docstore.UpTo(most, total), true, err
	}
	rids := map[int64]struct{}{} // a document may be there by several values
	entries := int64(0)
	for _, leaf := range leaves {
		s := &statement{}
		s.entries(t, leaf, "rid", s.arg(tenant))
		err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
			entries++
			if rids[c.Int(0)] = struct{}{}; int64(len(rids)) >= limit {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return docstore.UpTo(most, limit), true, nil
		}
		if err != nil {
			return docstore.Total{}, true, err
		}
	}
	q.keep(n, asTotal, nil, int64(len(rids)), nil, entries)
	return docstore.Total{N: int64(len(rids))}, true, nil
}

// countBranches counts one branch, and the rows of the others, which must be few, that are not in it.
func (q *queries) countBranches(ctx context.Context, t *table, tenant string, parts []node,
	most int64) (docstore.Total, error) {
	var large *node
	var small []*plan
	for i := range parts {
		drivers, _, err := q.drivers(ctx, t, tenant, &parts[i], maxGathered)
		switch {
		case err != nil:
			return docstore.Total{}, err
		case drivers != nil:
			small = append(small, drive(t, tenant, drivers, &parts[i]))
		case large != nil:
			return docstore.Total{}, errFar
		default:
			large = &parts[i]
		}
	}
	total := docstore.Total{}
	if large != nil {
		var err error
		if total, err = q.count(ctx, t, tenant, large, most); err != nil || total.More {
			return total, err
		}
	}
	byID, err := t.ordering(nil)
	if err != nil {
		return docstore.Total{}, err
	}
	seen := map[int64]bool{}
	for _, p := range small {
		alone := node{op: isAnd, sub: []node{*p.rest}}
		if large != nil { // tested by hand, since there is no node for what another does not select
			alone.sub = append(alone.sub, *large)
		}
		p.needs = needsOf(t, &alone)
		row := p.candidate()
		s := p.statement("rid, id"+p.needs.fields, byID, nil)
		err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
			p.needs.fill(&row, c)
			if rid := c.Int(0); !seen[rid] && p.rest.matches(&row) && (large == nil || !large.matches(&row)) {
				seen[rid] = true
			}
			return nil
		})
		if err != nil {
			return docstore.Total{}, err
		}
	}
	return docstore.Total{N: total.N + int64(len(seen))}, nil
}

// countAnd counts what several conditions select: by an index of all of them, by counters less what one leaves out,
// or by testing rows. errFar if rows would be too many.
func (q *queries) countAnd(ctx context.Context, t *table, tenant string, n *node, most int64) (docstore.Total, error) {
	for _, c := range t.keys {
		p := walk(t, tenant, n, &ordering{keys: []*column{c}, desc: []bool{false, false}})
		if p.rest != nil {
			continue
		}
		s := &statement{}
		s.add("SELECT count(*) FROM (")
		inner := p.statement("1", nil, nil)
		s.WriteString(inner.String())
		s.args = inner.args
		limit := int64(math.MaxInt64)
		if most > 0 {
			limit = most + 1
		}
		s.limit(limit, 0)
		s.add(")")
		total, err := number(ctx, q.conn, s.String(), s.args...)
		return docstore.UpTo(most, total), err
	}
	for i := range n.sub {
		left := n.sub[i].outside()
		if left == nil {
			continue
		}
		few, _, err := q.drivers(ctx, t, tenant, left, maxGathered)
		if err != nil {
			return docstore.Total{}, err
		}
		if few == nil {
			continue
		}
		others := and(slices.Delete(slices.Clone(n.sub), i, i+1))
		total, err := q.count(ctx, t, tenant, &others, most)
		if err != nil {
			return total, err
		}
		if !total.More {
			without := and([]node{others, *left})
			less, err := q.count(ctx, t, tenant, &without, 0)
			return docstore.Total{N: total.N - less.N}, err
		}
	}
	return q.countRows(ctx, t, tenant, n, most)
}

const (
	maxCandidates = 30_000 // are not worth counting further
	sample        = 500    // rows tell how many of the others are selected
)

// along plans to test the rows of one condition, which may be many, as they come in its index; nil if there is none
// for that.
func along(t *table, tenant string, n *node) *plan {
	var by *node
	for i := range n.sub {
		part := &n.sub[i]
		// These come in the order of rows, neighbours together.
		if part.op == isIn && part.column.many && len(part.values) == 1 {
			return &plan{table: t, tenant: tenant, rest: n, needs: needsOf(t, n), list: part}
		}
		if part.isFacet() || part.op == isBetween && !part.column.many && part.column.slot >= 0 {
			by = part
		}
	}
	if by == nil {
		return nil
	}
	return &plan{table: t, tenant: tenant, rest: n, needs: needsOf(t, n), index: by.column.index, fixed: by}
}

// countRows tests the rows that one condition selects, if these are few, or most of them count; else errFar.
func (q *queries) countRows(ctx context.Context, t *table, tenant string, n *node, most int64) (docstore.Total, error) {
	drivers, candidates, err := q.drivers(ctx, t, tenant, n, min(maxCandidates, q.sight.all/lookup))
	if err != nil {
		return docstore.Total{}, err
	}
	if drivers != nil && candidates > maxTested { // index entries of all conditions may cost less
		budget := lookup * candidates
		m, err := q.set(ctx, t, tenant, n, &budget)
		if !errors.Is(err, errFar) {
			if err != nil {
				return docstore.Total{}, err
			}
			return docstore.UpTo(most, m.total), nil
		}
	}
	var p *plan
	if drivers != nil {
		p = drive(t, tenant, drivers, n)
	} else if p = along(t, tenant, n); p == nil || most == 0 || q.sight.all <= most {
		return docstore.Total{}, errFar
	} else {
		candidates = q.sight.all
	}
	row := p.candidate()
	tested, total := int64(0), int64(0)
	s := p.statement("rid, id"+p.needs.fields, nil, nil)
	err = q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		p.needs.fill(&row, c)
		if p.rest.matches(&row) {
			if total++; most > 0 && total > most {
				return errEnough
			}
		}
		if tested++; tested == sample && candidates > 2*maxGathered && total < sample/3 {
			return errFar
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return docstore.Total{}, err
	}
	if err == nil {
		q.keep(n, asTotal, nil, total, nil, tested)
	}
	return docstore.UpTo(most, total), nil
}
