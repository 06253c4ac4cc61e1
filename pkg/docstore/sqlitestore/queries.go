package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// queries are the reads, on a connection that sees one state of the file.
type queries struct {
	engine *Engine
	conn   Conn
	memory *memory // nil in a transaction
	sight  sight
	counts map[counter]int64 // what the running transaction adds to the counters
}

// Get reads documents by id from the last committed state.
func (e *Engine) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) (rows []docstore.Row, err error) {
	read := e.snapshot
	if len(ids) <= maxIDs {
		read = e.read // one statement needs no transaction
	}
	err = read(ctx, func(conn Conn) error {
		rows, err = (&queries{engine: e, conn: conn}).Get(ctx, def, tenant, ids)
		return err
	})
	return rows, err
}

// Find reads a query's rows from the last committed state.
func (e *Engine) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) (rows []docstore.Row, err error) {
	asked, err := e.inquire(def, tenant, q)
	if err != nil {
		return nil, err
	}
	read := e.snapshot
	if len(asked.straight) == 1 && asked.once() || 0 < len(asked.ids) && len(asked.ids) <= maxIDs {
		read = e.read
	}
	err = read(ctx, func(conn Conn) error {
		rows, _, err = (&queries{engine: e, conn: conn, memory: e.memory}).find(ctx, asked, false)
		return err
	})
	return rows, err
}

// Page reads a query's rows and its total from the last committed state.
func (e *Engine) Page(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find,
	most int64) (rows []docstore.Row, total docstore.Total, err error) {
	err = e.snapshot(ctx, func(conn Conn) error {
		rows, total, err = (&queries{engine: e, conn: conn, memory: e.memory}).Page(ctx, def, tenant, q, most)
		return err
	})
	return rows, total, err
}

// Count counts in the last committed state.
func (e *Engine) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter,
	most int64) (total docstore.Total, err error) {
	err = e.snapshot(ctx, func(conn Conn) error {
		total, err = (&queries{engine: e, conn: conn, memory: e.memory}).Count(ctx, def, tenant, filter, most)
		return err
	})
	return total, err
}

func (q *queries) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	t, err := q.engine.table(def)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	ids = distinct(ids)
	rows := make([]docstore.Row, 0, len(ids))
	err = q.byID(ctx, t, tenant, ids, rowColumns, func(c Columns) error {
		rows = append(rows, row(c))
		return nil
	})
	return rows, err
}

