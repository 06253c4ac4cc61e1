package kv

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// Former states count in the size of a deletion's transactions: a bucket can keep 100 of each object.
func TestDeletionsOfHistoriesTakeSmallSteps(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	s := New(basic.Store(t, basic.NewClock(), Collections()...))
	bucket, err := s.PutBucket(ctx, "box", Settings{History: MaxHistory})
	require.NoError(t, err)
	const keys = 3
	for key := range keys {
		for n := range MaxHistory + 1 {
			draft := Draft{Value: jsontext.Value(fmt.Sprint(n))}
			_, err := s.Put(ctx, "box", fmt.Sprint(key), draft, false)
			require.NoError(t, err)
		}
	}
	for left := keys - 1; left >= 0; left-- {
		more, err := s.purge(ctx, bucket.ID)
		require.NoError(t, err)
		require.True(t, more)
		n, err := objects.Count(ctx, s.store, docstore.Filter{})
		require.NoError(t, err)
		require.EqualValues(t, left, n)
	}
	more, err := s.purge(ctx, bucket.ID)
	require.NoError(t, err)
	require.False(t, more)
}
