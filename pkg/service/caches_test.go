package service

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCachesAreShared(t *testing.T) {
	t.Parallel()
	heavy, plain, other := Spec{Name: "heavy", CacheWeight: 3}, Spec{Name: "plain"}, Spec{Name: "other", CacheWeight: 1}
	all := []Spec{heavy, plain, other}
	c := Caches{MiB: 20}
	require.EqualValues(t, 12<<20, c.Share(heavy, all))
	require.EqualValues(t, 4<<20, c.Share(plain, all))
	require.EqualValues(t, 4<<20, c.Share(other, all))
	require.EqualValues(t, 20<<20, c.Share(plain, []Spec{plain}), "alone it has all")

	require.NoError(t, c.Check(all...))
	require.ErrorContains(t, Caches{MiB: 19}.Check(all...),
		"cache_memory.mib is too small: each of the 3 services needs 4 MiB")
	require.Error(t, Caches{MiB: -1}.Check(plain))
}
