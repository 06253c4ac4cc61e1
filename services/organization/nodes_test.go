package organization_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
)

const nodesPath = "/v1/tree-nodes"

// nodeNow is the record as it is now.
func nodeNow(t testing.TB, c *testkit.Client, n object) object {
	t.Helper()
	return c.Get(node(n)).Object()
}

// rootOf is the record of a core object's root.
func rootOf(t testing.TB, c *testkit.Client, o object) object {
	t.Helper()
	return c.Get(nodesPath + "/" + o["root_node_id"].(string)).Object()
}

func TestCreateTreeNode(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	o := addObject(t, c, "company")
	root := o["root_node_id"].(string)
	s.Clock.Advance(time.Second)
	answer := c.Post(nodesPath, object{"object_code": "company", "name": "平台组", "parent_id": ""})
	n := answer.Object()
	require.Equal(t, `"1-0"`, answer.Header.Get("Etag"))
	require.Equal(t, object{
		"id": n["id"], "tenant_id": "acme", "version": 1.0, "time_created": now(s), "time_modified": now(s),
		"object_code": "company", "code": "node-" + id(n),
		"name": "平台组", "description": "", "tag": "", "status": "1", "seq": 0.0, "perm_namespace_arn": "",
		"is_pointer": "0", "pointer_id": "", "is_dynamic": "0",
		"condition": "", "sys_ext_props": object{}, "free_ext_props": object{}, "parent_id": root,
		"arn":         "arn:idp:acme:org:company:" + id(n),
		"operator_id": "test#tester", "path": []any{root, n["id"]}, "depth": 1.0, "child_count": 0.0,
		"member_count": 0.0,
	}, n)
	require.Equal(t, n, nodeNow(t, c, n))
	require.EqualValues(t, 1, rootOf(t, c, o)["child_count"])
	require.EqualValues(t, 2, objectNow(t, c, o)["node_count"])

	// All members that can be set, below a node.
	full := object{
		"object_code": "company", "name": strings.Repeat("名", 256), "parent_id": n["id"], "code": "a/b:c%_" +
			strings.Repeat("码", 249), "description": "d", "tag": strings.Repeat("签", 64),
		"status": "0", "seq": float64(1 - 1<<53), "perm_namespace_arn": "arn:x", "is_pointer": "1",
		"pointer_id": addNode(t, c, "company", "", "target")["id"],
		"is_dynamic": "0", "condition": "user.status == '1'",
		"sys_ext_props": object{"a": object{"b": []any{nil, 1.5}}}, "free_ext_props": object{"键": "<&>"},
	}
	below := c.Post(nodesPath, full).Object()
	require.Equal(t, changed(changed(n, full), object{
		"id": below["id"], "arn": "arn:idp:acme:org:company:" + id(below), "path": []any{root, n["id"], below["id"]},
		"depth": 2.0,
	}), below)
	require.EqualValues(t, 1, nodeNow(t, c, n)["child_count"])

	// The other members of the record may be sent back and are ignored.
	again := c.Post(nodesPath, changed(n, object{"code": "again", "child_count": 9, "path": []string{"x"}})).Object()
	require.Equal(t, []any{root, again["id"]}, again["path"])
	require.EqualValues(t, 0, again["child_count"])

	// A code is unique in a tree, and in a tenant.
	addObject(t, c, "other")
	addNode(t, c, "other", "", "x", object{"code": "again"})
	addNode(t, c, "other", "", "x", object{"code": "Again"})
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	addNode(t, theirs, "company", "", "x", object{"code": "again"})
	c.Delete(node(again)+"?object_code=company", nil).OK(nil)
	addNode(t, c, "company", "", "x", object{"code": "again"})

	before := whole(t, c)
	dry := c.Post(nodesPath+"?dry_run=true", object{"object_code": "company", "name": "dry", "parent_id": ""})
	require.Equal(t, "true", dry.Header.Get("Dry-Run"))
	require.Equal(t, "dry", dry.Object()["name"])
	require.Equal(t, before, whole(t, c))
}

