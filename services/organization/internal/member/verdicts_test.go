package member

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// A verdict is dropped if the node's condition changed during the evaluation: the upkeep of the new condition may be
// done already.
func TestApplyVerdictsByOldCondition(t *testing.T) {
	t.Parallel()
	store := basic.Store(t, basic.NewClock(), append(tree.Collections(), Collections()...)...)
	s := New(Deps{Store: store})
	trees := tree.New(tree.Deps{Store: store, OnCondition: s.OnCondition})
	ctx := request.System(t.Context(), "acme")
	_, err := trees.CreateObject(ctx, tree.Object{Code: "company", ObjectProfile: tree.ObjectProfile{Name: "Acme"}},
		tree.Draft{})
	require.NoError(t, err)
	doc, err := trees.Create(ctx, "company", tree.Draft{Profile: tree.Profile{Name: "n", IsDynamic: "1",
		Condition: "user.level > 5"}})
	require.NoError(t, err)
	before, err := doc.Value()
	require.NoError(t, err)
	for _, c := range []struct {
		edit func(*tree.Node)
		want int64
	}{
		{func(n *tree.Node) { n.Condition = "user.level > 7" }, 0},
		{func(n *tree.Node) { n.IsDynamic = "0" }, 0},
		{func(n *tree.Node) { n.IsDynamic, n.Condition, n.Name = "1", before.Condition, "another name" }, 1},
	} {
		_, err = trees.Update(ctx, doc.ID, func(n *tree.Node) error { c.edit(n); return nil })
		require.NoError(t, err)
		err = docstore.Do(ctx, store, func(tx *docstore.Tx) error {
			return applyVerdicts(ctx, tx, before, nil, []verdict{{"1", "17", true}})
		})
		require.NoError(t, err)
		n, err := members.Count(ctx, store, docstore.Filter{})
		require.NoError(t, err)
		require.Equal(t, c.want, n)
	}
}
