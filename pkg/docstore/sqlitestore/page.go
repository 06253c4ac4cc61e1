package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// A page of the documents that a filter selects is found in one of four ways:
//
//  1. Directly, if the filter is a range of the index that gives the order.
//  2. By testing all rows of a group, if the filter names a small one.
//  3. By testing the first rows in the order (a glance), if the filter selects many documents.
//  4. From the set of all rows that the filter selects (sets.go): by sorting the set, or by looking for its rows along
//     the index, which costs less the larger the set is.

const (
	glance   = 60     // rows that a glance tests, plus two for each row of the page and of its offset
	cheap    = 10_000 // a search of fewer index entries costs less than a glance
	maxGroup = 1000   // groups with more rows are not tested as a whole
)

// find returns the rows of the page, and the total if finding the rows has shown it; otherwise −1.
func (q *queries) find(ctx context.Context, a *plannedQuery) ([]docstore.Row, int64, error) {
	if a.byIndexAlone == nil && a.ids == nil {
		var err error
		if a, err = q.simplified(ctx, a); err != nil {
			return nil, -1, err
		}
	}
	switch {
	case a.filter.op == isNone:
		return nil, 0, nil
	case a.ids != nil:
		rows, err := q.named(ctx, a)
		return rows, -1, err
	case a.byIndexAlone != nil:
		if q.results != nil && a.far() {
			var err error
			if a, err = q.fromMark(ctx, a); err != nil {
				return nil, -1, err
			}
		}
		rows, err := q.read(ctx, a)
		return rows, -1, err
	}
	found, err := q.result(ctx, a.table, a.tenant, a.text(), func() (result, error) { return q.search(ctx, a) })
	if err != nil {
		return nil, -1, err
	}
	rows, err := q.documents(ctx, a, found.rids)
	return rows, found.total.N, err
}

// search finds the rows of a page in the ways 2 to 4, and the total as find does.
func (q *queries) search(ctx context.Context, a *plannedQuery) (result, error) {
	if a.walk.grouped() {
		if found, err := q.ofGroup(ctx, a); !errors.Is(err, errTooMany) {
			return found, err
		}
	}
	all, err := q.total(ctx, a.table.def, a.tenant)
	if err != nil {
		return result{}, err
	}
	cost, err := q.cost(ctx, a.table, a.tenant, &a.filter, all)
	if err != nil {
		return result{}, err
	}
	if cost > cheap && a.Offset <= glance {
		rids, err := q.sift(ctx, a, glance+2*(a.Offset+a.Limit))
		if !errors.Is(err, errTooMany) {
			return result{rids, docstore.Total{N: -1}}, err
		}
	}
	selected, err := q.set(ctx, a.table, a.tenant, &a.filter, math.MaxInt64)
	if err != nil {
		return result{}, err
	}
	rids, err := q.arrange(ctx, a, selected, all)
	return result{rids, docstore.Total{N: selected.size}}, err
}

// arrange finds a page of a set in the cheapest way: by sorting the set, by a walk along all rows, or by reading the
// spans of the order first.
func (q *queries) arrange(ctx context.Context, a *plannedQuery, selected *set, all int64) ([]int64, error) {
	if selected.size == 0 {
		return nil, nil
	}
	sorting, walking := lookup*selected.size, int64(a.Offset+a.Limit)*all/selected.size
	spanned := len(a.order.keys) > 0 && a.walk.key.span > 0
	budget := sorting // how many rows a walk may read
	switch {
	case spanned:
		budget = min(sorting, maxWalked)
	case sorting > all:
		budget = math.MaxInt64
	}
	var rids []int64
	err := errTooMany
	if walking < budget {
		rids, err = q.walk(ctx, a.walk, a, selected, budget)
	}
	if errors.Is(err, errTooMany) {
		if spanned && selected.size > maxSorted {
			rids, err = q.bySpans(ctx, a, selected)
		} else {
			rids, err = q.sorted(ctx, a, selected.rids())
		}
	}
	return rids, err
}