func distinct(ids []string) []string {
	if len(ids) == 1 {
		return ids
	}
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rowColumns are what row reads.
const rowColumns = "id, version, counts, due, doc"

func row(c Columns) docstore.Row {
	return docstore.Row{
		ID: string(c.Bytes(0)), Stamp: docstore.Stamp{Version: c.Int(1), Counts: c.Int(2)}, Due: c.Int(3),
		Data: append([]byte(nil), c.Bytes(4)...),
	}
}

var errEnough = errors.New("sqlitestore: enough rows")

func (q *queries) Find(ctx context.Context, def *docstore.Def, tenant string, find docstore.Find) ([]docstore.Row, error) {
	asked, err := q.engine.inquire(def, tenant, find)
	if err != nil {
		return nil, err
	}
	rows, _, err := q.find(ctx, asked, false)
	return rows, err
}

func (q *queries) Page(ctx context.Context, def *docstore.Def, tenant string, find docstore.Find,
	most int64) ([]docstore.Row, docstore.Total, error) {
	asked, err := q.engine.inquire(def, tenant, find)
	if err != nil {
		return nil, docstore.Total{}, err
	}
	if err := q.look(ctx, asked.table, def, tenant); err != nil { // before anything is read
		return nil, docstore.Total{}, err
	}
	if asked, err = q.simplified(ctx, asked); err != nil {
		return nil, docstore.Total{}, err
	}
	rows, total, err := q.find(ctx, asked, true)
	if err != nil || total >= 0 {
		return rows, docstore.Total{N: total}, err
	}
	counted, err := q.count(ctx, asked.table, tenant, &asked.filter, most)
	return rows, counted, err
}

// inquiry is a query, with all that can be known of it without a look at the file.
type inquiry struct {
	docstore.Find
	def      *docstore.Def
	tenant   string
	table    *table
	filter   node
	guided   node // the same, with what is known of the index that orders the rows
	order    *ordering
	walk     *plan
	straight []*plan  // whose statements, one after the other, find the rows; nil if it takes more than that
	ids      []string // the filter, when it is these and rows are bare
}

func (e *Engine) inquire(def *docstore.Def, tenant string, find docstore.Find) (*inquiry, error) {
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
	asked := &inquiry{Find: find, def: def, tenant: tenant, table: t, order: order}
	asked.plan(filter, guided)
	return asked, nil
}

// plan sets the filter and what follows from it.
func (a *inquiry) plan(filter, guided node) {
	a.filter, a.guided = filter, guided
	a.walk = walk(a.table, a.tenant, &guided, a.order)
	a.straight, a.ids = nil, nil
	switch {
	case a.walk.rest == nil:
		a.straight = []*plan{a.walk}
	case !a.Bare || a.After != nil:
	case filter.op == isIn && filter.column == &a.table.id:
		a.ids = a.Find.Filter.IDs
	case filter.isLeaf() && !filter.column.many:
		a.straight = []*plan{{table: a.table, tenant: a.tenant, index: filter.column.index, fixed: &filter}}
	case filter.op == isOr && a.Offset == 0:
		a.straight = a.ranges()
	}
}

// far is an offset from which on it pays to remember places.
const far = 500

// once says that a straight query takes one statement and has no use for what others found.
func (a *inquiry) once() bool { return !a.straight[0].merges() && (a.Offset < far || a.After != nil) }

// ranges plans a walk for each part of an "or", if these are ranges of the index that orders the rows and have nothing in common.
func (a *inquiry) ranges() []*plan {
	if len(a.order.keys) != 1 || a.order.desc[0] {
		return nil
	}
	key := a.order.keys[0]
	walks := make([]*plan, len(a.filter.sub))
	for i := range a.filter.sub {
		if part := &a.filter.sub[i]; part.op != isBetween || part.column != key || part.low == nil || part.high == nil {
			return nil
		}
		walks[i] = walk(a.table, a.tenant, &a.filter.sub[i], a.order)
	}
	slices.SortFunc(walks, func(x, y *plan) int { return key.compare(*x.low, *y.low) })
	for i := 1; i < len(walks); i++ {
		if key.compare(*walks[i-1].high, *walks[i].low) > 0 {
			return nil
		}
	}
	return walks
}

// simplified leaves out of a query's filter what, in this snapshot, selects nothing, or leaves nothing out: records
// whose moment has come wait for no more than a short while until they are settled. So the rest is known to be what
// counters and indexes are kept for.
func (q *queries) simplified(ctx context.Context, asked *inquiry) (*inquiry, error) {
	filter, changed, err := q.simplify(ctx, asked.table, asked.tenant, &asked.filter)
	if err != nil || !changed {
		return asked, err
	}
	guided, _, err := q.simplify(ctx, asked.table, asked.tenant, &asked.guided)
	if err != nil {
		return nil, err
	}
	simple := *asked
	simple.plan(filter, guided)
	return &simple, nil
}

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

// find finds rows and, if the way that they are found tells it, how many there are in all; else −1. count says that
// look and simplified were before.
func (q *queries) find(ctx context.Context, asked *inquiry, count bool) ([]docstore.Row, int64, error) {
	if asked.filter.op == isNone {
		return nil, 0, nil
	}
	if asked.ids != nil && !count {
		rows, err := q.named(ctx, asked)
		return rows, -1, err
	}
	if !count && (asked.straight == nil || !asked.once()) {
		if err := q.look(ctx, asked.table, asked.def, asked.tenant); err != nil { // before anything is read
			return nil, -1, err
		}
		var err error
		if asked, err = q.simplified(ctx, asked); err != nil {
			return nil, -1, err
		}
		if asked.filter.op == isNone {
			return nil, 0, nil
		}
	}
	if asked.straight != nil {
		rows, err := q.read(ctx, asked)
		return rows, -1, err
	}
	t, filter, order, find := asked.table, asked.filter, asked.order, &asked.Find
	if list := q.recall(&filter, order.kind(), order); list != nil && list.complete() {
		return q.cut(ctx, t, list, order, find)
	}
	set := q.recall(&filter, asSet, nil)
	if set == nil {
		rows, total, err := q.merge(ctx, asked)
		if !errors.Is(err, errFar) {
			return rows, total, err
		}
		if set, err = q.set(ctx, t, asked.tenant, &filter, nil); err != nil {
			return nil, -1, err
		}
	}
	return q.bySet(ctx, asked, set)
}

// bySet finds a page of a set: by sorting it, or by walking along all rows, as far as that costs less.
func (q *queries) bySet(ctx context.Context, a *inquiry, set *matches) ([]docstore.Row, int64, error) {
	if !set.complete() {
		rows, err := q.sift(ctx, a.walk, a.order, &pager{find: &a.Find}, math.MaxInt64)
		return rows, set.total, err
	}
	if !q.worthSorting(set) {
		page := pager{find: &a.Find}
		most := q.sight.all
		if lookup*set.total < most {
			most = max(lookup*set.total-set.walked.Load(), 1)
		}
		walked, err := q.walk(ctx, a.walk, set, a.order, a.After, most, page.add)
		set.walked.Add(walked)
		if err == nil || errors.Is(err, errEnough) {
			rows, err := q.documents(ctx, a.table, page.rids, a.order, &a.Find)
			return rows, set.total, err
		}
		if !errors.Is(err, errFar) {
			return nil, -1, err
		}
	}
	list, err := q.sorted(ctx, a.walk, set, &a.filter, a.order)
	if err != nil {
		return nil, -1, err
	}
	return q.cut(ctx, a.table, list, a.order, &a.Find)
}

// merge finds rows of branches that select little, and sorts them, among those that a walk for the only other one
// comes by. errFar if the walk would have to go too far.
func (q *queries) merge(ctx context.Context, a *inquiry) ([]docstore.Row, int64, error) {
	var near []found
	var rest *node
	looked := int64(0)
	seen := map[int64]bool{}
	parts := branches(&a.guided)
	many := len(parts) == 1 && q.recall(&a.filter, asBound, nil) != nil // which an earlier count found
	for i := range parts {
		if many {
			rest = &parts[i]
			break
		}
		extent, err := q.extent(ctx, a.table, a.tenant, &parts[i])
		if err != nil {
			return nil, -1, err
		}
		drivers, candidates, err := q.drivers(ctx, a.table, a.tenant, &parts[i], min(maxTested,
			worthwhile(a.Offset+a.Limit, extent)))
		if err != nil {
			return nil, -1, err
		}
		if drivers == nil {
			if rest != nil { // several that select much: together, as one
				return q.walkFor(ctx, a, a.walk, nil, nil, maxSifted)
			}
			rest = &parts[i]
			continue
		}
		looked += candidates
		err = q.test(ctx, drive(a.table, a.tenant, drivers, &parts[i]), a.order, nil, math.MaxInt64, func(c Columns,
			keys int) error {
			f := found{c.Int(0), string(c.Bytes(1)), sortValues(c, a.order, keys)}
			if !seen[f.rid] {
				seen[f.rid] = true
				near = append(near, f)
			}
			return nil
		})
		if err != nil {
			return nil, -1, err
		}
	}
	if rest == nil {
		list := q.keep(&a.filter, a.order.kind(), a.order, int64(len(near)), a.order.sort(near), looked)
		return q.cut(ctx, a.table, list, a.order, &a.Find)
	}
	a.order.sort(near)
	within, beside := rest.within(a.order)
	if within == nil {
		return q.wander(ctx, a, rest, len(parts) == 1, near, seen)
	}
	rows, total, err := q.walkFor(ctx, a, walk(a.table, a.tenant, rest, a.order), near, seen, sample)
	if !errors.Is(err, errFar) {
		return rows, total, err
	}
	if near, err = q.beside(ctx, a, rest, within, beside, near, seen); err != nil {
		return nil, -1, err
	}
	return q.walkFor(ctx, a, walk(a.table, a.tenant, within, a.order), near, seen, maxSifted)
}

const (
	glance     = 200    // rows show a filter that selects much
	maxTested  = 500    // rows are tested and sorted at once
	maxEntries = 30_000 // are read to have a set
)

// wander walks for what a filter selects, of which less is known: along index entries that tell which rows it may be,
// where these are not too many, or from row to row.
func (q *queries) wander(ctx context.Context, a *inquiry, rest *node, whole bool, near []found,
	seen map[int64]bool) ([]docstore.Row, int64, error) {
	p := walk(a.table, a.tenant, rest, a.order)
	if p.rest == nil {
		return q.walkFor(ctx, a, p, near, seen, math.MaxInt64)
	}
	rows, total, err := q.walkFor(ctx, a, p, near, seen, glance)
	if !errors.Is(err, errFar) {
		return rows, total, err
	}
	if whole {
		budget := int64(maxEntries)
		set, err := q.set(ctx, a.table, a.tenant, &a.filter, &budget)
		if err == nil {
			return q.bySet(ctx, a, set)
		}
		if !errors.Is(err, errFar) {
			return nil, -1, err
		}
	}
	drivers, candidates, err := q.drivers(ctx, a.table, a.tenant, rest, maxEntries)
	if err != nil {
		return nil, -1, err
	}
	if drivers == nil {
		return q.walkFor(ctx, a, p, near, seen, maxSifted)
	}
	maybe := make(map[int64]bool, candidates)
	for _, leaf := range drivers {
		if err := q.entries(ctx, a, leaf, func(rid int64) error { maybe[rid] = true; return nil }); err != nil {
			return nil, -1, err
		}
	}
	page := a.pager(near, seen)
	row := p.candidate()
	test := "SELECT rid, id" + p.needs.fields + " FROM " + a.table.name + " WHERE rid = ?1"
	most := max(sample, 2*lookup*candidates)
	s := p.statement("rid, id"+selectKeys(a.order), a.order, a.After)
	err = q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		if most--; most < 0 {
			return errFar
		}
		rid := c.Int(0)
		if !maybe[rid] || seen[rid] {
			return nil
		}
		most -= lookup
		f := found{rid, string(c.Bytes(1)), sortValues(c, a.order, 2)}
		selected := false
		err := q.conn.Query(ctx, test, []any{rid}, func(c Columns) error {
			p.needs.fill(&row, c)
			selected = p.rest.matches(&row)
			return nil
		})
		if err != nil || !selected {
			return err
		}
		if err := page.upTo(&f, a.order); err != nil {
			return err
		}
		return page.add(rid)
	})
	if err == nil {
		err = page.upTo(nil, a.order)
	}
	if errors.Is(err, errFar) && len(near) == 0 { // all candidates, then
		all := drive(a.table, a.tenant, drivers, rest)
		var some []found
		err = q.test(ctx, all, a.order, nil, math.MaxInt64, func(c Columns, keys int) error {
			some = append(some, found{c.Int(0), string(c.Bytes(1)), sortValues(c, a.order, keys)})
			return nil
		})
		if err != nil {
			return nil, -1, err
		}
		list := q.keep(&a.filter, a.order.kind(), a.order, int64(len(some)), a.order.sort(some), candidates)
		return q.cut(ctx, a.table, list, a.order, &a.Find)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, -1, err
	}
	rows, err = q.documents(ctx, a.table, page.rids, a.order, &a.Find)
	return rows, -1, err
}

