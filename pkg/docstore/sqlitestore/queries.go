package sqlitestore

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// queries are the reads on a connection that sees one state of the file.
type queries struct {
	engine  *Engine
	conn    Conn
	results *results          // nil in a transaction
	counts  map[counter]int64 // changes of the running transaction to the counters
}

// Get reads documents by id from the last committed state.
func (e *Engine) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) (rows []docstore.Row,
	err error) {
	read := e.snapshot
	if len(ids) <= maxIDs {
		read = e.read // one statement needs no transaction
	}
	err = read(ctx, func(conn Conn) error {
		rows, err = (&queries{engine: e, conn: conn, results: e.results}).Get(ctx, def, tenant, ids)
		return err
	})
	return rows, err
}

// Find reads a query's rows from the last committed state.
func (e *Engine) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) (rows []docstore.Row,
	err error) {
	planned, err := e.planQuery(def, tenant, q)
	if err != nil {
		return nil, err
	}
	if planned.cached() {
		found, err := e.page(ctx, planned, -1, func(q *queries) (page, error) {
			rows, _, err := q.find(ctx, planned)
			return page{rows: rows}, err
		})
		return found.rows, err
	}
	read := e.snapshot
	if len(planned.byIndexAlone) == 1 && !planned.far() || 0 < len(planned.ids) && len(planned.ids) <= maxIDs {
		read = e.read
	}
	err = read(ctx, func(conn Conn) error {
		rows, _, err = (&queries{engine: e, conn: conn, results: e.results}).find(ctx, planned)
		return err
	})
	return rows, err
}

// Page reads a query's rows and its total from the last committed state.
func (e *Engine) Page(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find,
	exactTo int64) (rows []docstore.Row, total docstore.Total, err error) {
	planned, err := e.planQuery(def, tenant, q)
	if err != nil {
		return nil, docstore.Total{}, err
	}
	if planned.cached() {
		found, err := e.page(ctx, planned, exactTo, func(q *queries) (page, error) {
			rows, total, err := q.page(ctx, planned, exactTo)
			return page{rows, total}, err
		})
		return found.rows, found.total, err
	}
	err = e.snapshot(ctx, func(conn Conn) error {
		rows, total, err = (&queries{engine: e, conn: conn, results: e.results}).page(ctx, planned, exactTo)
		return err
	})
	return rows, total, err
}

// Count counts in the last committed state.
func (e *Engine) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter,
	exactTo int64) (total docstore.Total, err error) {
	err = e.snapshot(ctx, func(conn Conn) error {
		total, err = (&queries{engine: e, conn: conn, results: e.results}).Count(ctx, def, tenant, filter, exactTo)
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

// rowColumns are the columns that row reads.
const rowColumns = "id, version, counts, due, doc"

func row(c Columns) docstore.Row {
	return docstore.Row{
		ID: string(c.Bytes(0)), Stamp: docstore.Stamp{Version: c.Int(1), Counts: c.Int(2)}, Due: c.Int(3),
		Data: append([]byte(nil), c.Bytes(4)...),
	}
}

func (q *queries) Find(ctx context.Context, def *docstore.Def, tenant string, find docstore.Find) ([]docstore.Row,
	error) {
	planned, err := q.engine.planQuery(def, tenant, find)
	if err != nil {
		return nil, err
	}
	rows, _, err := q.find(ctx, planned)
	return rows, err
}

func (q *queries) Page(ctx context.Context, def *docstore.Def, tenant string, find docstore.Find,
	exactTo int64) ([]docstore.Row, docstore.Total, error) {
	planned, err := q.engine.planQuery(def, tenant, find)
	if err != nil {
		return nil, docstore.Total{}, err
	}
	return q.page(ctx, planned, exactTo)
}

func (q *queries) page(
	ctx context.Context, planned *plannedQuery, exactTo int64,
) ([]docstore.Row, docstore.Total, error) {
	planned, err := q.simplified(ctx, planned)
	if err != nil {
		return nil, docstore.Total{}, err
	}
	rows, total, err := q.find(ctx, planned)
	if err != nil || total >= 0 {
		return rows, docstore.UpTo(exactTo, total), err
	}
	counted, err := q.count(ctx, planned.table, planned.tenant, &planned.filter, exactTo)
	return rows, counted, err
}
