package tree

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// The nodes below a node are counted across the chunks that are loaded.
func TestEachIsBounded(t *testing.T) {
	t.Parallel()
	store := basic.Store(t, basic.NewClock(), Collections()...)
	trees := New(Deps{Store: store})
	ctx := request.System(t.Context(), "acme")
	doc, err := trees.CreateObject(ctx, Object{Code: "company", ObjectProfile: ObjectProfile{Name: "Acme"}}, Draft{})
	require.NoError(t, err)
	object, err := doc.Value()
	require.NoError(t, err)
	drafts := make([]Draft, 600)
	for i := range drafts {
		drafts[i].Name = fmt.Sprint(i)
	}
	_, err = trees.CreateMany(ctx, "company", drafts)
	require.NoError(t, err)
	for most, fits := range map[int]bool{599: false, 600: false, 601: true, MaxMoved: true} { // including the root
		seen := map[string]bool{}
		_, err := docstore.Write(ctx, store, func(tx *docstore.Tx) (int, error) {
			return each(ctx, tx, []string{object.RootNodeID}, most, func(n *Node) error {
				seen[n.ID] = true
				return nil
			})
		})
		if fits {
			require.NoError(t, err)
			require.Len(t, seen, 601)
			continue
		}
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
	}
}
