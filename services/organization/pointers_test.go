package organization_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

func pointTo(target any) object { return object{"is_pointer": "1", "pointer_id": target} }

func TestPointers(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	n := forest(t, c)
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	foreign := addNode(t, theirs, "company", "", "x")
	root := c.Get(nodesPath + "/" + n["a"]["parent_id"].(string)).Object()

	// To a node of its tree, of another, to the root of another, to one below itself.
	pointer := addNode(t, c, "company", id(n["b"]), "pointer", pointTo(n["a1"]["id"]))
	require.Equal(t, "1", pointer["is_pointer"])
	require.Equal(t, n["a1"]["id"], pointer["pointer_id"])
	abroad := addNode(t, c, "other", "", "abroad", pointTo(root["id"]))
	downwards := c.Patch(node(n["a"]), pointTo(n["a12"]["id"])).Object()
	require.Equal(t, n["a12"]["id"], downwards["pointer_id"])
	require.Equal(t, downwards, c.Patch(node(n["a"]), downwards).Object(), "read, change nothing, write")

	create := func(parent, target any) refusal {
		return bad(post(nodesPath, changed(pointTo(target), object{"object_code": "company", "name": "x",
			"parent_id": parent})), "body.pointer_id")
	}
	change := func(n object, target any) refusal { return bad(patch(node(n), pointTo(target)), "body.pointer_id") }
	const company = "?object_code=company"
	refused(t, s, c, map[string]refusal{
		"create, at a pointer":   create("", pointer["id"]),
		"create, at the parent":  create(n["b1"]["id"], n["b1"]["id"]),
		"create, at an ancestor": create(n["b1"]["id"], n["b"]["id"]),
		"create, at the root":    create(n["b1"]["id"], root["id"]),
		"create, at another's":   create("", foreign["id"]),
		"create, at nothing":     create("", "404"),
		"change, at itself":      change(n["b1"], n["b1"]["id"]),
		"change, at the parent":  change(n["b1"], n["b"]["id"]),
		"change, at the root":    change(n["b1"], root["id"]),
		"change, at a pointer":   change(n["b1"], abroad["id"]),
		"change, at another's":   change(n["b1"], foreign["id"]),
		"change, at nothing":     change(n["b1"], "404"),
		"change, a pointer":      change(pointer, abroad["id"]),
		"a flag alone":           bad(patch(node(n["b1"]), object{"is_pointer": "1"}), "body.pointer_id"),
		"a target alone":         bad(patch(node(n["b1"]), object{"pointer_id": n["a"]["id"]}), "body.pointer_id"),
		"no target any more":     bad(patch(node(pointer), object{"pointer_id": nil}), "body.pointer_id"),
		"no flag any more":       bad(patch(node(pointer), object{"is_pointer": "0"}), "body.pointer_id"),
		"a target, made a pointer": conflict("in_use", patch(node(n["a1"]), pointTo(n["a12"]["id"])),
			"tree_nodes.pointer_id"),
		"delete a target": conflict("in_use", remove(node(n["a12"])+company, nil), "tree_nodes.pointer_id"),
		"delete a target, dry": conflict("in_use", remove(node(n["a12"])+company+"&dry_run=true", nil),
			"tree_nodes.pointer_id"),
		"moved below its target":    bad(patch(node(pointer), object{"parent_id": n["a1"]["id"]}), "body.parent_id"),
		"moved far below":           bad(patch(node(pointer), object{"parent_id": n["a12"]["id"]}), "body.parent_id"),
		"moved below with its tree": bad(patch(node(n["b"]), object{"parent_id": n["a12"]["id"]}), "body.parent_id"),
		"moved and pointed": bad(patch(node(n["b1"]),
			changed(pointTo(n["a11"]["id"]), object{"parent_id": n["a11"]["id"]})), "body.parent_id"),
	})
	doc := c.Delete(node(n["a12"])+company, nil).Problem(409, "in_use", "tree_nodes.pointer_id")
	require.EqualValues(t, 1, doc.Errors[0].Count, "it tells how many")

	// A new target and a new place in one request, which are valid together.
	both := c.Patch(node(pointer), changed(pointTo(n["b"]["id"]), object{"parent_id": n["a1"]["id"]})).Object()
	require.Equal(t, n["b"]["id"], both["pointer_id"])
	require.Equal(t, n["a1"]["id"], both["parent_id"])
	c.Patch(node(n["a1"]), pointTo(n["b1"]["id"])).OK(nil) // no pointer leads to it any more
	// A target can be deleted when no pointer leads to it.
	c.Patch(node(n["a"]), object{"is_pointer": "0", "pointer_id": ""}).OK(nil)
	c.Delete(node(n["a12"])+company, nil).OK(nil)
	c.Delete(node(pointer)+company, nil).OK(nil)
	c.Patch(node(n["b"]), object{"parent_id": n["a2"]["id"]}).OK(nil)
}

// A pointer lists the members of its target. It would hide members of its own, who still have their rights.
func TestANodeWithMembersIsNoPointer(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "users", "existing",
		func(_ context.Context, q questions.UserIDs) (questions.UserIDs, error) { return q, nil }))
	addObject(t, c, "company")
	n, target := addNode(t, c, "company", "", "n"), addNode(t, c, "company", "", "target")
	member := c.Post("/v1/tree-users", object{"node_id": n["id"], "user_id": "1"}).ID()
	c.Patch(node(n), pointTo(target["id"])).Problem(409, "invalid_state")
	c.Patch(node(n)+"?dry_run=true", pointTo(target["id"])).Problem(409, "invalid_state")
	c.Patch(node(n), pointTo("404")).Problem(400, "invalid_parameters", "body.pointer_id")
	require.EqualValues(t, 1, c.Get(node(n) + "/users").Object()["total"])
	c.Delete("/v1/tree-users/"+member, nil).OK(nil)
	c.Patch(node(n), pointTo(target["id"])).OK(nil)
}

// Whoever asks for the groups of a person gets an error and no part of them if there are too many pointers.
func TestTooManyPointers(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "users", "existing",
		func(_ context.Context, q questions.UserIDs) (questions.UserIDs, error) { return q, nil }))
	addObject(t, c, "company")
	target := addNode(t, c, "company", "", "target")
	c.Post("/v1/tree-users", object{"node_id": target["id"], "user_id": "1"}).OK(nil)
	items := make([]object, 1000)
	for i := range items {
		items[i] = changed(pointTo(target["id"]), object{"name": "pointer"})
	}
	addBatch(t, c, items...)
	ask := func() (questions.Groups, error) {
		return questions.GroupsOfUser.Ask(request.System(t.Context(), "acme"), s.Deps.Bus,
			questions.GroupsQuestion{UserID: "1"})
	}
	found, err := ask()
	require.NoError(t, err)
	require.Len(t, found.Groups, 1002, "the root, the target and its pointers")
	addNode(t, c, "company", "", "one more", pointTo(target["id"]))
	_, err = ask()
	require.Error(t, err)
}
