package sqlitestore

import (
	"context"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
)

const maxReaders = 4

// readers is a pool of reading connections, opened when first needed.
type readers struct {
	open   func(context.Context) (Conn, error)
	slots  chan Conn // nil: not opened yet
	closed chan struct{}
}

func newReaders(open func(context.Context) (Conn, error)) *readers {
	r := &readers{open: open, slots: make(chan Conn, maxReaders), closed: make(chan struct{})}
	for range maxReaders {
		r.slots <- nil
	}
	return r
}

func (r *readers) close() error {
	close(r.closed)
	var errs []error
	for range maxReaders {
		if conn := <-r.slots; conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}

// read runs fn with a reading connection. An unexpected failure of SQLite is "unavailable": nothing a client sends may cause one.
func (e *Engine) read(ctx context.Context, fn func(Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := e.readers
	select {
	case <-r.closed:
		return errClosed
	default:
	}
	var conn Conn
	select {
	case conn = <-r.slots:
	case <-ctx.Done():
		return ctx.Err()
	case <-r.closed:
		return errClosed
	}
	defer func() { r.slots <- conn }() // also when fn panics
	if conn == nil {
		opened, err := r.open(ctx)
		if err != nil {
			return away(err)
		}
		conn = opened
	}
	return away(fn(conn))
}

// snapshot is read for several statements that must see the same state.
func (e *Engine) snapshot(ctx context.Context, fn func(Conn) error) error {
	return e.read(ctx, func(conn Conn) (err error) {
		if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
			return err
		}
		defer func() {
			_, end := conn.Exec(context.WithoutCancel(ctx), "ROLLBACK")
			err = errors.Join(err, end)
		}()
		return fn(conn)
	})
}

// away makes failures of SQLite, as a full disk or a busy file, errors that clients may retry.
func away(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok {
		return apperr.Away("the store", f)
	}
	return err
}
