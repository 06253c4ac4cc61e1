package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// queries are the reads, on a connection that sees one state of the file.
type queries struct {
	engine *Engine
	conn   Conn
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
	err = e.snapshot(ctx, func(conn Conn) error {
		rows, err = (&queries{engine: e, conn: conn}).Find(ctx, def, tenant, q)
		return err
	})
	return rows, err
}

// Page reads a query's rows and its total from the last committed state.
func (e *Engine) Page(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) (rows []docstore.Row, total int64, err error) {
	err = e.snapshot(ctx, func(conn Conn) error {
		rows, total, err = (&queries{engine: e, conn: conn}).Page(ctx, def, tenant, q)
		return err
	})
	return rows, total, err
}

// Count counts in the last committed state.
func (e *Engine) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter) (n int64, err error) {
	err = e.snapshot(ctx, func(conn Conn) error {
		n, err = (&queries{engine: e, conn: conn}).Count(ctx, def, tenant, filter)
		return err
	})
	return n, err
}

const maxIDs = 256 // in one statement

func (q *queries) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	t, err := q.engine.table(def)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if len(ids) == 1 {
		return q.rows(ctx, t.get+" = ?2", []any{tenant, ids[0]}, 1)
	}
	values := make([]docstore.Value, len(ids))
	for i, id := range ids {
		values[i] = docstore.Text(id)
	}
	all := in(&t.id, values).values // distinct, so that each document comes once
	rows := make([]docstore.Row, 0, len(all))
	for part := range slices.Chunk(all, maxIDs) {
		s := &statement{}
		s.add("SELECT id, version, due, doc FROM %s INDEXED BY %s WHERE tenant = %s AND ", t.name, t.id.index, s.arg(tenant))
		s.leaf(&node{op: isIn, column: &t.id, values: part})
		some, err := q.rows(ctx, s.String(), s.args, len(part))
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// rows runs a query for id, version, due, doc.
func (q *queries) rows(ctx context.Context, sql string, args []any, capacity int) ([]docstore.Row, error) {
	rows := make([]docstore.Row, 0, capacity)
	err := q.conn.Query(ctx, sql, args, func(c Columns) error {
		rows = append(rows, row(c))
		return nil
	})
	return rows, err
}

func row(c Columns) docstore.Row {
	return docstore.Row{ID: string(c.Bytes(0)), Version: c.Int(1), Due: c.Int(2), Data: append([]byte(nil), c.Bytes(3)...)}
}

var errEnough = errors.New("sqlitestore: enough rows")

func (q *queries) Find(ctx context.Context, def *docstore.Def, tenant string, find docstore.Find) ([]docstore.Row, error) {
	rows, _, err := q.find(ctx, def, tenant, find, false)
	return rows, err
}

func (q *queries) Page(ctx context.Context, def *docstore.Def, tenant string, find docstore.Find) ([]docstore.Row, int64, error) {
	rows, total, err := q.find(ctx, def, tenant, find, true)
	if err == nil && total < 0 {
		total, err = q.Count(ctx, def, tenant, find.Filter)
	}
	return rows, total, err
}

// find finds rows and, if count is set and the way that they are found passes all of the others too, tells how many there are; else −1.
func (q *queries) find(ctx context.Context, def *docstore.Def, tenant string, find docstore.Find, count bool) ([]docstore.Row, int64, error) {
	t, err := q.engine.table(def)
	if err != nil {
		return nil, -1, err
	}
	filter, err := t.normalize(find.Filter)
	if err != nil {
		return nil, -1, err
	}
	order, err := t.ordering(find.Sort)
	if err != nil {
		return nil, -1, err
	}
	if filter.op == isNone {
		return nil, 0, nil
	}
	p, err := q.plan(ctx, t, def, tenant, &filter, order, &find)
	if err != nil {
		return nil, -1, err
	}
	if p.rest == nil {
		rows, err := q.read(ctx, t, p, order, &find)
		return rows, -1, err
	}
	if p.drivers == nil {
		return q.findMany(ctx, t, p, &filter, order, &find, count)
	}
	some, total, err := q.gather(ctx, p, order, &find)
	if err != nil {
		return nil, -1, err
	}
	if find.After != nil {
		total = -1 // of those behind the position only
	}
	rows, err := q.documents(ctx, t, some)
	return rows, total, err
}

// read takes a page straight from SQL.
func (q *queries) read(ctx context.Context, t *table, p *plan, order *ordering, find *docstore.Find) ([]docstore.Row, error) {
	s := p.statement("id, version, due, doc"+selectKeys(order), order, find.After)
	s.limit(int64(find.Limit), int64(find.Offset))
	rows := make([]docstore.Row, 0, min(find.Limit, 1024))
	err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		r := row(c)
		r.Sort = sortValues(c, order, 4)
		rows = append(rows, r)
		return nil
	})
	return rows, err
}

// findMany finds rows of a filter whose every part selects much. What is to be counted needs the set of all rows that it selects, from
// index entries; if that is small, which parts that select much can have in common, the page is made of it, else by a walk.
func (q *queries) findMany(ctx context.Context, t *table, p *plan, filter *node, order *ordering, find *docstore.Find, count bool) ([]docstore.Row, int64, error) {
	total := int64(-1)
	var some []found
	var err error
	if count && find.After == nil && filter.op == isAnd {
		rids, err := q.set(ctx, t, p.tenant, filter)
		if err != nil {
			return nil, -1, err
		}
		if total = int64(len(rids)); total <= maxGathered {
			if some, err = q.keys(ctx, t, rids, order); err != nil {
				return nil, -1, err
			}
			rows, err := q.documents(ctx, t, order.page(some, find))
			return rows, total, err
		}
	}
	if some, err = q.sift(ctx, p, order, find); err != nil {
		return nil, -1, err
	}
	rows, err := q.documents(ctx, t, some)
	return rows, total, err
}