// spoilt are members that no node may have, with the locations of their faults.
var spoilt = map[string]struct {
	members   object
	locations []string
}{
	"empty name":        {object{"name": ""}, []string{"name"}},
	"blank name":        {object{"name": "   "}, []string{"name"}},
	"name of 257":       {object{"name": strings.Repeat("名", 257)}, []string{"name"}},
	"control character": {object{"name": "a\nb"}, []string{"name"}},
	"name a number":     {object{"name": 1}, []string{"name"}},
	"code with space":   {object{"code": "a b"}, []string{"code"}},
	"code with newline": {object{"code": "a\n"}, []string{"code"}},
	"code of 257":       {object{"code": strings.Repeat("码", 257)}, []string{"code"}},
	"description":       {object{"description": strings.Repeat("x", 2001)}, []string{"description"}},
	"tag":               {object{"tag": strings.Repeat("x", 65)}, []string{"tag"}},
	"arn":               {object{"perm_namespace_arn": strings.Repeat("x", 513)}, []string{"perm_namespace_arn"}},
	"status":            {object{"status": "true"}, []string{"status"}},
	"seq too large":     {object{"seq": 1 << 53}, []string{"seq"}},
	"seq too small":     {object{"seq": -1 << 53}, []string{"seq"}},
	"seq a text":        {object{"seq": "1"}, []string{"seq"}},
	"pointer to none":   {object{"is_pointer": "1"}, []string{"pointer_id"}},
	"target, no flag":   {object{"pointer_id": "1"}, []string{"pointer_id"}},
	"unknown target":    {object{"is_pointer": "1", "pointer_id": "404"}, []string{"pointer_id"}},
	"is_pointer":        {object{"is_pointer": "x"}, []string{"is_pointer"}},
	"no condition":      {object{"is_dynamic": "1"}, []string{"condition"}},
	"bad condition":     {object{"condition": "user.x ="}, []string{"condition"}},
	"unknown variable":  {object{"is_dynamic": "1", "condition": "group.x == 1"}, []string{"condition"}},
	"no boolean":        {object{"is_dynamic": "1", "condition": "'x'"}, []string{"condition"}},
	"props a text":      {object{"sys_ext_props": "x"}, []string{"sys_ext_props"}},
	"props too large": {object{"free_ext_props": object{"x": strings.Repeat("x", 64<<10)}},
		[]string{"free_ext_props"}},
	"unknown member": {object{"members": 1}, []string{"members"}},
	"many": {object{"name": "", "code": " ", "seq": 1 << 53, "is_pointer": "1"},
		[]string{"name", "code", "seq", "pointer_id"}},
}

// below puts locations below another.
func below(at string, locations []string) (all []string) {
	for _, l := range locations {
		all = append(all, at+"."+l)
	}
	return all
}

func TestCreateTreeNodeIsRefused(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addObject(t, c, "company")
	other := addObject(t, c, "other")
	addNode(t, c, "company", "", "x", object{"code": "taken"})
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	addObject(t, theirs, "theirs")
	foreign := addNode(t, theirs, "company", "", "x")
	good := object{"object_code": "company", "name": "New", "parent_id": ""}
	create := func(members object) ask {
		return post(nodesPath, changed(good, members))
	}
	rows := map[string]refusal{
		"nothing":                bad(post(nodesPath, object{}), "body.object_code", "body.name", "body.parent_id"),
		"no tree":                bad(create(object{"object_code": ""}), "body.object_code"),
		"unknown tree":           bad(create(object{"object_code": "no"}), "body.object_code"),
		"another tenant's tree":  bad(create(object{"object_code": "theirs"}), "body.object_code"),
		"unknown parent":         bad(create(object{"parent_id": "404"}), "body.parent_id"),
		"odd parent":             bad(create(object{"parent_id": "../%00/'"}), "body.parent_id"),
		"parent a number":        bad(create(object{"parent_id": 1}), "body.parent_id"),
		"parent in another tree": bad(create(object{"parent_id": other["root_node_id"]}), "body.parent_id"),
		"another tenant's node":  bad(create(object{"parent_id": foreign["id"]}), "body.parent_id"),
		"points there": bad(create(object{"is_pointer": "1", "pointer_id": foreign["id"]}),
			"body.pointer_id"),
		"code taken":             taken(create(object{"code": "taken"}), "body.code"),
		"code taken by the root": taken(create(object{"code": "company"}), "body.code"),
		"ref":                    bad(create(object{"ref": "a"}), "body.ref"),
	}
	for name, row := range spoilt {
		rows["spoilt: "+name] = bad(create(row.members), below("body", row.locations)...)
	}
	refused(t, s, c, rows)
}

