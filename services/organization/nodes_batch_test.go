package organization_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

const nodesBatch = "/v1/batch/tree-nodes"

// addBatch adds nodes to the tree company and returns the items.
func addBatch(t testing.TB, c *testkit.Client, nodes ...object) []object {
	t.Helper()
	var batch struct{ Items []object }
	c.Post(nodesBatch, object{"object_code": "company", "items": nodes}).OK(&batch)
	require.Len(t, batch.Items, len(nodes))
	return batch.Items
}

// chain are nodes, each below the one before.
func chain(length int) []object {
	nodes := make([]object, length)
	for i := range nodes {
		nodes[i] = object{"name": fmt.Sprint("level ", i+1), "ref": fmt.Sprint(i)}
		if i > 0 {
			nodes[i]["parent_ref"] = fmt.Sprint(i - 1)
		}
	}
	return nodes
}

func TestAddTreeNodes(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	o := addObject(t, c, "company")
	root, there := o["root_node_id"], addNode(t, c, "company", "", "there")
	events := len(history(t, s))
	got := addBatch(t, c,
		object{"name": "leaf", "parent_ref": "中", "seq": 4}, // its parent comes later
		object{"name": "中", "ref": "中", "parent_ref": "top", "code": "mid"},
		object{"name": "top", "ref": "top", "parent_id": ""},
		object{"name": "in the root", "parent_id": root},
		object{"name": "in another", "parent_id": there["id"], "ref": "unused"},
		object{"name": "none said"},
		object{"name": "points", "is_pointer": "1", "pointer_id": there["id"]},
	)
	require.Equal(t, []any{"leaf", "中", "top", "in the root", "in another", "none said", "points"}, []any{
		got[0]["name"], got[1]["name"], got[2]["name"], got[3]["name"], got[4]["name"], got[5]["name"], got[6]["name"]})
	require.Equal(t, []any{root, got[2]["id"], got[1]["id"], got[0]["id"]}, got[0]["path"])
	require.Equal(t, []any{root, there["id"], got[4]["id"]}, got[4]["path"])
	for i, ref := range []any{nil, "中", "top", nil, "unused", nil, nil} {
		require.Equal(t, ref, got[i]["ref"])
		if ref == nil {
			require.NotContains(t, got[i], "ref")
		}
		stored := changed(got[i], object{})
		delete(stored, "ref")
		require.Equal(t, stored, nodeNow(t, c, got[i]), "%d: the answer is the stored record", i)
		require.EqualValues(t, 1, stored["version"])
	}
	require.EqualValues(t, 1, got[2]["child_count"])
	require.EqualValues(t, 1, nodeNow(t, c, there)["child_count"])
	require.EqualValues(t, 5, rootOf(t, c, o)["child_count"])
	require.EqualValues(t, 9, objectNow(t, c, o)["node_count"])
	var want []string
	for _, n := range got {
		want = append(want, "node.created "+id(n))
	}
	require.ElementsMatch(t, want, told(history(t, s)[events:]))

	before := whole(t, c)
	dry := c.Post(nodesBatch+"?dry_run=true", object{"object_code": "company", "items": chain(3)})
	require.Equal(t, "true", dry.Header.Get("Dry-Run"))
	require.Len(t, dry.Object()["items"], 3)
	require.Equal(t, before, whole(t, c))
}

func TestAddAThousandTreeNodes(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	o := addObject(t, c, "company")
	nodes := make([]object, 1000)
	for i := range nodes { // every one but the last comes before its parent
		nodes[i] = object{"name": fmt.Sprint(i), "ref": fmt.Sprint(i), "code": fmt.Sprint("c", i)}
		if i < 999 {
			nodes[i]["parent_ref"] = fmt.Sprint(min(999, i+100))
		}
	}
	got := addBatch(t, c, nodes...)
	require.EqualValues(t, 1001, objectNow(t, c, o)["node_count"])
	require.EqualValues(t, 1001, c.Get(nodesPath + "?object_code=company").Object()["total"])
	for i, n := range got {
		require.Equal(t, fmt.Sprint(i), n["name"])
		if i < 999 {
			require.Equal(t, got[min(999, i+100)]["id"], n["parent_id"])
		}
	}
}

