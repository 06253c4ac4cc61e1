package gate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/idplatform/idplatform/pkg/apperr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// guest is work that stays inside until it is let go.
type guest struct {
	inside bool
	leave  chan struct{}
	done   chan error
}

// enter must be called in a synctest bubble; afterwards the guest is inside, waiting or refused.
func enter(ctx context.Context, g *Gate, space int64) *guest {
	w := &guest{leave: make(chan struct{}), done: make(chan error, 1)}
	go func() { w.done <- g.Do(ctx, space, func() { w.inside = true; <-w.leave }) }()
	synctest.Wait()
	return w
}

func (w *guest) exit(t *testing.T) {
	close(w.leave)
	require.NoError(t, <-w.done)
	synctest.Wait()
}

func TestRoomIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New("guests", 10, 10)
		a, b, c := enter(t.Context(), g, 6), enter(t.Context(), g, 4), enter(t.Context(), g, 1)
		require.True(t, a.inside && b.inside)
		require.False(t, c.inside)
		b.exit(t)
		require.True(t, c.inside)
		a.exit(t)
		c.exit(t)
	})
}

func TestWorkLargerThanTheRoomIsDoneAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New("guests", 10, 10)
		a, large, b := enter(t.Context(), g, 1), enter(t.Context(), g, 1000), enter(t.Context(), g, 1)
		require.True(t, a.inside)
		require.False(t, large.inside)
		require.False(t, b.inside, "the small do not starve the large")
		a.exit(t)
		require.True(t, large.inside)
		require.False(t, b.inside)
		large.exit(t)
		require.True(t, b.inside)
		b.exit(t)
	})
}

func TestTooManyCallersAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New("guests", 1, 2)
		a, b, c := enter(t.Context(), g, 1), enter(t.Context(), g, 1), enter(t.Context(), g, 1)
		e, ok := errors.AsType[*apperr.Error](<-c.done)
		require.True(t, ok)
		require.Equal(t, apperr.Unavailable, e.Kind)
		require.Positive(t, e.RetryAfter)
		require.False(t, c.inside)
		a.exit(t)
		b.exit(t)
		enter(t.Context(), g, 1).exit(t) // there is room again
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New("guests", 1, 2)
		a := enter(t.Context(), g, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b := enter(ctx, g, 1)
		err := <-b.done
		require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, b.inside)
		a.exit(t)
		enter(t.Context(), g, 1).exit(t)
	})
}

func TestPanicLeavesTheRoom(t *testing.T) {
	t.Parallel()
	g := New("guests", 1, 1)
	require.Panics(t, func() { _ = g.Do(context.Background(), 1, func() { panic("x") }) })
	require.NoError(t, g.Do(t.Context(), 1, func() {}))
}
