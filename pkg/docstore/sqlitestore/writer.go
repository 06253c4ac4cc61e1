package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/idplatform/idplatform/pkg/docstore"
)

const (
	maxBatch = 64  // transactions in one commit
	maxQueue = 256 // transactions waiting; more callers wait to be queued
)

// writer owns the writing connection. It gives each queued caller a turn, in a savepoint of its own, commits once for all that
// queued up meanwhile, and only then answers them. So the price of a durable commit is shared, and one caller's failure is only its
// own. A caller's function runs on the caller's goroutine, so panics, runtime.Goexit and profiles are where they belong.
type writer struct {
	conn    Conn
	queue   chan *turn
	closing chan struct{}
	stopped chan struct{}
}

// turn is one caller's transaction on its way through the writer.
type turn struct {
	taken  atomic.Bool   // by the writer, to run it, or by the caller, who gave up
	begin  chan struct{} // the writer: it is your turn
	ended  chan error    // the caller: fn has returned
	answer chan error    // the writer: committed, or not
	large  bool          // changes so much that it should have no savepoint: SQLite keeps what those undo in memory
}

func startWriter(conn Conn) *writer {
	w := &writer{conn: conn, queue: make(chan *turn, maxQueue), closing: make(chan struct{}), stopped: make(chan struct{})}
	go w.loop()
	return w
}

func (w *writer) close() error {
	close(w.closing)
	<-w.stopped
	return w.conn.Close()
}

// do runs fn, which may write, in a transaction of its own.
func (w *writer) do(ctx context.Context, fn func(Conn) error) error {
	return w.take(ctx, &turn{}, fn)
}

func (w *writer) take(ctx context.Context, t *turn, fn func(Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.begin, t.ended, t.answer = make(chan struct{}, 1), make(chan error, 1), make(chan error, 1)
	select {
	case <-w.closing:
		return errClosed
	default:
	}
	select {
	case w.queue <- t:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.closing:
		return errClosed
	}
	var leaving error
	select {
	case <-t.begin:
	case err := <-t.answer: // no transaction could be begun
		return err
	case <-ctx.Done():
		leaving = ctx.Err()
	case <-w.stopped: // it was queued in the moment after the last
		leaving = errClosed
	}
	if leaving != nil {
		if t.taken.CompareAndSwap(false, true) {
			return leaving
		}
		select { // too late: the turn comes
		case <-t.begin:
		case err := <-t.answer:
			return err
		}
	}
	func() {
		err := errGoexit
		defer func() { t.ended <- err }() // also on Goexit, or the writer would wait for ever
		if ctx.Err() != nil {
			err = ctx.Err()
			return
		}
		err = protect(func() error { return fn(w.conn) })
	}()
	// From here on the outcome is the batch's, and must be waited for: giving up now would leave it unknown.
	return <-t.answer
}

var errGoexit = errors.New("sqlitestore: a transaction ended its goroutine")

func protect(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("sqlitestore: panic in a transaction: %v\n%s", r, debug.Stack())
		}
	}()
	return fn()
}

func (w *writer) loop() {
	defer close(w.stopped)
	for {
		select {
		case t := <-w.queue:
			w.batch(t)
		case <-w.closing:
			for {
				select {
				case t := <-w.queue:
					w.batch(t)
				default:
					return
				}
			}
		}
	}
}

// batch runs first and all that follow it closely, and commits once.
func (w *writer) batch(first *turn) {
	var ok []*turn // those to be committed
	begun := false
	ran := 0
	for t := first; t != nil; t = w.next(ran) {
		if !t.taken.CompareAndSwap(false, true) {
			continue // its caller has left
		}
		if !begun {
			if err := w.exec("BEGIN IMMEDIATE"); err != nil {
				t.answer <- away(err)
				return
			}
			begun = true
		}
		if t.large && ran == 0 {
			w.alone(t)
			return
		}
		err, lost := w.run(t)
		ran++
		if err != nil {
			t.answer <- away(err)
		} else {
			ok = append(ok, t)
		}
		if lost != nil {
			_ = w.exec("ROLLBACK") // SQLite has done so itself, most likely
			for _, t := range ok {
				t.answer <- away(lost)
			}
			return
		}
	}
	if !begun {
		return
	}
	err := w.exec("COMMIT")
	if err != nil {
		_ = w.exec("ROLLBACK") // so that the next batch can begin
	}
	for _, t := range ok {
		t.answer <- away(err)
	}
}

// alone gives a turn the transaction that has begun.
func (w *writer) alone(t *turn) {
	t.begin <- struct{}{}
	err := <-t.ended
	if err == nil {
		err = w.exec("COMMIT")
	}
	if err != nil {
		_ = w.exec("ROLLBACK") // SQLite may have done so itself
	}
	t.answer <- away(err)
}

// next takes the next turn from the queue, if there is one, or comes when callers that are ready get to run, and the batch is not full.
func (w *writer) next(ran int) *turn {
	if ran == maxBatch {
		return nil
	}
	for yielded := false; ; yielded = true {
		select {
		case t := <-w.queue:
			return t
		default:
		}
		if yielded {
			return nil
		}
		runtime.Gosched()
	}
}

// run gives a caller its turn. lost says that the whole batch is gone: after some failures (disk full, I/O error) SQLite rolls back the transaction
// itself, and then there is no savepoint left.
func (w *writer) run(t *turn) (err, lost error) {
	if err := w.exec("SAVEPOINT turn"); err != nil {
		return err, err
	}
	t.begin <- struct{}{}
	if err = <-t.ended; err != nil {
		if lost = w.exec("ROLLBACK TO turn"); lost != nil {
			return err, lost
		}
	}
	if lost = w.exec("RELEASE turn"); lost != nil && err == nil {
		err = lost
	}
	return err, lost
}

func (w *writer) exec(sql string) error {
	_, err := w.conn.Exec(context.Background(), sql)
	return err
}

// Write runs fn in a transaction.
func (e *Engine) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	return e.writer.do(ctx, func(conn Conn) error {
		tx := &tx{queries: queries{engine: e, conn: conn, counts: map[counter]int64{}}}
		defer func() { tx.broken = errEnded }()
		if err := fn(tx); err != nil {
			return err
		}
		return tx.finish(ctx)
	})
}