func TestAddTreeNodesIsRefused(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addObject(t, c, "company")
	addNode(t, c, "company", "", "x", object{"code": "x/taken"})
	other := addObject(t, c, "other")
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	foreign := addNode(t, theirs, "company", "", "x")
	deep := addBatch(t, c, chain(32)...)
	items := func(nodes ...object) ask {
		return post(nodesBatch, object{"object_code": "company", "items": nodes})
	}
	good := object{"name": "good", "ref": "good"}
	tooMany := make([]object, 1001)
	for i := range tooMany {
		tooMany[i] = object{"name": "x"}
	}
	rows := map[string]refusal{
		"nothing":  bad(post(nodesBatch, object{}), "body.object_code", "body.items"),
		"no items": bad(items(), "body.items"),
		"empty items": bad(post(nodesBatch, object{"object_code": "company", "items": []any{}}),
			"body.items"),
		"1001 items": bad(items(tooMany...), "body.items"),
		"no object": bad(post(nodesBatch, object{"object_code": "company", "items": []any{"x"}}),
			"body.items[0]"),
		"unknown tree": bad(post(nodesBatch, object{"object_code": "no", "items": []any{good}}),
			"body.object_code"),
		"unknown parent": bad(items(good, object{"name": "x", "parent_id": "404"}), "body.items[1].parent_id"),
		"two unknown parents": bad(items(object{"name": "x", "parent_id": "404"}, good,
			object{"name": "x", "parent_id": "405"}), "body.items[0].parent_id", "body.items[2].parent_id"),
		"parent elsewhere": bad(items(good, object{"name": "x", "parent_id": other["root_node_id"]}),
			"body.items[1].parent_id"),
		"another tenant's": bad(items(good, object{"name": "x", "parent_id": foreign["id"]}),
			"body.items[1].parent_id"),
		"unknown ref": bad(items(good, object{"name": "x", "parent_ref": "Good"}),
			"body.items[1].parent_ref"),
		"ref twice": bad(items(good, good), "body.items[1].ref"),
		"ref and id": bad(items(good, object{"name": "x", "parent_ref": "good", "parent_id": deep[0]["id"]}),
			"body.items[1].parent_ref"),
		"below itself": bad(items(good, object{"name": "x", "ref": "x", "parent_ref": "x"}),
			"body.items[1].parent_ref"),
		"cycle of two": bad(items(good, object{"name": "x", "ref": "x", "parent_ref": "y"},
			object{"name": "y", "ref": "y", "parent_ref": "x"}), "body.items[1].parent_ref"),
		"leads to a cycle": bad(items(object{"name": "z", "parent_ref": "x"},
			object{"name": "x", "ref": "x", "parent_ref": "y"}, object{"name": "y", "ref": "y", "parent_ref": "x"}),
			"body.items[0].parent_ref"),
		"33 levels": bad(items(chain(33)...), "body.items[32].parent_ref"),
		"35 levels, backwards": bad(items(reversed(chain(35))...), "body.items[0].parent_ref",
			"body.items[1].parent_ref", "body.items[2].parent_ref"),
		"too deep": bad(items(good, object{"name": "x", "parent_id": deep[31]["id"]}),
			"body.items[1].parent_id"),
		"code taken": taken(items(good, object{"name": "x", "code": "taken"},
			object{"name": "x", "code": "x/taken"}), "body.items[2].code"),
		"code twice": taken(items(good, object{"name": "x", "code": "twice"},
			object{"name": "x", "code": "twice"}), "body.items[2].code"),
		"code twice, backwards": taken(items(object{"name": "x", "code": "twice", "parent_ref": "y"},
			object{"name": "y", "ref": "y", "code": "twice"}), "body.items[1].code"),
		"codes taken": taken(items(object{"name": "x", "code": "x/taken"}, good, object{"name": "x", "code": "n"},
			object{"name": "x", "code": "company"}, object{"name": "x", "code": "n"}),
			"body.items[0].code", "body.items[3].code", "body.items[4].code"),
		"the root's code": taken(items(object{"name": "x", "code": "company"}), "body.items[0].code"),
		"ref of 257":      bad(items(object{"name": "x", "ref": strings.Repeat("x", 257)}), "body.items[0].ref"),
		"many": bad(items(object{"name": ""}, object{"name": "x", "parent_ref": "no"},
			object{"name": "x", "tag": strings.Repeat("x", 65)}), "body.items[0].name", "body.items[1].parent_ref",
			"body.items[2].tag"),
		"a tree of its own": bad(items(object{"name": "x", "object_code": "other"}), "body.items[0].object_code"),
	}
	for name, row := range spoilt {
		rows["spoilt: "+name] = bad(items(good, changed(object{"name": "x"}, row.members)),
			below("body.items[1]", row.locations)...)
	}
	refused(t, s, c, rows)
}

func reversed(list []object) []object {
	slices.Reverse(list)
	return list
}

// The members of a node from a list may be sent back; read-only ones are ignored.
func TestAddedTreeNodesMayBeCopies(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	addObject(t, c, "company")
	n := addNode(t, c, "company", "", "n")
	copied := changed(n, object{"name": "copy", "code": "copy"})
	delete(copied, "object_code")
	got := addBatch(t, c, copied)[0]
	require.NotEqual(t, n["id"], got["id"])
	require.Equal(t, []any{n["path"].([]any)[0], got["id"]}, got["path"])
}
