package sqlitestore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

// TestLogStaysSmall: however much is written, the write-ahead log takes about 16 MiB of the disk, and after a larger
// transaction it shrinks again.
func TestLogStaysSmall(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	f, ctx := open(t), tenant(t)
	size := func() int64 {
		info, err := os.Stat(f.path + "-wal")
		require.NoError(t, err)
		return info.Size()
	}
	largest := int64(0)
	write := func(notes ...*note) {
		for _, n := range notes {
			n.Title = strings.Repeat("x", 1<<20)
		}
		require.NoError(t, f.insert(ctx, notes...))
		largest = max(largest, size())
	}
	for i := range 60 {
		write(newNote(i))
	}
	require.Less(t, largest, int64(24<<20))
	var many []*note
	for i := range 25 {
		many = append(many, newNote(100+i))
	}
	write(many...)
	require.Greater(t, largest, int64(32<<20), "this test must write a large transaction")
	write(newNote(200))
	write(newNote(201))
	require.LessOrEqual(t, size(), int64(32<<20))
}
