package organization_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
)

// A connection makes a tree and owns the names and members of its nodes: nobody else changes them.
func TestAnOwnedTree(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 3)
	ctx := request.With(t.Context(), request.Info{Tenant: "acme", Actor: "scim:4001"})
	b := s.Deps.Bus
	owner := questions.ManagedBy{ConnectionID: "4001", Members: []string{questions.OwnedNames, questions.OwnedMembers}}
	nothing, err := questions.MakeTree.Ask(ctx, b, questions.NewTree{ID: "0", Code: "okta"})
	require.NoError(t, err)
	require.Empty(t, nothing.ID)
	tree := func(id string, owner questions.ManagedBy) (questions.Tree, error) {
		q := questions.NewTree{ID: id, Code: "okta", Name: "Okta", ManagedBy: owner}
		return questions.MakeTree.Ask(ctx, b, q)
	}
	made, err := tree("1", owner)
	require.NoError(t, err)
	require.True(t, made.Made)
	again, err := tree("2", owner)
	require.NoError(t, err)
	require.Equal(t, []any{made.ID, false}, []any{again.ID, again.Made})
	other := questions.ManagedBy{ConnectionID: "4002", Members: owner.Members}
	_, err = tree("3", other)
	require.Equal(t, apperr.ManagedElsewhere, apperr.KindOf(err))

	change := func(q questions.NodeChange) (object, error) {
		q.ObjectCode = "okta"
		state, err := questions.ChangeNode.Ask(ctx, b, q)
		var n object
		if err == nil {
			require.NoError(t, json.Unmarshal(state.Node, &n))
		}
		return n, err
	}
	named := func(name string) json.RawMessage { return json.RawMessage(`{"name":"` + name + `"}`) }
	platform, err := change(questions.NodeChange{ID: "4", Action: questions.CreateNode, Node: named("Platform")})
	require.NoError(t, err)
	require.Equal(t, made.RootNodeID, platform["parent_id"])
	settled, err := questions.SettleChange.Ask(ctx, b, questions.ChangeID{ID: "4"})
	require.NoError(t, err)
	require.True(t, settled.Applied)
	require.Contains(t, string(settled.Node), "Platform")
	id := platform["id"].(string)

	members := func(changeID string, add, remove []string) (questions.MembersChanged, error) {
		q := questions.MembersChange{ID: changeID, NodeID: id, Add: add, Remove: remove}
		return questions.ChangeMembers.Ask(ctx, b, q)
	}
	first, err := members("5", []string{"1", "2"}, nil)
	require.NoError(t, err)
	require.Len(t, first.Memberships, 2)
	second, err := members("6", []string{"2", "3"}, []string{"1", "77"})
	require.NoError(t, err)
	require.Len(t, second.Memberships, 2)
	require.Len(t, second.Ended, 1)
	unknown, err := members("7", []string{"1", "77", "78"}, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"77", "78"}, unknown.Unknown)
	require.EqualValues(t, 2, c.Get(node(platform)).Object()["member_count"])
	settled, err = questions.SettleChange.Ask(ctx, b, questions.ChangeID{ID: "8"})
	require.NoError(t, err)
	require.False(t, settled.Applied)
	_, err = members("8", []string{"1"}, nil)
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err))

	c.Patch(node(platform), object{"name": "x"}).Problem(http.StatusConflict, "managed_elsewhere")
	c.Patch(node(platform), object{"description": "mine"}).OK(nil)
	c.Post("/v1/tree-users", object{"node_id": id, "user_id": "1"}).Problem(http.StatusConflict, "managed_elsewhere")
	c.Delete("/v1/tree-users/"+second.Memberships[0].ID, nil).Problem(http.StatusConflict, "managed_elsewhere")

	renamed, err := change(questions.NodeChange{ID: "9", NodeID: id, Action: questions.UpdateNode, Node: named("Core")})
	require.NoError(t, err)
	require.Equal(t, "Core", renamed["name"])
	_, err = change(questions.NodeChange{ID: "10", NodeID: id, Version: 1, Action: questions.UpdateNode})
	require.Equal(t, apperr.VersionMismatch, apperr.KindOf(err))
	child := addNode(t, c, "okta", id, "Child")
	_, err = change(questions.NodeChange{ID: "11", NodeID: id, Action: questions.DisableNode})
	require.Equal(t, apperr.HasChildren, apperr.KindOf(err))
	c.Delete(node(child)+"?object_code=okta", nil).OK(nil)
	off, err := change(questions.NodeChange{ID: "12", NodeID: id, Action: questions.DisableNode})
	require.NoError(t, err)
	require.Equal(t, "0", off["status"])
	on, err := change(questions.NodeChange{ID: "13", NodeID: id, Action: questions.EnableNode, Node: named("Again")})
	require.NoError(t, err)
	require.Equal(t, []any{"1", "Again"}, []any{on["status"], on["name"]})

	free := questions.ManagedBy{ConnectionID: "4001", Members: []string{}}
	_, err = questions.MakeTree.Ask(ctx, b, questions.NewTree{ID: "14", Code: "okta", ManagedBy: free})
	require.NoError(t, err)
	c.Post("/v1/tree-users", object{"node_id": id, "user_id": "1"}).OK(nil)
}

// A tree is known by its root. Another one that has its code by now is not the connection's.
func TestATreeWithACodeThatCameAgain(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 1)
	ctx, b := request.System(t.Context(), "acme"), s.Deps.Bus
	owner := questions.ManagedBy{ConnectionID: "4001", Members: []string{questions.OwnedNames, questions.OwnedMembers}}
	made, err := questions.MakeTree.Ask(ctx, b, questions.NewTree{ID: "1", Code: "okta", Name: "Okta",
		ManagedBy: owner})
	require.NoError(t, err)
	create := func(id, root string) error {
		_, err := questions.ChangeNode.Ask(ctx, b, questions.NodeChange{ID: id, ObjectCode: "okta", RootNodeID: root,
			Action: questions.CreateNode, Node: json.RawMessage(`{"name":"Platform"}`)})
		return err
	}
	own := func(id, root string) (questions.Tree, error) {
		return questions.MakeTree.Ask(ctx, b, questions.NewTree{ID: id, Code: "okta", Name: "Okta", ManagedBy: owner,
			RootNodeID: root})
	}
	_, err = own("2", made.RootNodeID)
	require.NoError(t, err)
	c.Delete("/v1/core-objects/"+made.ID, nil).OK(nil)
	gone, err := own("3", made.RootNodeID)
	require.NoError(t, err)
	require.Empty(t, gone.ID, "it is not made again")
	again := addObject(t, c, "okta")
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(create("4", made.RootNodeID)))
	_, err = own("5", made.RootNodeID)
	require.Equal(t, apperr.ManagedElsewhere, apperr.KindOf(err))
	var now []object
	c.Get("/v1/core-objects/" + id(again) + "?code=okta").OK(&now)
	require.Nil(t, now[0]["managed_by"])
	require.EqualValues(t, 1, now[0]["node_count"])
	require.NoError(t, create("6", again["root_node_id"].(string)))
	require.NoError(t, create("7", ""), "an older service asks")
}
