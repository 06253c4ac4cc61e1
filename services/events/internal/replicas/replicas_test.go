package replicas

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
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
// One that is alone owns all work whenever its heartbeat comes.
func TestALateHeartbeatIsAChange(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), request.Platform)
	store, log := basic.Store(t, basic.NewClock(), Collections()...), basic.Log(t)
	g, alone := New(store, log, false), New(store, log, true)
	for _, g := range []*Group{g, alone} {
		require.False(t, g.Owns("work"))
		require.NoError(t, g.clear(ctx))
		require.NoError(t, g.beat(ctx))
		require.True(t, g.Owns("work"))
		before, changed := g.Changed()
		g.shown = g.shown.Add(-quiet)
		require.Equal(t, g == alone, g.Owns("work"))
		require.Equal(t, g == alone, g.Alive())
		require.NoError(t, g.beat(ctx))
		require.True(t, g.Owns("work"))
		after, _ := g.Changed()
		require.Equal(t, g == alone, before == after)
		require.Equal(t, g != alone, closed(changed))
		require.NoError(t, g.leave(ctx))
	}
}

// After a crash, the next process takes all work at once if it alone can have the store. Otherwise the member that it
// finds may be alive.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		ctx := request.System(t.Context(), request.Platform)
		store, log := basic.Store(t, basic.NewClock(), Collections()...), basic.Log(t)
		killed := New(store, log, alone)
		require.NoError(t, killed.beat(ctx))
		next := New(store, log, alone)
		require.NoError(t, next.clear(ctx))
		require.NoError(t, next.beat(ctx))
		require.Equal(t, !alone, next.Lives(killed.ID))
		require.Equal(t, alone, next.MayTake(killed.ID))
	}
}
