package fair

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// guest is a caller that stays inside until leave is closed.
type guest struct {
	inside bool
	leave  chan struct{}
	done   chan error
}

// enter must be called in a synctest bubble; afterwards the guest is inside, waiting or refused.
func enter(ctx context.Context, g *Semaphore, space int64) *guest {
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
		g := NewSemaphore("guests", 10, 10)
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
		g := NewSemaphore("guests", 10, 10)
		a, large, b := enter(t.Context(), g, 1), enter(t.Context(), g, 1000), enter(t.Context(), g, 1)
		require.True(t, a.inside)
		require.False(t, large.inside)
		require.False(t, b.inside, "a small caller must not go before a large one")
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
		g := NewSemaphore("guests", 1, 2)
		a, b, c := enter(t.Context(), g, 1), enter(t.Context(), g, 1), enter(t.Context(), g, 1)
		e, ok := errors.AsType[*apperr.Error](<-c.done)
		require.True(t, ok)
		require.Equal(t, apperr.Unavailable, e.Kind)
		require.Positive(t, e.RetryAfter)
		require.False(t, c.inside)
		a.exit(t)
		b.exit(t)
		enter(t.Context(), g, 1).exit(t) // there is space again
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewSemaphore("guests", 1, 2)
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

// Tenants that wait get their turns one after the other.
func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewSemaphore("guests", 1, 10)
		acme, globex := request.System(t.Context(), "acme"), request.System(t.Context(), "globex")
		initech := request.System(t.Context(), "initech")
		var order []*guest
		for _, ctx := range []context.Context{acme, acme, acme, globex, initech, globex} {
			order = append(order, enter(ctx, g, 1))
		}
		for _, next := range []int{0, 1, 3, 4, 2, 5} {
			for i, w := range order {
				require.Equal(t, i == next, w != nil && w.inside, "guest %d of %d", i, next)
			}
			order[next].exit(t)
			order[next] = nil
		}
		require.Empty(t, g.callers)
		require.Empty(t, g.waiting)
		require.Empty(t, g.turns)
	})
}

// If there are too many callers, one of the tenant with the most callers is sent away, but only for a tenant with
// fewer.
func TestTheTenantWithMostCallersGivesWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewSemaphore("guests", 1, 4)
		acme, globex := request.System(t.Context(), "acme"), request.System(t.Context(), "globex")
		a := []*guest{enter(acme, g, 1), enter(acme, g, 1), enter(acme, g, 1), enter(acme, g, 1)}
		require.Equal(t, apperr.Unavailable, apperr.KindOf(<-enter(acme, g, 1).done))
		b := enter(globex, g, 1)
		require.Equal(t, apperr.Unavailable, apperr.KindOf(<-a[3].done), "the one that came last")
		b2 := enter(globex, g, 1)
		require.Equal(t, apperr.Unavailable, apperr.KindOf(<-a[2].done))
		require.Equal(t, apperr.Unavailable, apperr.KindOf(<-enter(globex, g, 1).done),
			"with two callers each, none gives way")
		require.Equal(t, apperr.Unavailable, apperr.KindOf(<-enter(acme, g, 1).done))
		for _, w := range []*guest{a[0], a[1], b, b2} {
			require.True(t, w.inside)
			w.exit(t)
		}
		require.Zero(t, g.all)
		require.EqualValues(t, 1, g.free)
	})
}

func TestPanicLeavesTheRoom(t *testing.T) {
	t.Parallel()
	g := NewSemaphore("guests", 1, 1)
	require.Panics(t, func() { _ = g.Do(context.Background(), 1, func() { panic("x") }) })
	require.NoError(t, g.Do(t.Context(), 1, func() {}))
}

// There are never more callers inside than allowed, even if callers give up meanwhile. In the end nobody waits.
func TestSemaphoreUnderLoad(t *testing.T) {
	t.Parallel()
	const limit = 3
	g := NewSemaphore("guests", limit, Any)
	var working, peak atomic.Int64
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%3 == 0 {
				go cancel()
			}
			defer cancel()
			leave, err := g.Enter(ctx, fmt.Sprint(i%7), 1)
			if err != nil {
				return
			}
			for now := working.Add(1); now > peak.Load(); {
				peak.Store(now)
			}
			working.Add(-1)
			leave()
		})
	}
	all.Wait()
	require.LessOrEqual(t, peak.Load(), int64(limit))
	require.EqualValues(t, limit, g.free)
	require.Empty(t, g.turns)
	require.Empty(t, g.waiting)
	require.Empty(t, g.callers)
}

// A key that has its share waits, and does not delay others.
func TestShareOfARoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewSemaphore("guests", 4, 10)
		g.Share(2)
		acme, globex := request.System(t.Context(), "acme"), request.System(t.Context(), "globex")
		a := []*guest{enter(acme, g, 1), enter(acme, g, 1), enter(acme, g, 1)}
		require.True(t, a[0].inside && a[1].inside)
		require.False(t, a[2].inside, "there is room, but its key has its share")
		large := enter(globex, g, 3)
		require.False(t, large.inside, "it needs more than is free")
		b := enter(globex, g, 1)
		a[0].exit(t)
		require.True(t, a[2].inside)
		require.False(t, large.inside)
		a[1].exit(t)
		require.True(t, large.inside, "more than a share, for a key that has nothing")
		require.False(t, b.inside)
		large.exit(t)
		require.True(t, b.inside)
		a[2].exit(t)
		b.exit(t)
		require.Empty(t, g.held)
		require.Empty(t, g.turns)
		require.EqualValues(t, 4, g.free)
	})
}