func TestGetTreeNode(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addObject(t, c, "company")
	n := addNode(t, c, "company", "", "n")
	theirs := in(s, "globex")
	for _, below := range []string{"", "/parent", "/children", "/descendants", "/tree", "/users"} {
		for _, url := range []string{nodesPath + "/404" + below, nodesPath + "/x%2F%25" + below} {
			c.Get(url).Problem(http.StatusNotFound, "not_found")
		}
		theirs.Get(node(n)+below).Problem(http.StatusNotFound, "not_found")
	}
	answer := c.Get(node(n))
	require.Equal(t, `"1-0"`, answer.Header.Get("Etag"))
	require.Equal(t, http.StatusNotModified, c.With("If-None-Match", `"1-0"`).Get(node(n)).Status)
}

func TestUpdateTreeNode(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	o := addObject(t, c, "company")
	n := addNode(t, c, "company", "", "n", object{"code": "n", "sys_ext_props": object{"a": 1, "b": 2},
		"description": "old", "tag": "old"})
	s.Clock.Advance(time.Second)
	other := s.As("acme", "organization:read", "organization:write")
	change := object{"name": "新", "code": "new/code", "description": nil, "tag": "t", "status": "0", "seq": -3,
		"perm_namespace_arn": "x", "sys_ext_props": object{"a": nil, "c": 3}}
	answer := other.Patch(node(n), change)
	require.Equal(t, `"2-0"`, answer.Header.Get("Etag"))
	n = changed(n, object{
		"name": "新", "code": "new/code", "description": "", "tag": "t", "status": "0", "seq": -3.0,
		"perm_namespace_arn": "x", "sys_ext_props": object{"b": 2.0, "c": 3.0},
		"version": 2.0, "time_modified": now(s),
	})
	require.Equal(t, n, answer.Object())
	require.Equal(t, n, nodeNow(t, c, n))

	// Read it and write it back: nothing changes, not even for a root.
	s.Clock.Advance(time.Second)
	before, events := whole(t, c), len(history(t, s))
	for _, same := range []object{n, rootOf(t, c, o)} {
		require.Equal(t, same, c.Patch(node(same), same).Object())
	}
	require.Equal(t, n, c.Patch(node(n), object{"object_code": "company", "path": []string{"x"}, "depth": 7, "arn": "x",
		"operator_id": "x", "child_count": 9, "member_count": 9}).Object())
	require.Equal(t, n, c.Patch(node(n), object{"parent_id": ""}).Object(), "the node is below the root already")
	require.Equal(t, "dry", c.Patch(node(n)+"?dry_run=true", object{"name": "dry"}).Object()["name"])
	require.Equal(t, before, whole(t, c))
	require.Len(t, history(t, s), events)

	c.With("If-Match", `"2"`).Patch(node(n), object{"tag": nil}).OK(nil)
	addNode(t, c, "company", "", "x", object{"code": "n"}) // the code is free again
	foreign := node(rootOf(t, in(s, "globex"), addObject(t, in(s, "globex"), "theirs")))
	rows := map[string]refusal{
		"another tree":      bad(patch(node(n), object{"object_code": "other"}), "body.object_code"),
		"no tree":           bad(patch(node(n), object{"object_code": nil}), "body.object_code"),
		"no code":           bad(patch(node(n), object{"code": nil}), "body.code"),
		"no name":           bad(patch(node(n), object{"name": nil}), "body.name"),
		"code taken":        taken(patch(node(n), object{"code": "n"}), "body.code"),
		"unknown":           missing(patch(nodesPath+"/404", object{"name": "x"})),
		"of another tenant": missing(patch(foreign, object{"name": "x"})),
		"outdated":          outdated(ifMatch(`"2"`, patch(node(n), object{"name": "x"}))),
		"itself":            bad(patch(node(n), object{"is_pointer": "1", "pointer_id": n["id"]}), "body.pointer_id"),
		"points at root": bad(patch(node(n), object{"is_pointer": "1", "pointer_id": o["root_node_id"]}),
			"body.pointer_id"),
	}
	for name, row := range spoilt {
		rows["spoilt: "+name] = bad(patch(node(n), row.members), below("body", row.locations)...)
	}
	refused(t, s, c, rows)
}

