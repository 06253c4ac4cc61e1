package docstoretest

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func reserve(t *testing.T, s *suite) {
	f := s.open(t)
	ctx := t.Context()
	first, err := f.engine.Reserve(ctx, "other", 5)
	require.NoError(t, err)
	require.EqualValues(t, 1, first)
	const callers, each, size = 16, 8, 3
	blocks := make(chan int64, callers*each)
	allOf(t, callers, func(int) error {
		for range each {
			first, err := f.engine.Reserve(ctx, "seq", size)
			if err != nil {
				return err
			}
			blocks <- first
		}
		return nil
	})
	close(blocks)
	seen := map[int64]bool{}
	for first := range blocks {
		require.GreaterOrEqual(t, first, int64(1))
		for n := first; n < first+size; n++ {
			require.False(t, seen[n], "%d twice", n)
			seen[n] = true
		}
	}
	first, err = f.engine.Reserve(ctx, "other", 1)
	require.NoError(t, err)
	require.EqualValues(t, 6, first, "sequences are independent")
}

func newIDs(t *testing.T, s *suite) {
	f := s.open(t)
	ids := make(chan string, 8*300)
	allOf(t, 8, func(int) error {
		for range 3 {
			list, err := f.NewIDs(t.Context(), 100)
			if err != nil {
				return err
			}
			for _, id := range list {
				ids <- id
			}
		}
		return nil
	})
	close(ids)
	seen := map[string]bool{}
	for id := range ids {
		require.Regexp(t, `^[1-9][0-9]*$`, id)
		require.False(t, seen[id], "%s twice", id)
		seen[id] = true
	}

	const first = 1 << 44
	for range 2 { // the second time changes only the number
		require.NoError(t, f.StartIDsAt(t.Context(), first))
		text, err := f.NewID(t.Context())
		require.NoError(t, err)
		id, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, id, int64(first))
		require.Less(t, id, int64(first)+1<<20)
		require.False(t, seen[text])
		seen[text] = true
	}
}
