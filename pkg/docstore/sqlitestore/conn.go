package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Driver opens a connection to a database file for reading and writing. It creates the file if it is missing.
type Driver func(ctx context.Context, path string) (Conn, error)

// Conn is one connection to SQLite, for one goroutine at a time. It is all that the engine needs of a driver.
// Statements are prepared once and kept (at most MaxStatements).
//
// Arguments are int64, string and []byte (nil is the empty blob, never NULL); ?1 is the first. Errors from SQLite are
// *Failure. A context that ends while a statement runs interrupts it; the error is then the context's. Never give a
// cancellable context to a statement that writes: when it is interrupted, SQLite rolls back the whole transaction,
// including the parts of other callers.
type Conn interface {
	// Exec runs one statement.
	Exec(ctx context.Context, sql string, args ...any) (Result, error)
	// Query runs one statement and calls each with every row. It stops at each's first error and returns that error.
	Query(ctx context.Context, sql string, args []any, each func(Columns) error) error
	// Backup copies the state that the connection sees to an empty file, page by page, and syncs the file. copied is
	// called now and then with the number of bytes so far.
	Backup(ctx context.Context, path string, copied func(int64)) error
	// Close closes the connection and its statements.
	Close() error
}

// MaxStatements bounds the prepared statements of a connection. There are few different statement texts, unless filters
// vary without limit.
const MaxStatements = 512

// Result is the effect of Exec.
type Result struct {
	Changed int64 // number of rows
	RowID   int64 // the last inserted row
}

// Columns is the current row of a query; the first column is 0.
type Columns interface {
	Int(column int) int64
	// Bytes returns a text or blob. The bytes are valid until each returns.
	Bytes(column int) []byte
}

// Failure is an error from SQLite.
type Failure struct {
	Code int // extended result code (https://sqlite.org/rescode.html)
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the driver's error.
func (f *Failure) Unwrap() error { return f.Err }

const constraint = 19 // primary result code of a violated constraint

func isConstraint(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Code&0xff == constraint
}

// script runs statements without arguments and ignores their rows.
func script(ctx context.Context, conn Conn, sql string) error {
	for s := range strings.SplitSeq(sql, ";") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		if err := conn.Query(ctx, s, nil, func(Columns) error { return nil }); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// number reads the only column of the only row. It returns 0 if there is no row.
func number(ctx context.Context, conn Conn, sql string, args ...any) (int64, error) {
	var n int64
	err := conn.Query(ctx, sql, args, func(c Columns) error {
		n = c.Int(0)
		return nil
	})
	return n, err
}
