// Package moderncdriver runs sqlitestore on modernc.org/sqlite instead of its default driver. It is the replacement if
// the default driver is no longer maintained, and it shows that the engine depends on SQLite only, not on one port of
// it. It is a module of its own, so that its dependencies are not part of the product.
package moderncdriver

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"modernc.org/sqlite"

	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
)

// Open is a sqlitestore.Driver.
func Open(ctx context.Context, path string) (sqlitestore.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	uri, err := sqlitestore.FileURI(path)
	if err != nil {
		return nil, err
	}
	db, err := new(sqlite.Driver).Open(uri)
	if err != nil {
		return nil, failure(ctx, err)
	}
	return &conn{db: db, statements: map[string]statement{}}, nil
}

type statement interface {
	driver.StmtExecContext
	driver.StmtQueryContext
	Close() error
}

type conn struct {
	db         driver.Conn
	statements map[string]statement
}

func (c *conn) prepare(sql string) (statement, error) {
	if s := c.statements[sql]; s != nil {
		return s, nil
	}
	if len(c.statements) >= sqlitestore.MaxStatements {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	prepared, err := c.db.Prepare(sql)
	if err != nil {
		return nil, err
	}
	s, ok := prepared.(statement)
	if !ok {
		return nil, errors.Join(errors.New("moderncdriver: the driver's statements lack contexts"), prepared.Close())
	}
	c.statements[sql] = s
	return s, nil
}

func (c *conn) forget() error {
	var errs []error
	for _, s := range c.statements {
		errs = append(errs, s.Close())
	}
	clear(c.statements)
	return errors.Join(errs...)
}

func (c *conn) Exec(ctx context.Context, sql string, args ...any) (sqlitestore.Result, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return sqlitestore.Result{}, failure(ctx, err)
	}
	res, err := s.ExecContext(ctx, named(args))
	if err != nil {
		return sqlitestore.Result{}, failure(ctx, err)
	}
	changed, err := res.RowsAffected()
	if err != nil {
		return sqlitestore.Result{}, err
	}
	rowID, err := res.LastInsertId()
	return sqlitestore.Result{Changed: changed, RowID: rowID}, err
}

func (c *conn) Query(ctx context.Context, sql string, args []any, each func(sqlitestore.Columns) error) (err error) {
	s, err := c.prepare(sql)
	if err != nil {
		return failure(ctx, err)
	}
	rows, err := s.QueryContext(ctx, named(args))
	if err != nil {
		return failure(ctx, err)
	}
	defer func() {
		if closed := rows.Close(); err == nil {
			err = failure(ctx, closed)
		}
	}()
	row := make(columns, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return failure(ctx, err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

func (c *conn) Close() error { return errors.Join(c.forget(), c.db.Close()) }

func named(args []any) []driver.NamedValue {
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		if b, ok := arg.([]byte); ok && b == nil {
			arg = []byte{} // nil would be NULL
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return values
}

type columns []driver.Value

func (c columns) Int(i int) int64 {
	n, _ := c[i].(int64)
	return n
}

func (c columns) Bytes(i int) []byte {
	if s, ok := c[i].(string); ok {
		return []byte(s)
	}
	b, _ := c[i].([]byte)
	return b
}

func failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return &sqlitestore.Failure{Code: e.Code(), Err: err}
	}
	return err
}
