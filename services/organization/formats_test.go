package organization_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// Every later version must be able to read what is stored: a change here needs a way to read existing documents.
func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 1)
	began := s.Clock.Now()
	o := addObject(t, c, "company", object{"name": "集团 <&>", "description": "d", "status": "0", "seq": -7,
		"sys_ext_props": object{"a": 1}, "free_ext_props": object{"键": []any{"值"}}})
	addObject(t, c, "project")
	s.Clock.Advance(time.Second)
	target := addNode(t, c, "project", "", "target")
	n := addNode(t, c, "company", "", "研发 <&>", object{
		"code": "r/d", "description": "d", "tag": "t", "status": "0", "seq": 1 << 52, "perm_namespace_arn": "arn:x",
		"is_pointer": "1", "pointer_id": target["id"],
		"condition": "user.status == '1'", "sys_ext_props": object{"a": 1}, "free_ext_props": object{"键": []any{"值"}},
	})
	dynamic := addNode(t, c, "company", id(n), "dynamic", object{"is_dynamic": "1", "condition": "user.status == '1'"})
	// By now the service has a person for the user.
	s.EventsUntil(func(e stream.Event) bool {
		return e.Type == "idp.membership.created" && data(t, e)["record"].(object)["dynamic"] == true
	})
	s.Clock.Advance(time.Second)
	m := join(t, c, rootOf(t, c, o), "1", object{"title": "架构师", "role": "leader", "seq": -2})
	association := associate(t, c, n, target, object{"type": "owner", "description": "d"})
	// Documents that clients do not see: changes made for other services and, if a service does not answer, work to be
	// done.
	plain := addNode(t, c, "company", "", "plain")
	_, err := testkit.Ask[object](request.System(t.Context(), "acme"), s.Deps.Bus, "organization", "change-membership",
		object{
			"change_id": "change-1", "user_id": "1", "object_code": "company", "from_node_id": "",
			"to_node_id": plain["id"], "dry_run": false,
		})
	require.NoError(t, err)
	alone, calls := acme(t)
	addObject(t, calls, "company")
	waiting := addNode(t, calls, "company", "", "dynamic", object{"is_dynamic": "1", "condition": "user.status == '1'"})

	for name, it := range map[string]struct {
		s              *testkit.Service
		collection, id string
	}{
		"core_object": {s, "core_objects", id(o)}, "tree_node": {s, "tree_nodes", id(n)},
		"tree_node_dynamic": {s, "tree_nodes", id(dynamic)},
		"tree_user":         {s, "tree_users", id(m)}, "tree_association": {s, "tree_associations", id(association)},
		"person": {s, "people", "1"}, "membership_change": {s, "membership_changes", "change-1"},
		"upkeep":           {alone, "upkeeps", id(waiting)},
		"condition_budget": {alone, "condition_budgets", "conditions"},
	} {
		since := map[bool]clock.Time{true: began, false: alone.Clock.Now()}[it.s == s]
		testkit.GoldenDocument(t, it.s, since, name, it.collection, it.id)
	}
}

// TestAnswersFitTheirSchemas: the domain writes the JSON of these answers itself, so it can differ from their types.
func TestAnswersFitTheirSchemas(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 1)
	addObject(t, c, "company")
	n := addNode(t, c, "company", "", "n")
	m := join(t, c, n, "1")
	user := c.Get(node(n, "users")).Object()["items"].([]any)[0].(object)
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	s.Stranger().Get("/openapi.json").OK(&doc)
	for schema, answer := range map[string]object{
		"Membership": m, "TreeNodeUser": user, "NodeOfUser": user["nodes"].([]any)[0].(object),
		"AddedTreeNode":  addBatch(t, c, object{"name": "x", "ref": "x"})[0],
		"NestedTreeNode": c.Get(node(n, "tree")).Object(),
	} {
		require.ElementsMatch(t, slices.Collect(maps.Keys(doc.Components.Schemas[schema].Properties)),
			slices.Collect(maps.Keys(answer)), schema)
	}
}