// maxGathered is how many rows are looked up one by one to be sorted.
const maxGathered = 2000

// keys reads what rows are sorted by.
func (q *queries) keys(ctx context.Context, t *table, rids []int64, order *ordering) ([]found, error) {
	all := make([]found, 0, len(rids))
	sql := "SELECT id" + selectKeys(order) + " FROM " + t.name + " WHERE rid = ?1"
	for _, rid := range rids {
		err := q.conn.Query(ctx, sql, []any{rid}, func(c Columns) error {
			all = append(all, found{rid, string(c.Bytes(0)), sortValues(c, order, 1)})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// found is a row that a query selects, before its document is read.
type found struct {
	rid  int64
	id   string
	sort []docstore.Value
}

// test calls each for every row of a plan's candidates that the filter selects, in the plan's order.
func (q *queries) test(ctx context.Context, p *plan, order *ordering, find *docstore.Find, each func(c Columns, keys int) error) error {
	s := p.statement("rid, id"+p.needs.fields+selectKeys(order), order, find.After)
	row := candidate{texts: make([][]byte, len(p.table.keys)), nums: make([]int64, len(p.table.keys))}
	err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		p.needs.fill(&row, c)
		if !p.rest.matches(&row) {
			return nil
		}
		return each(c, 2+p.needs.width)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// sift walks until the page is full.
func (q *queries) sift(ctx context.Context, p *plan, order *ordering, find *docstore.Find) ([]found, error) {
	var page []found
	skip := find.Offset
	err := q.test(ctx, p, order, find, func(c Columns, keys int) error {
		if skip--; skip >= 0 {
			return nil
		}
		page = append(page, found{c.Int(0), "", sortValues(c, order, keys)})
		if len(page) == find.Limit {
			return errEnough
		}
		return nil
	})
	return page, err
}

// gather tests all candidates of a drive, sorts those that are selected, and returns the page and how many there are. SQLite could sort
// them, but not before it has carried each candidate's columns through its sorter.
func (q *queries) gather(ctx context.Context, p *plan, order *ordering, find *docstore.Find) ([]found, int64, error) {
	var all []found
	err := q.test(ctx, p, order, find, func(c Columns, keys int) error {
		all = append(all, found{c.Int(0), string(c.Bytes(1)), sortValues(c, order, keys)})
		return nil
	})
	return order.page(all, find), int64(len(all)), err
}

// documents reads the documents of a page.
func (q *queries) documents(ctx context.Context, t *table, page []found) ([]docstore.Row, error) {
	rows := make([]docstore.Row, 0, len(page))
	for _, f := range page {
		some, err := q.rows(ctx, t.byRID, []any{f.rid}, 1)
		if err != nil {
			return nil, err
		}
		if len(some) != 1 {
			return nil, fmt.Errorf("sqlitestore: %s lost row %d", t.name, f.rid)
		}
		some[0].Sort = f.sort
		rows = append(rows, some[0])
	}
	return rows, nil
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
	case isIn, isBetween:
		return q.countLeaf(ctx, t, tenant, &n)
	}
	if n.op == isOr && !slices.ContainsFunc(n.sub, func(part node) bool { return !part.isLeaf() }) {
		rids, err := q.set(ctx, t, tenant, &n) // the index entries of all parts say it; no row needs to be looked at
		return int64(len(rids)), err
	}
	cap, err := q.worthwhile(ctx, def, tenant, math.MaxInt32)
	if err != nil {
		return 0, err
	}
	drivers, _, err := q.drivers(ctx, t, tenant, &n, cap)
	if err != nil {
		return 0, err
	}
	if drivers == nil {
		rids, err := q.set(ctx, t, tenant, &n)
		return int64(len(rids)), err
	}
	p := drive(t, tenant, drivers, &n)
	s := p.statement("rid, id"+p.needs.fields, nil, nil)
	row := candidate{texts: make([][]byte, len(t.keys)), nums: make([]int64, len(t.keys))}
	count := int64(0)
	err = q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		p.needs.fill(&row, c)
		if n.matches(&row) {
			count++
		}
		return nil
	})
	return count, err
}

// total is the number of a tenant's documents, from the counter that every transaction keeps.
func (q *queries) total(ctx context.Context, def *docstore.Def, tenant string) (int64, error) {
	n, err := number(ctx, q.conn, "SELECT n FROM counters WHERE collection = ?1 AND tenant = ?2", def.Name, tenant)
	return n + q.counts[counter{def.Name, tenant}], err
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

// set gives the rows that a filter selects, sorted, from index entries alone.
func (q *queries) set(ctx context.Context, t *table, tenant string, n *node) ([]int64, error) {
	if n.isLeaf() {
		s := &statement{}
		s.entries(t, n, "rid", s.arg(tenant))
		var rids []int64
		err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
			rids = append(rids, c.Int(0))
			return nil
		})
		slices.Sort(rids)
		return slices.Compact(rids), err
	}
	var all []int64
	for i := range n.sub {
		rids, err := q.set(ctx, t, tenant, &n.sub[i])
		if err != nil {
			return nil, err
		}
		switch {
		case i == 0:
			all = rids
		case n.op == isOr:
			all = append(all, rids...)
			slices.Sort(all)
			all = slices.Compact(all)
		default:
			all = intersect(all, rids)
		}
	}
	return all, nil
}

// intersect keeps in a what is in b too; both are sorted.
func intersect(a, b []int64) []int64 {
	kept := a[:0]
	for _, n := range a {
		for len(b) > 0 && b[0] < n {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == n {
			kept = append(kept, n)
		}
	}
	return kept
}
