package organization_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func move(n object, parent any) ask {
	return patch(node(n), object{"parent_id": parent})
}

func TestMove(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	o := addObject(t, c, "company")
	root := o["root_node_id"]
	nodes := addBatch(t, c,
		object{"name": "a", "ref": "a"}, object{"name": "a1", "ref": "a1", "parent_ref": "a"},
		object{"name": "a2", "ref": "a2", "parent_ref": "a1"},
		object{"name": "a3", "parent_ref": "a1"}, object{"name": "b", "ref": "b"},
		object{"name": "b1", "parent_ref": "b"})
	a, a1, a2, a3, b, b1 := nodes[0], nodes[1], nodes[2], nodes[3], nodes[4], nodes[5]
	for _, n := range nodes {
		delete(n, "ref")
	}
	s.Clock.Advance(time.Second)
	events := len(history(t, s))
	before := whole(t, c)
	dry := c.Patch(node(a1)+"?dry_run=true", object{"parent_id": b1["id"]})
	require.Equal(t, []any{root, b["id"], b1["id"], a1["id"]}, dry.Object()["path"])
	require.Equal(t, before, whole(t, c))

	moved := c.With("If-Match", `"1"`).Patch(node(a1), object{"parent_id": b1["id"], "name": "A1"}).Object()
	require.Equal(t, changed(a1, object{
		"parent_id": b1["id"], "name": "A1", "path": []any{root, b["id"], b1["id"], a1["id"]}, "depth": 3.0,
		"version": 2.0, "time_modified": now(s),
	}), moved)
	require.Equal(t, moved, nodeNow(t, c, a1))
	for _, n := range []object{a2, a3} {
		below := nodeNow(t, c, n)
		require.Equal(t, []any{root, b["id"], b1["id"], a1["id"], n["id"]}, below["path"])
		require.EqualValues(t, 4, below["depth"])
		require.Equal(t, a1["id"], below["parent_id"])
	}
	require.EqualValues(t, 0, nodeNow(t, c, a)["child_count"])
	require.EqualValues(t, 1, nodeNow(t, c, b1)["child_count"])
	require.EqualValues(t, 7, objectNow(t, c, o)["node_count"])
	require.Equal(t, []any{}, c.Items(node(a, "descendants"), "id"))
	require.ElementsMatch(t, []any{b1["id"], a1["id"], a2["id"], a3["id"]}, c.Items(node(b, "descendants"), "id"))

	all := history(t, s)[events:]
	require.Equal(t, []string{"node.updated " + id(a1), "node.moved " + id(a1)}, told(all))
	tells := data(t, all[1])
	require.Equal(t, moved, tells["record"])
	require.Equal(t, []any{root, a["id"], a1["id"]}, tells["old_path"])
	require.Equal(t, moved["path"], tells["new_path"])
	require.EqualValues(t, 2, tells["nodes_below"])

	// "" and null mean the root.
	require.Equal(t, []any{root, a1["id"]}, c.Patch(node(a1), object{"parent_id": ""}).Object()["path"])
	c.Patch(node(a1), object{"parent_id": a["id"]}).OK(nil)
	require.Equal(t, []any{root, a1["id"]}, c.Patch(node(a1), object{"parent_id": nil}).Object()["path"])
	require.Equal(t, []any{root, a1["id"], a3["id"]}, nodeNow(t, c, a3)["path"])
	// A move to the present parent changes nothing.
	a1 = nodeNow(t, c, a1)
	require.Equal(t, a1, c.Patch(node(a1), object{"parent_id": root}).Object())
}

func TestMoveIsRefused(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	o := addObject(t, c, "company")
	other := addObject(t, c, "other")
	elsewhere := addNode(t, c, "other", "", "elsewhere")
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	foreign := addNode(t, theirs, "company", "", "x")
	deep := addBatch(t, c, chain(32)...)
	short := addBatch(t, c, chain(4)...)
	root := rootOf(t, c, o)
	at := "body.parent_id"
	refused(t, s, c, map[string]refusal{
		"itself":              bad(move(short[0], short[0]["id"]), at),
		"its child":           bad(move(short[0], short[1]["id"]), at),
		"far below":           bad(move(short[0], short[3]["id"]), at),
		"unknown":             bad(move(short[0], "404"), at),
		"another tree":        bad(move(short[0], elsewhere["id"]), at),
		"another tree's root": bad(move(short[0], other["root_node_id"]), at),
		"another tenant's":    bad(move(short[0], foreign["id"]), at),
		"a number":            bad(move(short[0], 1), at),
		"a root":              bad(move(root, short[0]["id"]), at),
		"a root to itself":    bad(move(root, root["id"]), at),
		"too deep":            bad(move(short[3], deep[31]["id"]), at),
		"too deep below":      bad(move(short[0], deep[28]["id"]), at),
		"outdated":            outdated(ifMatch(`"9"`, move(short[0], deep[0]["id"]))),
		"with a fault": bad(patch(node(short[0]), object{"parent_id": deep[0]["id"], "name": ""}),
			"body.name"),
		"with a code taken": taken(patch(node(short[0]), object{"parent_id": deep[0]["id"], "code": "company"}),
			"body.code"),
		"of a stranger's": missing(move(foreign, short[0]["id"])),
		"with a tree": bad(patch(node(short[0]),
			object{"parent_id": elsewhere["id"], "object_code": "other"}), "body.object_code"),
		"a child above, as dry": bad(patch(node(short[0])+"?dry_run=true", object{"parent_id": short[1]["id"]}), at),
	})
	// The deepest place is allowed: 28 levels above 4.
	c.Patch(node(short[0]), object{"parent_id": deep[27]["id"]}).OK(nil)
	require.EqualValues(t, 32, nodeNow(t, c, short[3])["depth"])
	c.Post(nodesPath, object{"object_code": "company", "name": "x", "parent_id": short[3]["id"]}).
		Problem(400, "invalid_parameters", at)
}

// A subtree with more nodes than are written at a time moves as a whole.
func TestMoveMany(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	addObject(t, c, "company")
	top, to := addNode(t, c, "company", "", "top"), addNode(t, c, "company", "", "to")
	for range 2 {
		nodes := make([]object, 700)
		for i := range nodes {
			nodes[i] = object{"name": fmt.Sprint(i), "parent_id": top["id"]}
			if i >= 7 {
				nodes[i] = object{"name": fmt.Sprint(i), "parent_ref": fmt.Sprint(i / 2)}
			}
			nodes[i]["ref"] = fmt.Sprint(i)
		}
		addBatch(t, c, nodes...)
	}
	was := map[string]object{}
	for _, n := range walk(t, c, node(top, "descendants?"), 200) {
		was[id(n)] = n
	}
	require.Len(t, was, 1400)
	moved := c.Patch(node(top), object{"parent_id": to["id"]}).Object()
	for _, n := range walk(t, c, node(to, "descendants?"), 200) {
		if n["id"] == top["id"] {
			continue
		}
		before := was[id(n)]
		require.Equal(t, append(append([]any{}, moved["path"].([]any)...), before["path"].([]any)[2:]...), n["path"])
		require.Equal(t, before["depth"].(float64)+1, n["depth"])
		delete(was, id(n))
	}
	require.Empty(t, was)
	require.Equal(t, []any{to["id"]}, c.Items(nodesPath+"?object_code=company&depth=1&parent_id="+
		moved["path"].([]any)[0].(string), "id"))
}
