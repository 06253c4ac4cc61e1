package condition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCached(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t)
	first, err := env.Cached("user.n == 1")
	require.NoError(t, err)
	again, err := env.Cached("user.n == 1")
	require.NoError(t, err)
	require.Same(t, first, again)
	_, err = env.Cached("user.n ==")
	require.Error(t, err)
	_, again2 := env.Cached("user.n ==")
	require.Same(t, err, again2)

	_, err = env.Cached(strings.Repeat(" ", MaxLength+1))
	require.ErrorContains(t, err, "at most 4096 bytes")
	for i := range 100 {
		_, err = env.Cached(fmt.Sprintf("user.n == %d %s", i, strings.Repeat(" ", 4000)))
		require.NoError(t, err)
	}
	require.Less(t, env.programs.Len(), 40)
}
