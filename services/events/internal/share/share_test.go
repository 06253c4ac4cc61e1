package share

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
)

// A change that comes between two calls of Changed is told by the number, and one that comes after by the channel.
func TestChangedTellsOfEachChange(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(t.TempDir(), "db"), Log: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	store, err := docstore.Open(t.Context(), engine, clock.System, Collections()...)
	require.NoError(t, err)
	ctx := request.System(t.Context(), request.Platform)
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
