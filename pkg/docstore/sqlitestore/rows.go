package sqlitestore

import (
	"context"
	"errors"
	"strconv"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// A document whose id is a number (all ids that docstore makes are) has that number as its row id. One B-tree then
// leads to it instead of two, and documents with neighbouring ids are neighbours on disk. A document with another kind
// of id, or whose row id is taken by another tenant's document, has a negative row id, which the index of ids leads to.

// rowOf returns the row id of a document whose id is a number in canonical form that is not too large.
func rowOf(id string) (row int64, ok bool) {
	if id == "" || len(id) > 18 || id[0] < '1' || id[0] > '9' {
		return 0, false
	}
	row, err := strconv.ParseInt(id, 10, 64)
	return row, err == nil
}

// freeRow is the next row id for a document that cannot use its id.
func (t *table) freeRow(conn Conn) (int64, error) {
	least, err := number(context.Background(), conn, "SELECT rid FROM "+t.name+" ORDER BY rid LIMIT 1")
	return min(least, 0) - 1, err
}

// insertRow writes a document's row and returns its id.
func (t *table) insertRow(conn Conn, def *docstore.Def, e *docstore.Entry) (int64, error) {
	args := make([]any, 8, 8+len(t.keys))
	copy(args, []any{int64(0), e.Tenant, e.ID, e.Version, e.Counts, e.Due, encodeLists(e.Lists), e.JSON})
	for i, c := range t.keys {
		args = append(args, c.arg(e.Keys[i]))
	}
	row, numbered := rowOf(e.ID)
	if numbered {
		args[0] = row
		_, err := conn.Exec(context.Background(), t.insert, args...)
		if err == nil {
			return row, nil
		}
		why := t.taken(conn, def, e, 0, err)
		if _, duplicate := errors.AsType[*docstore.DuplicateError](why); duplicate || !isConstraint(err) {
			return 0, why
		}
	}
	row, err := t.freeRow(conn)
	if err != nil {
		return 0, err
	}
	args[0] = row
	if _, err := conn.Exec(context.Background(), t.insert, args...); err != nil {
		return 0, t.taken(conn, def, e, 0, err)
	}
	return row, nil
}

const maxIDs = 256 // ids in one statement

// byID reads columns of the documents that exist among distinct ids, in no particular order.
func (q *queries) byID(ctx context.Context, t *table, tenant string, ids []string, columns string,
	each func(Columns) error) error {
	if len(ids) == 1 {
		return q.oneByID(ctx, t, tenant, ids[0], columns, each)
	}
	for len(ids) > 0 {
		part := ids[:min(len(ids), maxIDs)]
		ids = ids[len(part):]
		if err := q.fewByID(ctx, t, tenant, part, columns, each); err != nil {
			return err
		}
	}
	return nil
}

// oneByID is fewByID for one id. It does less, because most reads are of one document.
func (q *queries) oneByID(ctx context.Context, t *table, tenant, id, columns string, each func(Columns) error) error {
	if row, ok := rowOf(id); ok {
		found := false
		err := q.conn.Query(ctx, "SELECT "+columns+" FROM "+t.name+" NOT INDEXED WHERE rid = ?1 AND tenant = ?2",
			[]any{row, tenant}, func(c Columns) error {
				found = true
				return each(c)
			})
		if err != nil || found {
			return err
		}
	}
	return q.conn.Query(ctx, "SELECT "+columns+" FROM "+t.name+" INDEXED BY "+t.id.index+
		" WHERE tenant = ?1 AND id = ?2 AND rid < 0", []any{tenant, id}, each)
}

// fewByID reads at most maxIDs documents: those with the row ids that their ids name, then, if some are missing, those
// with negative row ids.
func (q *queries) fewByID(ctx context.Context, t *table, tenant string, ids []string, columns string,
	each func(Columns) error) error {
	found := 0
	rows := make([]any, 0, len(ids))
	for _, id := range ids {
		if row, ok := rowOf(id); ok {
			rows = append(rows, row)
		}
	}
	if len(rows) > 0 {
		s := &statement{}
		s.add("SELECT %s FROM %s NOT INDEXED WHERE ", columns, t.name)
		s.oneOf("rid", rows)
		s.add(" AND tenant = %s", s.arg(tenant))
		err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
			found++
			return each(c)
		})
		if err != nil || found == len(ids) {
			return err
		}
	}
	texts := make([]any, len(ids))
	for i, id := range ids {
		texts[i] = id
	}
	s := &statement{}
	s.add("SELECT %s FROM %s INDEXED BY %s WHERE tenant = %s AND ", columns, t.name, t.id.index, s.arg(tenant))
	s.oneOf("id", texts)
	s.add(" AND rid < 0")
	return q.conn.Query(ctx, s.String(), s.args, each)
}

// oneOf writes the condition that a column has one of the values. It repeats the last value so that there are few
// different statement texts: see atLeast.
func (s *statement) oneOf(field string, values []any) {
	if len(values) == 1 {
		s.add("%s = %s", field, s.arg(values[0]))
		return
	}
	s.add("%s IN (", field)
	last := ""
	for i := range atLeast(len(values)) {
		if i < len(values) {
			last = s.arg(values[i])
		}
		if i > 0 {
			s.add(", ")
		}
		s.add("%s", last)
	}
	s.add(")")
}
