package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// queries are the reads, on a connection that sees one state of the file.
type queries struct {
	engine *Engine
	conn   Conn
	memory *memory // nil in a transaction
	sight  sight
	counts map[scope]int64 // what the running transaction adds to the counters
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
	if len(asked.straight) == 1 || 0 < len(asked.ids) && len(asked.ids) <= maxIDs {
		read = e.read
	}
	err = read(ctx, func(conn Conn) error {
		rows, _, err = (&queries{engine: e, conn: conn, memory: e.memory}).find(ctx, asked, false)
		return err
	})
	return rows, err
}

// Page reads a query's rows and its total from the last committed state.
func (e *Engine) Page(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) (rows []docstore.Row, total int64, err error) {
	err = e.snapshot(ctx, func(conn Conn) error {
		rows, total, err = (&queries{engine: e, conn: conn, memory: e.memory}).Page(ctx, def, tenant, q)
		return err
	})
	return rows, total, err
}

// Count counts in the last committed state.
func (e *Engine) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter) (n int64, err error) {
	err = e.snapshot(ctx, func(conn Conn) error {
		n, err = (&queries{engine: e, conn: conn, memory: e.memory}).Count(ctx, def, tenant, filter)
		return err
	})
	return n, err
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

func (q *queries) Page(ctx context.Context, def *docstore.Def, tenant string, find docstore.Find) ([]docstore.Row, int64, error) {
	asked, err := q.engine.inquire(def, tenant, find)
	if err != nil {
		return nil, -1, err
	}
	rows, total, err := q.find(ctx, asked, true)
	if err == nil && total < 0 {
		total, err = q.Count(ctx, def, tenant, find.Filter)
	}
	return rows, total, err
}

// inquiry is a query, with all that can be known of it without a look at the file.
type inquiry struct {
	docstore.Find
	def      *docstore.Def
	tenant   string
	table    *table
	filter   node
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
	filter, err := t.normalize(find.Filter)
	if err != nil {
		return nil, err
	}
	order, err := t.ordering(find.Sort)
	if err != nil {
		return nil, err
	}
	asked := &inquiry{Find: find, def: def, tenant: tenant, table: t, filter: filter, order: order}
	asked.walk = walk(t, tenant, &filter, order)
	switch {
	case asked.walk.rest == nil:
		asked.straight = []*plan{asked.walk}
	case !find.Bare || find.After != nil:
	case filter.op == isIn && filter.column == &t.id:
		asked.ids = find.Filter.IDs
	case filter.isLeaf() && !filter.column.many:
		asked.straight = []*plan{{table: t, tenant: tenant, index: filter.column.index, fixed: &filter}}
	case filter.op == isOr && find.Offset == 0:
		asked.straight = asked.ranges()
	}
	return asked, nil
}

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

// find finds rows and, if count is set and the way that they are found tells it, how many there are in all; else −1.
func (q *queries) find(ctx context.Context, asked *inquiry, count bool) ([]docstore.Row, int64, error) {
	t, tenant, filter, order, find, p := asked.table, asked.tenant, asked.filter, asked.order, &asked.Find, asked.walk
	if filter.op == isNone {
		return nil, 0, nil
	}
	if asked.ids != nil && !count {
		rows, err := q.named(ctx, asked)
		return rows, -1, err
	}
	if count || asked.straight == nil {
		if err := q.look(ctx, t, asked.def, tenant); err != nil { // before anything is read
			return nil, -1, err
		}
	}
	if asked.straight != nil {
		rows, err := q.read(ctx, asked)
		return rows, -1, err
	}
	if list := q.recall(&filter, order.kind(), order); list != nil && list.complete() {
		return q.cut(ctx, t, list, order, find)
	}
	set := q.recall(&filter, asSet, nil)
	if set == nil {
		drivers, candidates, err := q.drivers(ctx, t, tenant, &filter, q.worthwhile(find.Offset+find.Limit))
		if err != nil {
			return nil, -1, err
		}
		if drivers != nil {
			list, err := q.gather(ctx, drive(t, tenant, drivers, &filter), candidates, order)
			if err != nil {
				return nil, -1, err
			}
			return q.cut(ctx, t, list, order, find)
		}
		if !count {
			rows, err := q.sift(ctx, p, order, find, max(maxGathered, q.sight.all/8))
			if !errors.Is(err, errFar) {
				return rows, -1, err
			}
		}
		if set, err = q.set(ctx, t, tenant, &filter); err != nil {
			return nil, -1, err
		}
	}
	if !set.complete() {
		rows, err := q.sift(ctx, p, order, find, math.MaxInt64)
		return rows, set.total, err
	}
	if q.worthSorting(set) {
		list, err := q.sorted(ctx, p, set, &filter, order)
		if err != nil {
			return nil, -1, err
		}
		return q.cut(ctx, t, list, order, find)
	}
	page := pager{find: find}
	walked, err := q.walk(ctx, p, set, order, find.After, page.add)
	if err != nil && !errors.Is(err, errEnough) {
		return nil, -1, err
	}
	set.walked.Add(walked)
	rows, err := q.documents(ctx, t, page.rids, order, find)
	return rows, set.total, err
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

// found is a row that a query selects, before its document is read.
type found struct {
	rid  int64
	id   string
	sort []docstore.Value
}

// test calls each for every row of a plan's candidates that the filter selects, in the plan's order; errFar if there are more than most.
func (q *queries) test(ctx context.Context, p *plan, order *ordering, after *docstore.Position, most int64, each func(c Columns, keys int) error) error {
	s := p.statement("rid, id"+p.needs.fields+selectKeys(order), order, after)
	row := candidate{texts: make([][]byte, len(p.table.keys)), nums: make([]int64, len(p.table.keys))}
	return q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		if most--; most < 0 {
			return errFar
		}
		p.needs.fill(&row, c)
		if !p.rest.matches(&row) {
			return nil
		}
		return each(c, 2+p.needs.width)
	})
}