// entries calls each with the row of every index entry that a leaf selects.
func (q *queries) entries(ctx context.Context, a *inquiry, leaf *node, each func(rid int64) error) error {
	s := &statement{}
	s.entries(a.table, leaf, "rid", s.arg(a.tenant))
	return q.conn.Query(ctx, s.String(), s.args, func(c Columns) error { return each(c.Int(0)) })
}

// within is for an "or", alone or among other conditions, of which one part is a range of the index that orders the
// rows: what is in that range, and the leaves of the other parts. nil if there is none.
func (n *node) within(order *ordering) (within *node, beside []*node) {
	if len(order.keys) == 0 {
		return nil, nil
	}
	parts := []node{*n}
	if n.op == isAnd {
		parts = n.sub
	}
	for i := range parts {
		if parts[i].op != isOr {
			continue
		}
		var ranged *node
		beside = nil
		for j := range parts[i].sub {
			leaf := &parts[i].sub[j]
			switch {
			case leaf.op == isBetween && leaf.column == order.keys[0] && ranged == nil:
				ranged = leaf
			case leaf.op == isIn || leaf.op == isBetween:
				beside = append(beside, leaf)
			default:
				return nil, nil
			}
		}
		if ranged != nil {
			all := and(append([]node{*ranged}, slices.Delete(slices.Clone(parts), i, i+1)...))
			return &all, beside
		}
	}
	return nil, nil
}