// named reads bare rows by id and puts them in order.
func (q *queries) named(ctx context.Context, a *plannedQuery) ([]docstore.Row, error) {
	columns, row := shape(&a.Find, a.order)
	var rows []docstore.Row
	err := q.byID(ctx, a.table, a.tenant, distinct(a.ids), columns, func(c Columns) error {
		rows = append(rows, row(c))
		return nil
	})
	slices.SortFunc(rows, func(x, y docstore.Row) int {
		return a.order.compare(&found{id: x.ID, sort: x.Sort}, &found{id: y.ID, sort: y.Sort})
	})
	rows = rows[min(a.Offset, len(rows)):]
	return rows[:min(a.Limit, len(rows))], err
}

// read reads a page with one SQL statement.
func (q *queries) read(ctx context.Context, a *plannedQuery) ([]docstore.Row, error) {
	columns, row := shape(&a.Find, a.order)
	rows := make([]docstore.Row, 0, min(a.Limit, 64)) // a limit may be much greater than the number of rows
	for _, p := range a.byIndexAlone {
		if len(rows) == a.Limit {
			break
		}
		limit := int64(a.Limit - len(rows))
		if p.merges() && !a.Bare {
			rids, err := q.merged(ctx, a, p, limit)
			if err != nil {
				return nil, err
			}
			return q.documents(ctx, a, rids)
		}
		s := p.statement(columns, a.order, a.After)
		s.limit(limit, int64(a.Offset))
		err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
			rows = append(rows, row(c))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// merged returns row ids by several walks. Each walk reads a row before it is known which come first, so the walks read
// only the index.
func (q *queries) merged(ctx context.Context, a *plannedQuery, p *indexWalk, limit int64) (rids []int64, _ error) {
	s := p.statement("rid", a.order, a.After)
	s.limit(limit, int64(a.Offset))
	err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		rids = append(rids, c.Int(0))
		return nil
	})
	return rids, err
}

// errTooMany means that a way to find a page tests too many rows: another one is tried, so no caller sees it.
var errTooMany = errors.New("sqlitestore: too many rows tested")

// pager collects the rows of a page from the rows that it is given.
type pager struct {
	find *docstore.Find
	seen int
	rids []int64
}

func (p *pager) add(rid int64) error {
	if p.seen++; p.seen <= p.find.Offset {
		return nil
	}
	if p.rids = append(p.rids, rid); len(p.rids) == p.find.Limit {
		return errEnough
	}
	return nil
}

// sift walks until the page is full and tests each row. It returns errTooMany if it would have to read more than budget
// rows.
func (q *queries) sift(ctx context.Context, a *plannedQuery, budget int) ([]int64, error) {
	p, page := a.walk, pager{find: &a.Find}
	row := p.table.candidate()
	s := p.statement("rid, id"+p.needs.fields, a.order, a.After)
	err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		if budget--; budget < 0 {
			return errTooMany
		}
		if p.needs.fill(&row, c); p.rest.matches(&row) {
			return page.add(c.Int(0))
		}
		return nil
	})
	return page.rids, ignore(err, errEnough)
}

// ofGroup tests all rows of a group, for the page and the total. It returns errTooMany if there are more than maxGroup.
func (q *queries) ofGroup(ctx context.Context, a *plannedQuery) (result, error) {
	p, page, position := a.walk, pager{find: &a.Find}, found{}
	if a.After != nil {
		position = found{id: a.After.ID, sort: a.After.Values}
	}
	row, seen, total := p.table.candidate(), 0, int64(0)
	s := p.statement("rid, id"+p.needs.fields+selectKeys(a.order), a.order, nil)
	s.limit(maxGroup+1, 0)
	err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		if seen++; seen > maxGroup {
			return errTooMany
		}
		if p.needs.fill(&row, c); !p.rest.matches(&row) {
			return nil
		}
		total++
		at := found{id: string(row.id), sort: sortValues(c, a.order, 2+p.needs.width)}
		if len(page.rids) < a.Limit && (a.After == nil || a.order.compare(&at, &position) > 0) {
			return ignore(page.add(c.Int(0)), errEnough)
		}
		return nil
	})
	return result{page.rids, docstore.Total{N: total}}, err
}