// gather tests the candidates of a drive, so many, and sorts those that are selected. SQLite could sort them, but not before it has carried each
// candidate's columns through its sorter.
func (q *queries) gather(ctx context.Context, p *plan, candidates int64, order *ordering) (*matches, error) {
	var all []found
	err := q.test(ctx, p, order, nil, math.MaxInt64, func(c Columns, keys int) error {
		all = append(all, found{c.Int(0), string(c.Bytes(1)), sortValues(c, order, keys)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return q.keep(p.rest, order.kind(), order, int64(len(all)), order.sort(all), candidates), nil
}

// pager collects the rows of a page from those that come along.
type pager struct {
	find *docstore.Find
	came int
	rids []int64
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

var errFar = errors.New("sqlitestore: too many rows tested")

// sift walks until the page is full, testing each row, but gives up with errFar after most rows: then index entries tell sooner where the others are.
func (q *queries) sift(ctx context.Context, p *plan, order *ordering, find *docstore.Find, most int64) ([]docstore.Row, error) {
	page := pager{find: find}
	err := q.test(ctx, p, order, find.After, most, func(c Columns, _ int) error { return page.add(c.Int(0)) })
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return q.documents(ctx, p.table, page.rids, order, find)
}

// walk calls each for every row of a set, in the order of a plan, and tells how many others it came by.
func (q *queries) walk(ctx context.Context, p *plan, set *matches, order *ordering, after *docstore.Position, each func(rid int64) error) (walked int64, err error) {
	s := p.statement("rid", order, after)
	err = q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		walked++
		if rid := c.Int(0); set.has(rid) {
			return each(rid)
		}
		return nil
	})
	return walked, err
}

const (
	maxGathered = 2000 // rows are looked up one by one to be sorted at once
	lookup      = 6    // is looking up a row, in steps of a walk
)

// worthSorting says whether a set is to be sorted as a whole. A large one is not before walks for pages of it have cost as much as that.
func (q *queries) worthSorting(set *matches) bool {
	return set.complete() && (set.total <= maxGathered || set.walked.Load() >= min(lookup*set.total, q.sight.all))
}

// sorted puts a set in order: by its rows' keys, or along the plan's walk.
func (q *queries) sorted(ctx context.Context, p *plan, set *matches, filter *node, order *ordering) (*matches, error) {
	if lookup*set.total > q.sight.all {
		rids := make([]int64, 0, len(set.rids))
		_, err := q.walk(ctx, p, set, order, nil, func(rid int64) error {
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
	columns, row := shape(find, order)
	rows := make([]docstore.Row, 0, len(rids))
	sql := "SELECT " + columns + " FROM " + t.name + " WHERE rid = ?1"
	for i, rid := range rids {
		err := q.conn.Query(ctx, sql, []any{rid}, func(c Columns) error {
			rows = append(rows, row(c))
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(rows) != i+1 {
			return nil, fmt.Errorf("sqlitestore: %s lost row %d", t.name, rid)
		}
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

func (q *queries) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter) (int64, error) {
	t, err := q.engine.table(def)
	if err != nil {
		return 0, err
	}
	n, err := t.normalize(filter)
	if err != nil {
		return 0, err
	}
	switch n.op {
	case isNone:
		return 0, nil
	case isAll:
		return q.total(ctx, def, tenant)
	}
	if err := q.look(ctx, t, def, tenant); err != nil {
		return 0, err
	}
	byID, err := t.ordering(nil)
	if err != nil {
		return 0, err
	}
	for _, kind := range []string{asSet, asTotal, byID.kind()} {
		if m := q.recall(&n, kind, nil); m != nil {
			return m.total, nil
		}
	}
	if n.isLeaf() {
		total, err := q.countLeaf(ctx, t, tenant, &n)
		if err != nil {
			return 0, err
		}
		return q.keep(&n, asTotal, nil, total, nil, total).total, nil
	}
	var drivers []*node
	candidates := int64(0)
	if n.op == isAnd { // of an "or" the index entries of all parts say it; no row needs to be looked at
		if drivers, candidates, err = q.drivers(ctx, t, tenant, &n, q.sight.all/lookup); err != nil {
			return 0, err
		}
	}
	var m *matches
	if drivers == nil {
		m, err = q.set(ctx, t, tenant, &n)
	} else {
		m, err = q.gather(ctx, drive(t, tenant, drivers, &n), candidates, byID)
	}
	if err != nil {
		return 0, err
	}
	return m.total, nil
}

// total is the number of a tenant's documents, from the counter that every transaction keeps.
func (q *queries) total(ctx context.Context, def *docstore.Def, tenant string) (int64, error) {
	n, err := number(ctx, q.conn, "SELECT n FROM counters WHERE collection = ?1 AND tenant = ?2", def.Name, tenant)
	return n + q.counts[scope{def.Name, tenant}], err
}

func (q *queries) countLeaf(ctx context.Context, t *table, tenant string, n *node) (int64, error) {
	what := "count(*)"
	if n.column.many && (n.op == isBetween || len(n.values) > 1) {
		what = "count(DISTINCT rid)" // a document may be there by several of its values
	}
	s := &statement{}
	s.entries(t, n, what, s.arg(tenant))
	return number(ctx, q.conn, s.String(), s.args...)
}

// set finds the rows that a filter selects from index entries alone.
func (q *queries) set(ctx context.Context, t *table, tenant string, n *node) (*matches, error) {
	if m := q.recall(n, asSet, nil); m != nil && m.complete() {
		return m, nil
	}
	var rids []int64
	cost := int64(0)
	if n.isLeaf() {
		s := &statement{}
		s.entries(t, n, "rid", s.arg(tenant))
		err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
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
		found, err := q.set(ctx, t, tenant, part)
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
