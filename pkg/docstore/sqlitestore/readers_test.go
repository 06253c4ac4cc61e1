package sqlitestore_test

import (
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
)

// Connections are opened when the load needs them, not for each read, and never more than there are slots.
func TestReadersAreOpenedWhenNeeded(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	const opening = "PRAGMA query_only = on"
	require.NoError(t, f.insert(ctx, newNote(1)))
	for range 20 {
		require.EqualValues(t, 1, f.count(t))
	}
	require.Equal(t, 1, f.spy.count(opening))
	var readers sync.WaitGroup
	for range 16 {
		readers.Go(func() {
			for range 50 {
				_, err := notes.Find(ctx, f.Store, newNote(1).ID)
				assert.NoError(t, err)
			}
		})
	}
	readers.Wait()
	require.LessOrEqual(t, f.spy.count(opening), 4)
}

// The page caches of the writer and of as many readers as there can be take seven eighths of Options.Cache; the pages
// of lists have the rest.
func TestCachesTakeWhatTheyMay(t *testing.T) {
	t.Parallel()
	for bytes, size := range map[int64][2]string{16 << 20: {"8192", "1536"}, 0: {"32000", "6000"}} {
		spy := &spy{}
		engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{
			Path: filepath.Join(t.TempDir(), "notes.db"), Driver: spy.open, Log: slog.New(slog.DiscardHandler),
			Cache: bytes,
		})
		require.NoError(t, err)
		require.NoError(t, engine.Ping(t.Context()))
		require.Equal(t, 1, spy.count("PRAGMA cache_size = -"+size[0]), "the writer's")
		require.Equal(t, 1, spy.count("PRAGMA cache_size = -"+size[1]), "three eighths for the four readers together")
		require.NoError(t, engine.Close())
	}
}
