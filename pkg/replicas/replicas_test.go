package replicas

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A change that comes between two calls of Changed is told by the number, and one that comes after by the channel.
func TestChangedTellsOfEachChange(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), request.Platform)
	store, log := basic.Store(t, basic.NewClock(), Collections()...), basic.Log(t)
	g, another := New(store, log, false), New(store, log, false)
	require.NoError(t, g.beat(ctx))
	first, changed := g.Changed()
	require.NoError(t, g.beat(ctx))
	require.False(t, closed(changed))
	require.NoError(t, another.beat(ctx))
	require.NoError(t, g.beat(ctx))
	require.True(t, closed(changed))
	second, changed := g.Changed()
	require.NotEqual(t, first, second)
	require.False(t, closed(changed))
}

// A replica whose heartbeat is late owns nothing. That this has ended is a change: nobody took what was to be its work.
func TestALateHeartbeatIsAChange(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), request.Platform)
	g := New(basic.Store(t, basic.NewClock(), Collections()...), basic.Log(t), false)
	require.False(t, g.Owns("work"))
	require.NoError(t, g.beat(ctx))
	require.True(t, g.Owns("work"))
	before, changed := g.Changed()
	g.shown = g.shown.Add(-quiet)
	require.False(t, g.Owns("work"))
	require.False(t, g.Alive())
	require.NoError(t, g.beat(ctx))
	require.True(t, g.Owns("work"))
	after, _ := g.Changed()
	require.NotEqual(t, before, after)
	require.True(t, closed(changed))
	require.NoError(t, g.leave(ctx))
}

// After a crash, the next process takes all work at once if it alone can have the store. Otherwise the member that it
// finds may be alive.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		ctx := request.System(t.Context(), request.Platform)
		store, log := basic.Store(t, basic.NewClock(), Collections()...), basic.Log(t)
		killed := New(store, log, false)
		require.NoError(t, killed.beat(ctx))
		next := New(store, log, alone)
		_, changed := next.Changed()
		ctx, stop := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() { require.NoError(t, next.Run(ctx)) })
		wait.Receive(t, changed)
		require.Equal(t, !alone, next.Lives(killed.ID))
		require.Equal(t, alone, next.MayTake(killed.ID))
		if alone {
			require.True(t, next.Owns("work"))
			require.True(t, next.Alive())
			n, err := members.Count(ctx, store, docstore.Filter{})
			require.NoError(t, err)
			require.Zero(t, n, "it needs no heartbeat")
		}
		stop()
		running.Wait()
	}
}
