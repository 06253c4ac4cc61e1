package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
)

func nothing(context.Context) error { return nil }

func copyTo(t *testing.T, engine *sqlitestore.Engine, path string) {
	t.Helper()
	list, _, err := sqlitestore.Snapshots(t.Context(), []*sqlitestore.Engine{engine}, nothing)
	require.NoError(t, err)
	require.NoError(t, list[0].Copy(t.Context(), path, nil))
	require.ErrorIs(t, list[0].Copy(t.Context(), path, nil), os.ErrExist, "an existing file is not overwritten")
	require.NoError(t, list[0].Close())
}

// One program writes to a first file and then the same to a second one, as services do that follow each other. No
// snapshot of the second has what that of the first has not, and none has what came after the snapshots.
func TestSnapshotsAreOfOneMoment(t *testing.T) {
	t.Parallel()
	first, second := open(t), open(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var done atomic.Int64
	var writing error
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				writing = errors.Join(writing, first.insert(tenant(t), newNote(i)),
					second.insert(tenant(t), newNote(i)))
				done.Add(1)
			}
		}
	})
	for n := range 5 {
		before := done.Load()
		var within int64
		list, waited, err := sqlitestore.Snapshots(t.Context(), []*sqlitestore.Engine{second.engine, first.engine},
			func(context.Context) error { within = done.Load(); return nil })
		require.NoError(t, err)
		require.Positive(t, waited)
		for done.Load() < within+5 { // the snapshots are copied after others have written more
			require.NoError(t, t.Context().Err())
		}
		dir := t.TempDir()
		var counts []int64
		for i, s := range list {
			name := filepath.Join(dir, fmt.Sprintf("copy of a file? %d.db", i))
			var size int64
			require.NoError(t, s.Copy(t.Context(), name, func(n int64) { size = n }))
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, size, info.Size())
			require.NoError(t, s.Close())
			restored := openAt(t, name, notes)
			require.NoError(t, restored.Check(t.Context()))
			counts = append(counts, restored.count(t))
			require.NoError(t, restored.insert(tenant(t), newNote(1_000_000+n)))
		}
		require.LessOrEqual(t, counts[0], counts[1], "the second has only what the first has")
		require.GreaterOrEqual(t, counts[0], before, "what was acknowledged before is there")
		require.LessOrEqual(t, counts[1], within+1, "what came later is not")
	}
	close(stop)
	wg.Wait()
	require.NoError(t, writing, "no writer fails")
}

// A transaction that takes too long lets the others go on, and fails nobody.
func TestSnapshotsGiveUp(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := sqlitestore.Snapshots(ctx, []*sqlitestore.Engine{f.engine}, func(context.Context) error {
		return errors.New("the other part failed")
	})
	require.ErrorContains(t, err, "the other part failed")
	cancel()
	_, _, err = sqlitestore.Snapshots(ctx, []*sqlitestore.Engine{f.engine}, nothing)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, f.insert(tenant(t), newNote(1)), "the writers go on")
}
