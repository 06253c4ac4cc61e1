package engine

import (
	"cmp"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSmallest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's
	for range 100 {
		few := smallest[int]{limit: 5, compare: cmp.Compare[int]}
		all := smallest[int]{limit: 20, compare: cmp.Compare[int]}
		for _, n := range random.Perm(60) {
			few.add(n / 4)
			all.add(n / 4)
		}
		few.trim()
		all.trim()
		require.Equal(t, []int{0, 1, 2, 3, 4}, few.values)
		require.True(t, few.more)
		require.Len(t, all.values, 15)
		require.False(t, all.more)
	}
}
