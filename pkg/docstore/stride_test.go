package docstore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStride(t *testing.T) {
	t.Parallel()
	var s Stride
	require.Equal(t, firstStride, s.Next())
	s.Took(100, 100*1000)
	require.Equal(t, maxStride, s.Next())
	s.Took(500, 500*100_000)
	require.Equal(t, 10, s.Next())
	s.Took(0, 0)
	require.Equal(t, 10, s.Next())
	s.Took(10, 100<<20)
	require.Equal(t, 1, s.Next())
}