// walk goes along the index and takes the rows of a page that are in a set. It returns errTooMany if it would have to
// read more than budget rows.
func (q *queries) walk(
	ctx context.Context, p *indexWalk, a *plannedQuery, selected *set, budget int64,
) ([]int64, error) {
	page := pager{find: &a.Find}
	s := p.statement("rid", a.order, a.After)
	err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		if budget--; budget < 0 {
			return errTooMany
		}
		if rid := c.Int(0); selected.has(rid) {
			return page.add(rid)
		}
		return nil
	})
	return page.rids, ignore(err, errEnough)
}

// found is a row that a query selects, before its document is read.
type found struct {
	rid  int64
	id   string
	sort []docstore.Value
}

// sorted puts rows in order and returns those of the page.
func (q *queries) sorted(ctx context.Context, a *plannedQuery, all []int64) ([]int64, error) {
	rows := make([]found, 0, len(all))
	position := found{}
	if a.After != nil {
		position = found{id: a.After.ID, sort: a.After.Values}
	}
	columns := "rid, id" + selectKeys(a.order)
	err := q.rows(ctx, a.table, all, columns, func(c Columns) error {
		f := found{c.Int(0), string(c.Bytes(1)), sortValues(c, a.order, 2)}
		if a.After == nil || a.order.compare(&f, &position) > 0 {
			rows = append(rows, f)
		}
		return nil
	})
	slices.SortFunc(rows, func(x, y found) int { return a.order.compare(&x, &y) })
	rows = rows[min(a.Offset, len(rows)):]
	rids := make([]int64, min(a.Limit, len(rows)))
	for i := range rids {
		rids[i] = rows[i].rid
	}
	return rids, err
}

// documents reads the documents of a page.
func (q *queries) documents(ctx context.Context, a *plannedQuery, rids []int64) ([]docstore.Row, error) {
	columns, read := shape(&a.Find, a.order)
	rows := make([]docstore.Row, len(rids))
	place := make(map[int64]int, len(rids))
	for i, rid := range rids {
		place[rid] = i
	}
	seen := 0
	err := q.rows(ctx, a.table, rids, columns+", rid", func(c Columns) error {
		seen++
		rows[place[c.Int(strings.Count(columns, ",")+1)]] = read(c)
		return nil
	})
	if err == nil && seen != len(rids) {
		err = fmt.Errorf("sqlitestore: %s lost %d of %d rows", a.table.name, len(rids)-seen, len(rids))
	}
	return rows, err
}

// shape returns the columns to be read of each row that a query finds, and the function that reads them.
func shape(find *docstore.Find, order *ordering) (columns string, read func(Columns) docstore.Row) {
	if find.Bare {
		return "id" + selectKeys(order), func(c Columns) docstore.Row {
			return docstore.Row{ID: string(c.Bytes(0)), Sort: sortValues(c, order, 1)}
		}
	}
	return rowColumns + selectKeys(order), func(c Columns) docstore.Row {
		r := row(c)
		r.Sort = sortValues(c, order, 5)
		return r
	}
}

func selectKeys(o *ordering) string {
	s := ""
	for _, c := range o.keys {
		s += ", " + c.field
	}
	return s
}

func sortValues(c Columns, o *ordering, from int) []docstore.Value {
	if len(o.keys) == 0 {
		return nil
	}
	vs := make([]docstore.Value, len(o.keys))
	for i, k := range o.keys {
		vs[i] = k.value(c, from+i)
	}
	return vs
}