// beside adds to what is near the rows that leaves select and that are not within; errFar if they are many.
func (q *queries) beside(ctx context.Context, a *inquiry, n, within *node, leaves []*node, near []found,
	seen map[int64]bool) ([]found, error) {
	inside := map[int64]bool{}
	ranged := within
	if within.op == isAnd {
		ranged = &within.sub[0]
	}
	if err := q.entries(ctx, a, ranged, func(rid int64) error { inside[rid] = true; return nil }); err != nil {
		return nil, err
	}
	outside := map[int64]bool{}
	for _, leaf := range leaves {
		err := q.entries(ctx, a, leaf, func(rid int64) error {
			if !inside[rid] && !seen[rid] {
				if outside[rid] = true; len(outside) > maxGathered {
					return errFar
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	p := &plan{table: a.table, rest: n, needs: needsOf(a.table, n)}
	row := p.candidate()
	sql := "SELECT rid, id" + p.needs.fields + selectKeys(a.order) + " FROM " + a.table.name + " WHERE rid = ?1"
	for rid := range outside {
		err := q.conn.Query(ctx, sql, []any{rid}, func(c Columns) error {
			if p.needs.fill(&row, c); n.matches(&row) {
				near = append(near, found{rid, string(c.Bytes(1)), sortValues(c, a.order, 2+p.needs.width)})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	a.order.sort(near)
	return near, nil
}

const maxSifted = 2500 // rows that a walk tests, which costs as much as a hundred thousand index entries

// walkFor walks until the page is full, with the rows near in their places. errFar after too many other rows.
func (q *queries) walkFor(ctx context.Context, a *inquiry, p *plan, near []found, seen map[int64]bool,
	most int64) ([]docstore.Row, int64, error) {
	page := a.pager(near, seen)
	most += 2 * int64(a.Offset+a.Limit)
	if p.rest == nil {
		most = math.MaxInt64
	}
	rows, err := q.sift(ctx, p, a.order, page, most)
	return rows, -1, err
}

// pager begins a page with rows that are near.
func (a *inquiry) pager(near []found, seen map[int64]bool) *pager {
	page := &pager{find: &a.Find, seen: seen}
	for _, f := range near {
		if a.After == nil || a.order.compare(&f, &found{id: a.After.ID, sort: a.After.Values}) > 0 {
			page.near = append(page.near, f)
		}
	}
	return page
}

// named takes bare rows by id and puts them in order.
func (q *queries) named(ctx context.Context, a *inquiry) ([]docstore.Row, error) {
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

// read takes a page straight from SQL.
func (q *queries) read(ctx context.Context, a *inquiry) ([]docstore.Row, error) {
	if len(a.straight) == 1 && !a.once() {
		return q.readFar(ctx, a)
	}
	columns, row := shape(&a.Find, a.order)
	rows := make([]docstore.Row, 0, min(a.Limit, 64)) // a limit may be a bound that is never met
	for _, p := range a.straight {
		if len(rows) == a.Limit {
			break
		}
		s := p.statement(columns, a.order, a.After)
		s.limit(int64(a.Limit-len(rows)), int64(a.Offset))
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

// readFar finds the rows in the index first, from the nearest place that is known.
func (q *queries) readFar(ctx context.Context, a *inquiry) ([]docstore.Row, error) {
	after, skip := a.After, a.Offset
	var known *places
	if after == nil && skip >= far {
		known = q.places(&a.filter, a.order)
		after, skip = known.before(skip)
	}
	if p := a.straight[0]; skip < far && !p.merges() {
		near := *a
		near.After, near.Offset = after, skip
		return q.read(ctx, &near)
	}
	last, came := skip/far*far, 0
	var rids []int64
	// Places are noted on the way: the row before every one whose number is a multiple of far.
	s := a.straight[0].statement("rid, id"+selectKeys(a.order), a.order, after)
	if known == nil || skip < far {
		s.limit(int64(a.Limit), int64(skip))
		last = -1
	} else {
		s.limit(int64(a.Limit+skip-last+1), int64(last-1))
	}
	err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		if last > 0 {
			if came == 0 {
				known.note(a.Offset-skip+last, docstore.Position{Values: sortValues(c, a.order, 2),
					ID: string(c.Bytes(1))})
			}
			if came++; last+came-2 < skip {
				return nil
			}
		}
		if len(rids) < a.Limit {
			rids = append(rids, c.Int(0))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return q.documents(ctx, a.table, rids, a.order, &a.Find)
}

// found is a row that a query selects, before its document is read.
type found struct {
	rid  int64
	id   string
	sort []docstore.Value
}

// test calls each for every row of a plan's candidates that the filter selects, in the plan's order; errFar if there are more than most.
func (q *queries) test(ctx context.Context, p *plan, order *ordering, after *docstore.Position, most int64, each func(c Columns, keys int) error) error {
	s := p.statement("rid, id"+p.needs.fields+selectKeys(order), order, after)
	row := p.candidate()
	return q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		if most--; most < 0 {
			return errFar
		}
		if p.rest != nil {
			p.needs.fill(&row, c)
			if !p.rest.matches(&row) {
				return nil
			}
		}
		return each(c, 2+p.needs.width)
	})
}

// pager collects the rows of a page from those that come along, and from others that are near.
type pager struct {
	find *docstore.Find
	came int
	rids []int64
	near []found // in order
	seen map[int64]bool
}

func (p *pager) add(rid int64) error {
	if p.came++; p.came <= p.find.Offset {
		return nil
	}
	if p.rids = append(p.rids, rid); len(p.rids) == p.find.Limit {
		return errEnough
	}
	return nil
}

// upTo adds what is near and comes before a row, nil being the end.
func (p *pager) upTo(f *found, order *ordering) error {
	for len(p.near) > 0 && (f == nil || order.compare(&p.near[0], f) < 0) {
		rid := p.near[0].rid
		p.near = p.near[1:]
		if err := p.add(rid); err != nil {
			return err
		}
	}
	return nil
}

var errFar = errors.New("sqlitestore: too many rows tested")

// sift walks until the page is full, testing each row, but gives up with errFar after most rows: then index entries tell sooner where the others are.
func (q *queries) sift(ctx context.Context, p *plan, order *ordering, page *pager, most int64) ([]docstore.Row, error) {
	err := q.test(ctx, p, order, page.find.After, most, func(c Columns, keys int) error {
		rid := c.Int(0)
		if page.seen[rid] {
			return nil
		}
		if len(page.near) > 0 {
			if err := page.upTo(&found{rid, string(c.Bytes(1)), sortValues(c, order, keys)}, order); err != nil {
				return err
			}
		}
		return page.add(rid)
	})
	if err == nil {
		err = page.upTo(nil, order)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return q.documents(ctx, p.table, page.rids, order, page.find)
}

// walk calls each for every row of a set, in the order of a plan, and tells how many rows it came by; errFar if these
// are more than most.
func (q *queries) walk(ctx context.Context, p *plan, set *matches, order *ordering, after *docstore.Position,
	most int64, each func(rid int64) error) (walked int64, err error) {
	s := p.statement("rid, id"+selectKeys(order), order, after)
	err = q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		if walked++; walked > most {
			return errFar
		}
		if rid := c.Int(0); set.has(rid) {
			return each(rid)
		}
		return nil
	})
	return walked, err
}

const (
	maxGathered = 2000 // rows are looked up one by one to be sorted at once
	lookup      = 12   // is looking up a row, in steps of a walk
)

// worthSorting says whether a set is to be sorted as a whole. A large one is not before walks for pages of it have cost as much as that.
func (q *queries) worthSorting(set *matches) bool {
	return set.complete() && (set.total <= maxGathered || set.walked.Load() >= min(lookup*set.total, q.sight.all))
}

// sorted puts a set in order: by its rows' keys, or along the plan's walk.
func (q *queries) sorted(ctx context.Context, p *plan, set *matches, filter *node, order *ordering) (*matches, error) {
	if lookup*set.total > q.sight.all {
		rids := make([]int64, 0, len(set.rids))
		_, err := q.walk(ctx, p, set, order, nil, math.MaxInt64, func(rid int64) error {
			rids = append(rids, rid)
			return nil
		})
		if err != nil {
			return nil, err
		}
		return q.keep(filter, order.kind(), order, set.total, rids, set.total), nil
	}
	all := make([]found, 0, len(set.rids))
	for _, rid := range set.rids {
		f, err := q.key(ctx, p.table, rid, order)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return q.keep(filter, order.kind(), order, set.total, order.sort(all), set.total), nil
}

// key reads what a row is sorted by.
func (q *queries) key(ctx context.Context, t *table, rid int64, order *ordering) (found, error) {
	f := found{rid: -1}
	err := q.conn.Query(ctx, "SELECT id"+selectKeys(order)+" FROM "+t.name+" WHERE rid = ?1", []any{rid}, func(c Columns) error {
		f = found{rid, string(c.Bytes(0)), sortValues(c, order, 1)}
		return nil
	})
	if err == nil && f.rid != rid {
		err = fmt.Errorf("sqlitestore: %s lost row %d", t.name, rid)
	}
	return f, err
}

// cut reads a page of what is in order.
func (q *queries) cut(ctx context.Context, t *table, list *matches, order *ordering, find *docstore.Find) ([]docstore.Row, int64, error) {
	from := min(find.Offset, len(list.rids))
	if find.After != nil {
		position := found{id: find.After.ID, sort: find.After.Values}
		var failed error
		from = sort.Search(len(list.rids), func(i int) bool {
			f, err := q.key(ctx, t, list.rids[i], order)
			failed = cmp.Or(failed, err)
			return err != nil || order.compare(&f, &position) > 0
		})
		if failed != nil {
			return nil, -1, failed
		}
	}
	rids := list.rids[from:]
	rows, err := q.documents(ctx, t, rids[:min(find.Limit, len(rids))], order, find)
	return rows, list.total, err
}

// documents reads the documents of a page.
func (q *queries) documents(ctx context.Context, t *table, rids []int64, order *ordering, find *docstore.Find) ([]docstore.Row, error) {
	columns, read := shape(find, order)
	rows := make([]docstore.Row, len(rids))
	place := make(map[int64]int, len(rids))
	for i, rid := range rids {
		place[rid] = i
	}
	came := 0
	for part := range slices.Chunk(rids, maxIDs) {
		values := make([]any, len(part))
		for i, rid := range part {
			values[i] = rid
		}
		s := &statement{}
		s.add("SELECT %s, rid FROM %s NOT INDEXED WHERE ", columns, t.name)
		s.oneOf("rid", values)
		err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
			came++
			rows[place[c.Int(strings.Count(columns, ",")+1)]] = read(c)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if came != len(rids) {
		return nil, fmt.Errorf("sqlitestore: %s lost %d of %d rows", t.name, len(rids)-came, len(rids))
	}
	return rows, nil
}

// shape is what is read of each row that a query finds.
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

// set finds the rows that a filter selects from index entries alone; errFar if these are more than a budget, which is
// spent.
func (q *queries) set(ctx context.Context, t *table, tenant string, n *node, budget *int64) (*matches, error) {
	if m := q.recall(n, asSet, nil); m != nil && m.complete() {
		return m, nil
	}
	var rids []int64
	cost := int64(0)
	if n.isLeaf() {
		s := &statement{}
		if n.isFacet() && budget != nil {
			total, err := q.facetTotal(ctx, t, tenant, n)
			if err != nil {
				return nil, err
			}
			if total > *budget {
				return nil, errFar
			}
		}
		s.entries(t, n, "rid", s.arg(tenant))
		err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
			if budget != nil {
				if *budget--; *budget < 0 {
					return errFar
				}
			}
			rids = append(rids, c.Int(0))
			return nil
		})
		if err != nil {
			return nil, err
		}
		cost = int64(len(rids))
		slices.Sort(rids)
		rids = slices.Compact(rids)
	}
	for i, part := range partsLast(n) {
		if i > 0 && n.op == isAnd && part.op == isContains && lookup*int64(len(rids)) <= q.sight.all {
			kept, err := q.containing(ctx, t, part, rids)
			if err != nil {
				return nil, err
			}
			cost += int64(len(rids))
			rids = kept
			continue
		}
		found, err := q.set(ctx, t, tenant, part, budget)
		if err != nil {
			return nil, err
		}
		cost += int64(len(found.rids))
		switch {
		case i == 0:
			rids = found.rids
		case n.op == isOr:
			rids = union(rids, found.rids)
		default:
			rids = intersection(rids, found.rids)
		}
		if n.op == isAnd && len(rids) == 0 {
			break
		}
	}
	return q.keep(n, asSet, nil, int64(len(rids)), rids, cost), nil
}

// partsLast gives what a filter combines, that which contains a part last: it has no index and is best tested on what the others leave.
func partsLast(n *node) []*node {
	var first, last []*node
	for i := range n.sub {
		if n.sub[i].op == isContains {
			last = append(last, &n.sub[i])
		} else {
			first = append(first, &n.sub[i])
		}
	}
	return append(first, last...)
}

// containing tests rows one by one.
func (q *queries) containing(ctx context.Context, t *table, part *node, rids []int64) ([]int64, error) {
	var kept []int64
	sql := "SELECT " + part.column.field + " FROM " + t.name + " WHERE rid = ?1"
	for _, rid := range rids {
		err := q.conn.Query(ctx, sql, []any{rid}, func(c Columns) error {
			if part.accepts(c.Bytes(0), 0) {
				kept = append(kept, rid)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// intersection is what is in both; they are sorted.
func intersection(a, b []int64) []int64 {
	var both []int64
	for _, n := range a {
		for len(b) > 0 && b[0] < n {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == n {
			both = append(both, n)
		}
	}
	return both
}

// union is what is in either; they are sorted.
func union(a, b []int64) []int64 {
	all := make([]int64, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			all, a = append(all, a[0]), a[1:]
		case a[0] > b[0]:
			all, b = append(all, b[0]), b[1:]
		default:
			a = a[1:]
		}
	}
	return append(append(all, a...), b...)
}
