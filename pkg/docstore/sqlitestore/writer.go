package sqlitestore

import (
	"cmp"
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
	maxQueue = 256 // waiting transactions; further callers wait until there is room
)

// writer owns the writing connection. Each queued caller gets a turn in a savepoint of its own. The writer commits the
// turns of all callers that wait at the same time together, and then answers them. So callers share the cost of a
// durable commit, and a failure affects only its own caller. A caller's function runs on the caller's goroutine, so
// that panics, runtime.Goexit and profiles appear there.
type writer struct {
	conn    Conn
	queue   chan *turn
	closing chan struct{}
	stopped chan struct{}
}

// turn is one caller's transaction on its way through the writer.
type turn struct {
	taken  atomic.Bool   // set by the writer to run it, or by a caller that gives up
	begin  chan struct{} // sent by the writer: the turn begins
	ended  chan error    // sent by the caller: fn has returned
	answer chan error    // sent by the writer: committed, or the error
	err    error         // what fn has returned
	large  bool          // it gets no savepoint: SQLite keeps in memory everything that a savepoint could undo
}

func startWriter(conn Conn) *writer {
	w := &writer{conn: conn, queue: make(chan *turn, maxQueue), closing: make(chan struct{}),
		stopped: make(chan struct{})}
	go w.loop()
	return w
}

func (w *writer) close() error {
	close(w.closing)
	<-w.stopped
	return w.conn.Close()
}

// do runs fn, which may write, in a transaction. It fails with errClosed after close.
func (w *writer) do(ctx context.Context, fn func(Conn) error) error {
	return w.take(ctx, &turn{}, fn)
}

// take queues a turn, runs fn when it begins, and returns when it is committed or has failed.
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
	case err := <-t.answer: // beginning the transaction failed
		return err
	case <-ctx.Done():
		leaving = ctx.Err()
	case <-w.stopped: // it was queued after the writer's last turn
		leaving = errClosed
	}
	if leaving != nil {
		if t.taken.CompareAndSwap(false, true) {
			return leaving
		}
		select { // too late to give up: the turn begins
		case <-t.begin:
		case err := <-t.answer:
			return err
		}
	}
	func() {
		err := errGoexit
		defer func() { t.ended <- err }() // also on Goexit; otherwise the writer would wait forever
		if ctx.Err() != nil {
			err = ctx.Err()
			return
		}
		err = protect(func() error { return fn(w.conn) })
	}()
	// From here on the outcome is that of the batch. Giving up now would leave it unknown.
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

// batch runs first and the turns that follow it closely, and commits once. Turns that fail wait for the commit, too:
// their reason may be what an earlier turn wrote, which nobody else can see yet.
func (w *writer) batch(first *turn) {
	var ran []*turn
	begun := false
	for t := first; t != nil; t = w.next(len(ran)) {
		if !t.taken.CompareAndSwap(false, true) {
			continue // its caller gave up
		}
		if !begun {
			if err := w.exec("BEGIN IMMEDIATE"); err != nil {
				t.answer <- away(err)
				return
			}
			begun = true
		}
		if t.large && len(ran) == 0 {
			w.alone(t)
			return
		}
		lost := w.run(t)
		ran = append(ran, t)
		if lost != nil {
			_ = w.exec("ROLLBACK") // in most cases SQLite has already done so
			answerAll(ran[:len(ran)-1], lost)
			t.answer <- away(cmp.Or(t.err, lost))
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
	answerAll(ran, err)
}

// answerAll tells callers how their turns ended: all the same if the batch is lost.
func answerAll(ran []*turn, lost error) {
	for _, t := range ran {
		t.answer <- away(cmp.Or(lost, t.err))
	}
}

// alone runs a turn in a transaction that has just begun, without others.
func (w *writer) alone(t *turn) {
	t.begin <- struct{}{}
	err := <-t.ended
	if err == nil {
		err = w.exec("COMMIT")
	}
	if err != nil {
		_ = w.exec("ROLLBACK") // SQLite may have already done so
	}
	t.answer <- away(err)
}

// next returns the next turn if the batch is not full and there is one in the queue, or one arrives when other
// goroutines that are ready have run.
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

// run gives a caller its turn. lost is the error if the whole batch is rolled back: after some failures (disk full, I/O
// error) SQLite rolls back the transaction itself, and there is no savepoint left.
func (w *writer) run(t *turn) (lost error) {
	if err := w.exec("SAVEPOINT turn"); err != nil {
		t.err = err
		return err
	}
	t.begin <- struct{}{}
	if t.err = <-t.ended; t.err != nil {
		if lost := w.exec("ROLLBACK TO turn"); lost != nil {
			return lost
		}
	}
	return w.exec("RELEASE turn")
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
