package organization_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// document is a record of a collection as it is stored.
func document(t testing.TB, s *testkit.Service, collection, id string) []byte {
	t.Helper()
	if os.Getenv("IDP_TEST_MONGO_URI") != "" {
		t.Skip("looks at documents as SQLite has them")
	}
	type anything struct{ docstore.Meta }
	doc, err := docstore.Define(docstore.Schema[anything]{Name: collection}).Find(request.System(t.Context(), "acme"),
		s.Deps.Store, id)
	require.NoError(t, err)
	body, err := doc.JSON()
	require.NoError(t, err)
	return body
}

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
	s.EventsUntil(func(e bus.Event) bool {
		return e.Type == "idp.membership.created" && data(t, e)["record"].(object)["dynamic"] == true
	})
	s.Clock.Advance(time.Second)
	m := join(t, c, rootOf(t, c, o), "1", object{"title": "架构师", "role": "leader", "seq": -2})
	association := associate(t, c, n, target, object{"type": "owner", "description": "d"})
	// Documents that clients do not see: changes made for other services and, if a service does not answer, work to be
	// done.
	_, err := testkit.Ask[object](request.System(t.Context(), "acme"), s.Deps.Bus, "organization", "change-membership",
		object{
			"change_id": "change-1", "user_id": "1", "object_code": "company", "from_node_id": "",
			"to_node_id": n["id"], "dry_run": false,
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
		var text bytes.Buffer
		require.NoError(t, json.Indent(&text, document(t, it.s, it.collection, it.id), "", "  "))
		text.WriteByte('\n')
		testkit.Golden(t, "testdata/"+name+".json.golden",
			testkit.Since(t, map[bool]clock.Time{true: began, false: alone.Clock.Now()}[it.s == s], text.Bytes()))
	}
}

// Records are stored in the form of answers, or completed by the domain, and described by other types: the two must
// agree.
func TestSchemasAgreeWithRecords(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 1)
	o := addObject(t, c, "company")
	addObject(t, c, "project")
	n := addNode(t, c, "company", "", "n")
	m := join(t, c, n, "1")
	association := associate(t, c, n, addNode(t, c, "project", "", "p"))
	user := c.Get(node(n, "users")).Object()["items"].([]any)[0].(object)
	batch := addBatch(t, c, object{"name": "x", "ref": "x"})[0]
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ ReadOnly bool }
				Required   []string
			}
		}
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]struct{ Example any }
			}
		}
	}
	s.Stranger().Get("/openapi.json").OK(&doc)
	schemas := doc.Components.Schemas
	keys := func(record object) []string { return slices.Sorted(maps.Keys(record)) }
	properties := func(name string) []string {
		require.Contains(t, schemas, name)
		return slices.Sorted(maps.Keys(schemas[name].Properties))
	}
	for name, row := range map[string]struct {
		record object
		inputs []string // bodies that together accept all its members
		more   string   // a member that only the first of them has
	}{
		"CoreObject":      {o, []string{"NewCoreObject", "CoreObjectPatch"}, "root"},
		"TreeNode":        {nodeNow(t, c, n), []string{"NewTreeNode", "TreeNodePatch"}, ""},
		"Membership":      {m, []string{"NewMembership", "MembershipPatch"}, ""},
		"TreeAssociation": {association, []string{"NewTreeAssociation"}, ""},
		"TreeNodeUser":    {user, nil, ""}, "NodeOfUser": {user["nodes"].([]any)[0].(object), nil, ""},
	} {
		require.Equal(t, keys(row.record), properties(name), name)
		require.Equal(t, keys(row.record), slices.Sorted(slices.Values(schemas[name].Required)),
			"%s: every member is always there", name)
		for i, input := range row.inputs {
			have := properties(input)
			if i == 0 && row.more != "" {
				have = slices.DeleteFunc(have, func(m string) bool { return m == row.more })
			}
			require.Equal(t, keys(row.record), have, input)
			for member, property := range schemas[name].Properties {
				require.Equal(t, property.ReadOnly, schemas[input].Properties[member].ReadOnly, "%s.%s", input, member)
			}
		}
	}
	require.Equal(t, keys(batch), properties("AddedTreeNode"))
	require.Equal(t, keys(c.Get(node(n, "tree")).Object()), properties("NestedTreeNode"))
	for url, record := range map[string]object{
		"/v1/tree-nodes/{id}": n, "/v1/tree-users/{id}": m, "/v1/tree-associations/{id}": association,
		"/v1/core-objects/{id}": o,
	} {
		example := doc.Paths[url]["get"].Responses["200"].Content["application/json"].Example
		if list, ok := example.([]any); ok {
			example = list[0]
		}
		require.Equal(t, keys(record), keys(example.(object)), url)
	}
	page := doc.Paths["/v1/tree-nodes/{id}/users"]["get"].Responses["200"].Content["application/json"].Example.(object)
	require.Equal(t, keys(user), keys(page["items"].([]any)[0].(object)))
	nested := doc.Paths["/v1/tree-nodes/{id}/tree"]["get"].Responses["200"].Content["application/json"].Example.(object)
	require.Equal(t, keys(c.Get(node(n, "tree")).Object()), keys(nested))
}
