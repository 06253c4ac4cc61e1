package mongostore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	var all turns
	leave, err := all.enter(t.Context(), "a")
	require.NoError(t, err)
	for _, keys := range [][]string{{"b"}, nil, {"b", "c"}} { // other keys, or no key, do not wait
		leave, err := all.enterAll(t.Context(), keys)
		require.NoError(t, err)
		leave()
	}
	entered := make(chan func(), 1)
	go func() {
		leave, err := all.enterAll(t.Context(), []string{"a", "z"})
		if err != nil {
			t.Error(err)
		}
		entered <- leave
	}()
	waiting := func(n int) func() bool {
		return func() bool {
			all.mu.Lock()
			defer all.mu.Unlock()
			return all.queue["a"].in == n
		}
	}
	wait.Until(t, waiting(2))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = all.enterAll(cancelled, []string{"A", "a"})
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, all.queue, "A", "the turn that it had is over")
	require.True(t, waiting(2)(), "a caller that gave up waits no longer")
	require.Empty(t, entered)
	leave()
	(<-entered)()
	require.Empty(t, all.queue, "nothing is kept of keys that nobody waits for")
}

func TestTurnsAreBounded(t *testing.T) {
	t.Parallel()
	all := turns{queue: map[string]*queue{"a": {turn: make(chan struct{}, 1), in: maxWaiting + 1}}}
	_, err := all.enter(t.Context(), "a")
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
}

// TestWritesTakeTurns: a transaction begins when the one before it has ended.
func TestWritesTakeTurns(t *testing.T) {
	t.Parallel()
	e := newFakeServer(t, nil).open(t)
	ctx := docstore.InTurn(request.System(t.Context(), "t1"), "key")
	inside := make(chan struct{}, 1)
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			done <- e.Write(ctx, func(tx docstore.EngineTx) error {
				select {
				case inside <- struct{}{}:
				default:
					t.Error("two have the turn")
				}
				err := tx.Insert(ctx, def, entry(newThing("a")))
				<-inside
				return err
			})
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
	require.NoError(t, e.Write(docstore.InTurn(ctx, "key"), func(docstore.EngineTx) error {
		return e.Write(docstore.InTurn(request.System(ctx, "t2"), "key"), func(docstore.EngineTx) error { return nil })
	}), "another tenant's key is a different one")
}
