package gateway

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestID(t *testing.T) {
	t.Parallel()
	for _, sane := range []string{"a", "Az09._-", strings.Repeat("x", maxRequestID)} {
		require.Equal(t, sane, requestID(sane))
	}
	seen := map[string]bool{}
	for _, bad := range []string{"", "with space", "new\nline", "李", "a/b", `"`, strings.Repeat("x", maxRequestID+1)} {
		id := requestID(bad)
		require.NotEqual(t, bad, id)
		require.True(t, saneRequestID(id), id)
		require.False(t, seen[id])
		seen[id] = true
	}
}
