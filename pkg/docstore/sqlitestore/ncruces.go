package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Default is the driver for github.com/ncruces/go-sqlite3, which is SQLite without cgo.
func Default(ctx context.Context, path string) (Conn, error) {
	uri, err := FileURI(path)
	if err != nil {
		return nil, err
	}
	// modeof gives the files beside the database the mode of the database file, as SQLite in C does by itself. SQLite
	// reads %20, not +, as a space.
	uri += "?modeof=" + strings.ReplaceAll(url.QueryEscape(path), "+", "%20")
	db, err := sqlite3.OpenContext(ctx, uri)
	if err != nil {
		return nil, err
	}
	return &ncruces{db: db, stmts: map[string]*sqlite3.Stmt{}}, nil
}

// FileURI returns the URI of a path in which SQLite takes every character as part of the name.
func FileURI(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String(), nil
}

type ncruces struct {
	db    *sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
}

func (c *ncruces) prepare(sql string, args []any) (*sqlite3.Stmt, error) {
	stmt := c.stmts[sql]
	if stmt == nil {
		if len(c.stmts) >= MaxStatements {
			for _, s := range c.stmts {
				_ = s.Close() // reports the statement's last failure only
			}
			clear(c.stmts)
		}
		var err error
		if stmt, _, err = c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, err
		}
		c.stmts[sql] = stmt
	}
	for i, arg := range args {
		var err error
		switch arg := arg.(type) {
		case int64:
			err = stmt.BindInt64(i+1, arg)
		case string:
			err = stmt.BindText(i+1, arg)
		case []byte:
			err = stmt.BindBlob(i+1, arg)
		default:
			err = fmt.Errorf("argument of type %T", arg)
		}
		if err != nil {
			return nil, err
		}
	}
	return stmt, nil
}

func (c *ncruces) Exec(ctx context.Context, sql string, args ...any) (Result, error) {
	defer c.db.SetInterrupt(c.db.SetInterrupt(ctx))
	stmt, err := c.prepare(sql, args)
	if err == nil {
		err = stmt.Exec()
	}
	if err != nil {
		return Result{}, failure(ctx, err)
	}
	return Result{Changed: c.db.Changes(), RowID: c.db.LastInsertRowID()}, nil
}

func (c *ncruces) Query(ctx context.Context, sql string, args []any, each func(Columns) error) error {
	defer c.db.SetInterrupt(c.db.SetInterrupt(ctx))
	stmt, err := c.prepare(sql, args)
	if err != nil {
		return failure(ctx, err)
	}
	defer stmt.Reset() // returns the error of the last step again
	for stmt.Step() {
		if err := each(columns{stmt}); err != nil {
			return err
		}
	}
	return failure(ctx, stmt.Err())
}

// backupPages is how many pages are copied at a time: 4 MiB.
const backupPages = 1024

func (c *ncruces) Backup(ctx context.Context, path string, copied func(int64)) (err error) {
	uri, err := FileURI(path)
	if err != nil {
		return err
	}
	size, err := number(ctx, c, "PRAGMA page_size")
	if err != nil {
		return err
	}
	backup, err := c.db.BackupInit("main", uri)
	if err != nil {
		return failure(ctx, err)
	}
	defer func() {
		if closed := backup.Close(); err == nil { // otherwise it returns the failure again
			err = failure(ctx, closed)
		}
	}()
	for done := false; !done; copied(int64(backup.PageCount()-backup.Remaining()) * size) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done, err = backup.Step(backupPages); err != nil {
			return failure(ctx, err)
		}
	}
	return nil
}

func (c *ncruces) Close() error {
	for _, s := range c.stmts {
		_ = s.Close() // reports the statement's last failure only
	}
	return c.db.Close()
}

type columns struct{ stmt *sqlite3.Stmt }

func (c columns) Int(column int) int64    { return c.stmt.ColumnInt64(column) }
func (c columns) Bytes(column int) []byte { return c.stmt.ColumnRawBlob(column) }

func failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var code sqlite3.ExtendedErrorCode
	if errors.As(err, &code) {
		return &Failure{Code: int(code), Err: err}
	}
	return err
}