func TestDeleteTreeNode(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 3)
	o := addObject(t, c, "company")
	other := addObject(t, c, "other")
	root, n := rootOf(t, c, o), addNode(t, c, "company", "", "n")
	child := addNode(t, c, "company", id(n), "child")
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	foreign := addNode(t, theirs, "company", "", "x")
	leaf := addNode(t, c, "other", "", "leaf")
	query := "?object_code=company"
	refused(t, s, c, map[string]refusal{
		"no tree":           bad(remove(node(child), nil), "query.object_code"),
		"empty tree":        bad(remove(node(child)+"?object_code=", nil), "query.object_code"),
		"another tree":      missing(remove(node(child)+"?object_code=other", nil)),
		"unknown tree":      missing(remove(node(child)+"?object_code=no", nil)),
		"children":          conflict("has_children", remove(node(n)+query, nil)),
		"children, dry":     conflict("has_children", remove(node(n)+query+"&dry_run=true", nil)),
		"unknown":           missing(remove(nodesPath+"/404"+query, nil)),
		"of another tenant": missing(remove(node(foreign)+query, nil)),
		"a root":            conflict("has_children", remove(node(root)+query, nil)),
		"outdated":          outdated(ifMatch(`"7"`, remove(node(child)+query, nil))),
		"grants":            bad(remove(node(child)+query+"&grants=go", nil), "query.grants"),
		"nobody can tell":   away(remove(node(child)+query+"&grants=refuse", nil)),
		"unknown, nor that": missing(remove(nodesPath+"/404"+query+"&grants=refuse", nil)),
	})
	c.Delete(node(leaf)+"?object_code=other", nil).OK(nil)
	refused(t, s, c, map[string]refusal{
		"a root without children": conflict("invalid_state", remove(nodesPath+"/"+other["root_node_id"].(string)+
			"?object_code=other", nil)),
	})

	first := c.Post("/v1/tree-users", object{"node_id": child["id"], "user_id": "1"}).Object()
	second := c.Post("/v1/tree-users", object{"node_id": child["id"], "user_id": "2"}).Object()
	kept := c.Post("/v1/tree-users", object{"node_id": n["id"], "user_id": "1"}).Object()
	child = nodeNow(t, c, child)
	before := whole(t, c)
	require.Equal(t, object{"id": child["id"]}, c.Delete(node(child)+query+"&dry_run=true", nil).Object())
	require.Equal(t, before, whole(t, c))
	events := len(history(t, s))
	require.Equal(t, object{"id": child["id"]}, c.With("If-Match", `"1"`).Delete(node(child)+query, nil).Object(),
		"its members make no version")
	events1 := history(t, s)[events:]
	require.ElementsMatch(t, []string{"node.deleted " + id(child), "membership.deleted " + id(first),
		"membership.updated " + id(kept)}, told(events1))
	ended := data(t, events1[slices.IndexFunc(events1, func(e stream.Event) bool {
		return e.Type == "idp.membership.deleted"
	})])
	require.Equal(t, []any{id(first), id(second)}, members(ended["memberships"], "id"), "one event for all of them")
	require.Equal(t, []any{"20", "20"}, members(ended["memberships"], "sequence"))
	c.Delete(node(child)+query, nil).Problem(http.StatusNotFound, "not_found")
	require.EqualValues(t, 0, nodeNow(t, c, n)["child_count"])
	require.EqualValues(t, 2, objectNow(t, c, o)["node_count"])
	var list []object
	c.Get("/v1/tree-users?user_id=1").OK(&list)
	require.Len(t, list, 1)
	require.Equal(t, "1", list[0]["is_primary"], "the primary membership has ended, so the other one is primary")
	require.JSONEq(t, `[]`, string(c.Get("/v1/tree-users?user_id=2").OK(nil).Body))
}

