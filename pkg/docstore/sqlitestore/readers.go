package sqlitestore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/idplatform/idplatform/pkg/apperr"
)

const maxReaders = 4

// readers is a pool of reading connections. It opens one when all are in use, up to maxReaders. The connection returned
// last is used first, because its page cache has the most recent pages.
type readers struct {
	open   func(context.Context) (Conn, error)
	slots  chan struct{} // one is held during each read
	closed chan struct{}

	mu   sync.Mutex
	idle []Conn
}

func newReaders(open func(context.Context) (Conn, error)) *readers {
	return &readers{open: open, slots: make(chan struct{}, maxReaders), closed: make(chan struct{})}
}

func (r *readers) close() error {
	close(r.closed)
	for range maxReaders {
		r.slots <- struct{}{}
	}
	var errs []error
	for _, conn := range r.idle {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// take returns an idle connection or opens one. The caller holds a slot.
func (r *readers) take(ctx context.Context) (Conn, error) {
	r.mu.Lock()
	if last := len(r.idle) - 1; last >= 0 {
		conn := r.idle[last]
		r.idle = r.idle[:last]
		r.mu.Unlock()
		return conn, nil
	}
	r.mu.Unlock()
	return r.open(ctx)
}

func (r *readers) give(conn Conn) {
	r.mu.Lock()
	r.idle = append(r.idle, conn)
	r.mu.Unlock()
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
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-r.closed:
		return errClosed
	}
	defer func() { <-r.slots }()
	conn, err := r.take(ctx)
	if err != nil {
		return away(err)
	}
	defer r.give(conn) // also when fn panics
	return away(fn(conn))
}

// snapshot is read for several statements that must see one state of the file.
func (e *Engine) snapshot(ctx context.Context, fn func(Conn) error) error {
	return e.read(ctx, func(conn Conn) error {
		return inSnapshot(ctx, conn, func() error { return fn(conn) })
	})
}

func inSnapshot(ctx context.Context, conn Conn, fn func() error) (err error) {
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	defer func() {
		if _, end := conn.Exec(context.WithoutCancel(ctx), "ROLLBACK"); err == nil {
			err = end
		}
	}()
	return fn()
}

// temporary are the primary result codes of failures that may be temporary: BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL,
// CANTOPEN, PROTOCOL (https://sqlite.org/rescode.html).
var temporary = []int{5, 6, 7, 8, 10, 13, 14, 15}

// away turns failures of the machine, such as a full disk, into apperr.Unavailable: clients may retry.
func away(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok && slices.Contains(temporary, f.Code&0xff) {
		return apperr.Away("the store", err)
	}
	return err
}
