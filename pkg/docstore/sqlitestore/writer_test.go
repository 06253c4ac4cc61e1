package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
)

// held starts a transaction that stays open until release is called.
func held(t *testing.T, f *fixture) (release func() error) {
	t.Helper()
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- f.engine.Write(t.Context(), func(docstore.EngineTx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	return func() error {
		close(end)
		return <-done
	}
}

// queued starts n inserts behind a held transaction. It returns their errors when all have ended.
func queued(t *testing.T, f *fixture, n int) (wait func() []error) {
	t.Helper()
	errs := make([]error, n)
	var started, ended sync.WaitGroup
	for i := range n {
		started.Add(1)
		ended.Go(func() {
			started.Done()
			errs[i] = f.insert(tenant(t), newNote(i))
		})
	}
	started.Wait()
	return func() []error {
		ended.Wait()
		return errs
	}
}

func TestCommitsAreShared(t *testing.T) {
	t.Parallel()
	f := open(t)
	before := f.spy.count("COMMIT")
	release := held(t, f)
	wait := queued(t, f, 200)
	require.NoError(t, release())
	require.NoError(t, errors.Join(wait()...))
	commits := f.spy.count("COMMIT") - before
	require.GreaterOrEqual(t, commits, 200/64, "a batch has a limit")
	require.Less(t, commits, 100, "200 callers share commits")
	require.EqualValues(t, 200, f.count(t))
	require.NoError(t, f.Check(t.Context()))
}

// TestFailedCommit: no caller is told that a transaction was stored if it was not.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	const diskFull, ioError, busy = 13, 10, 5
	for _, code := range []int{diskFull, ioError | 4<<8, busy} {
		f := open(t)
		release := held(t, f)
		wait := queued(t, f, 20)
		f.spy.failOnce("COMMIT", code)
		err := release()
		require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "%v", err)
		kept := int64(0)
		for _, err := range wait() {
			if err == nil {
				kept++
			} else {
				require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "%v", err)
			}
		}
		require.Equal(t, kept, f.count(t))
		require.NoError(t, f.insert(tenant(t), newNote(1000)), "the writer continues")
		require.NoError(t, f.Check(t.Context()))
	}
}

// TestLostBatch: after some failures SQLite has rolled back the whole batch. The test imitates it by rolling back in a
// turn.
func TestLostBatch(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.spy.failOnce("RELEASE", 13)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(f.insert(tenant(t), newNote(1))))
	require.Zero(t, f.count(t))

	f.spy.failOnce("INSERT OR FAIL INTO \"c_notes.words\"", 10)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(f.insert(tenant(t), newNote(1))))
	require.Zero(t, f.count(t))

	f.spy.failOnce("INSERT OR FAIL INTO \"c_notes.words\"", 11)
	require.Equal(t, apperr.Internal, apperr.KindOf(f.insert(tenant(t), newNote(1))), "damage is not temporary")

	f.spy.failOnce("SAVEPOINT", 7)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(f.insert(tenant(t), newNote(1))))
	f.spy.failOnce("BEGIN IMMEDIATE", 5)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(f.insert(tenant(t), newNote(1))))
	require.NoError(t, f.insert(tenant(t), newNote(1)))
	require.NoError(t, f.Check(t.Context()))
}

// TestRefusalsWaitForTheCommit: nobody is refused because of something that was not stored in the end.
func TestRefusalsWaitForTheCommit(t *testing.T) {
	t.Parallel()
	for range 20 {
		f := open(t)
		release := held(t, f)
		errs := make(chan error, 10)
		for range cap(errs) {
			go func() {
				err := f.insert(tenant(t), newNote(1))
				if err != nil && apperr.KindOf(err) != apperr.Unavailable && f.count(t) == 0 {
					err = fmt.Errorf("the note is not there yet: %w", err)
				} else if apperr.KindOf(err) != apperr.Unavailable {
					err = nil
				}
				errs <- err
			}()
		}
		f.spy.failOnce("COMMIT", 13)
		_ = release()
		for range cap(errs) {
			if err := <-errs; err != nil {
				require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "%v", err)
			}
		}
	}
}

func TestGoexitInATransaction(t *testing.T) {
	t.Parallel()
	f := open(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.engine.Write(tenant(t), func(tx docstore.EngineTx) error {
			require.NoError(t, tx.Append(tenant(t), docstore.Message{ID: "m"}))
			runtime.Goexit() // as t.FailNow does
			return nil
		})
	}()
	<-done
	require.NoError(t, f.insert(tenant(t), newNote(1)), "the writer continues")
	n, err := f.Backlog(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestCancelledWhileQueued(t *testing.T) {
	t.Parallel()
	f := open(t)
	release := held(t, f)
	ctx, cancel := context.WithCancel(tenant(t))
	done := make(chan error, 1)
	go func() {
		done <- f.engine.Write(ctx, func(docstore.EngineTx) error { t.Error("it ran"); return nil })
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled, "a caller can give up while another's transaction runs")
	require.NoError(t, release())
}

func TestTransactionAfterItsEnd(t *testing.T) {
	t.Parallel()
	f := open(t)
	var escaped docstore.EngineTx
	require.NoError(t, f.engine.Write(t.Context(), func(tx docstore.EngineTx) error { escaped = tx; return nil }))
	require.Error(t, escaped.Append(t.Context(), docstore.Message{}))
	_, err := escaped.Count(t.Context(), notes.Def(), "t1", docstore.Filter{}, 0)
	require.Error(t, err)
}

func TestClose(t *testing.T) {
	t.Parallel()
	f := open(t)
	release := held(t, f)
	wait := queued(t, f, 10)
	closed := make(chan error, 1)
	go func() { closed <- f.Close() }()
	require.NoError(t, release(), "Close waits for running transactions")
	require.NoError(t, <-closed)
	kept := int64(0)
	for _, err := range wait() {
		if err == nil {
			kept++
		}
	}
	require.Error(t, f.insert(tenant(t), newNote(1)))
	_, err := notes.Find(tenant(t), f.Store, "10001")
	require.Error(t, err)
	require.Error(t, f.Ping(t.Context()))
	require.NoError(t, f.Close(), "a second Close does nothing")
	require.Equal(t, kept, openAt(t, f.path, notes).count(t), "what is stored is what was acknowledged")
}

// TestTwoEngines: two engines on one file wait for each other and keep counters and sequences right.
func TestTwoEngines(t *testing.T) {
	t.Parallel()
	a := open(t)
	b := openAt(t, a.path, notes)
	var wg sync.WaitGroup
	errs := make([]error, 40)
	for i := range errs {
		wg.Go(func() { errs[i] = []*fixture{a, b}[i%2].insert(tenant(t), newNote(i)) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, 40, a.count(t))
	require.EqualValues(t, 40, b.count(t))
	first, err := a.engine.Reserve(t.Context(), "s", 2)
	require.NoError(t, err)
	second, err := b.engine.Reserve(t.Context(), "s", 2)
	require.NoError(t, err)
	require.Equal(t, first+2, second)
	require.NoError(t, a.Check(t.Context()))
}

// TestReadersAreInterrupted: a cancelled read returns its connection at once.
func TestReadersAreInterrupted(t *testing.T) {
	t.Parallel()
	conn, err := sqlitestore.Default(t.Context(), open(t).path)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0 OR " +
		"i = 10"
	err = conn.Query(ctx, endless, nil, func(sqlitestore.Columns) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, conn.Query(t.Context(), "SELECT 1", nil, func(sqlitestore.Columns) error {
		return nil
	}), "it can be used again")
}