// A client that edits a node or a core object is not disturbed when its counts change meanwhile.
func TestCountsMakeNoVersion(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 2)
	o := addObject(t, c, "company")
	n := addNode(t, c, "company", "", "n")
	s.Clock.Advance(time.Second)
	m := c.Post("/v1/tree-users", object{"node_id": n["id"], "user_id": "1"}).Object()
	child := addNode(t, c, "company", id(n), "child")
	addNode(t, c, "company", id(n), "second")
	c.Delete(node(child)+"?object_code=company", nil).OK(nil)
	busy := changed(n, object{"member_count": 1.0, "child_count": 1.0})
	answer := c.Get(node(n))
	require.Equal(t, busy, answer.Object())
	require.Equal(t, `"1-4"`, answer.Header.Get("Etag"))
	require.Equal(t, http.StatusOK, c.With("If-None-Match", `"1-0"`).Get(node(n)).Status)
	for _, stale := range []string{`"1-0"`, `"1"`} {
		c.With("If-Match", stale).Patch(node(n)+"?dry_run=true", object{"name": "new"}).OK(nil)
	}
	answer = c.With("If-Match", `"1-0"`).Patch(node(n), object{"name": "new"})
	require.Equal(t, changed(busy, object{"name": "new", "version": 2.0, "time_modified": now(s)}), answer.Object())
	require.Equal(t, `"2-4"`, answer.Header.Get("Etag"))
	c.Delete(membersPath+"/"+id(m), nil).OK(nil)
	c.With("If-Match", `"1-5"`).Patch(node(n), object{"name": "newer"}).Problem(http.StatusPreconditionFailed,
		"version_mismatch")

	require.EqualValues(t, 3, objectNow(t, c, o)["node_count"])
	changedObject := c.With("If-Match", `"1-0"`).Patch(objectPath(o), object{"name": "new"}).Object()
	require.EqualValues(t, 2, changedObject["version"])

	// A move changes the counts of both parents, and the moved node.
	other := addNode(t, c, "company", "", "other")
	second := c.Items("/v1/tree-nodes/"+id(n)+"/children", "id")[0].(string)
	c.With("If-Match", `"1-0"`).Patch("/v1/tree-nodes/"+second, object{"parent_id": other["id"]}).OK(nil)
	require.EqualValues(t, 1, nodeNow(t, c, other)["version"])
	require.EqualValues(t, 2, nodeNow(t, c, n)["version"])
	require.EqualValues(t, 2, c.Get("/v1/tree-nodes/" + second).Object()["version"])
}

func TestCheckTreeNodes(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	company := addObject(t, c, "company")
	root := rootOf(t, c, company)
	n := addNode(t, c, "company", "", "n", object{"code": "a/b"})
	b := addNode(t, c, "company", "", "n", object{"code": "b"})
	addObject(t, c, "other")
	twin := addNode(t, c, "other", "", "n", object{"code": "a/b"})
	root = nodeNow(t, c, root)
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	foreign := addNode(t, theirs, "company", "", "n", object{"code": "foreign"})
	const check = "/v1/batch/tree-nodes-check"
	for kind, want := range map[string]object{
		"id": {
			id(n): n, id(root): root, id(twin): twin, id(foreign): nil, "404": nil, "": nil, "company/b": nil,
			n["arn"].(string): nil, id(n) + " ": nil,
		},
		"code": {
			"company/a/b": n, "other/a/b": twin, "company/b": b, "company/company": root, "company/foreign": nil,
			"company/A/B": nil, "company/a": nil, "company/": nil,
			"company": nil, "/b": nil, "b": nil, "no/b": nil, "": nil, id(n): nil, "other/b": nil,
		},
		"arn": {
			n["arn"].(string): n, root["arn"].(string): root, twin["arn"].(string): twin, foreign["arn"].(string): nil,
			"arn:idp:acme:org:other:" + id(n): nil, "arn:idp:acme:org:company:" + id(twin): nil,
			"arn:idp:globex:org:company:" + id(n): nil,
			"arn:idp:acme:org:company:404":        nil, "arn:idp:acme:org:" + id(n): nil, "arn:idp:acme:org:": nil,
			id(n): nil, "": nil, "arn:idp:acme:app:company:" + id(n): nil,
			"arn:idp:acme:org:company:x:" + id(n): nil, "ARN" + n["arn"].(string)[3:]: nil,
		},
	} {
		ids := []string{}
		for name := range want {
			ids = append(ids, name, name) // requested twice, answered once
		}
		found := object{}
		for name, value := range c.Post(check, object{"type": kind, "ids": ids}).Object() {
			found[name] = value
		}
		require.Equal(t, want, found, kind)
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = "company/x" + strings.Repeat("y", i%7) + string(rune('a'+i%26))
	}
	many[999] = "company/b"
	require.NotNil(t, c.Post(check, object{"type": "code", "ids": many}).Object()["company/b"])
	s.As("acme", "organization:read").Post(check, object{"type": "id", "ids": []string{"1"}}).OK(nil)
	refused(t, s, c, map[string]refusal{
		"nothing":      bad(post(check, object{}), "body.type", "body.ids"),
		"type":         bad(post(check, object{"type": "name", "ids": []string{"1"}}), "body.type"),
		"none":         bad(post(check, object{"type": "id", "ids": []string{}}), "body.ids"),
		"no array":     bad(post(check, object{"type": "id", "ids": "1"}), "body.ids"),
		"numbers":      bad(post(check, object{"type": "id", "ids": []int{1}}), "body.ids[0]"),
		"more than 1k": bad(post(check, object{"type": "id", "ids": append(many, "1")}), "body.ids"),
	})
}
