package sqlitestore_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Connections are opened by the load, not by the number of reads, and no more than there are slots.
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
