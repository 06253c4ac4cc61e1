package sqlitestore

import (
	"context"
	"errors"
	"slices"

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

// read runs fn with a reading connection.
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
			if _, end := conn.Exec(context.WithoutCancel(ctx), "ROLLBACK"); err == nil {
				err = end
			}
		}()
		return fn(conn)
	})
}

// Primary result codes of failures that may pass: BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL.
var passing = []int{5, 6, 7, 8, 10, 13, 14, 15}

// away makes failures that are the machine's, like a full disk, errors that clients may retry.
func away(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok && slices.Contains(passing, f.Code&0xff) {
		return apperr.Away("the store", err)
	}
	return err
}
