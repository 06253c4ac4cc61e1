package bus

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHeaderText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := headerText(rapid.String().Draw(t, "s"))
		require.LessOrEqual(t, len(s), maxReason)
		require.NotContains(t, s, "\n")
		require.NotContains(t, s, "\r")
	})
	long := headerText(string(make([]byte, 5000)) + "山")
	require.Len(t, long, maxReason)
}
