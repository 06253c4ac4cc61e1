package share

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// A change that comes between two calls of Changed is told by the number, and one that comes after by the channel.
func TestChangedTellsOfEachChange(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), request.Platform)
	store, log := testkit.Store(t, testkit.NewClock(), Collections()...), testkit.Log(t)
	g, another := New(store, log), New(store, log)
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
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
