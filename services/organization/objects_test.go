package organization_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

const objectsPath = "/v1/core-objects"

func objectPath(o object) string { return objectsPath + "/" + id(o) }

// objectNow is the record as it is now.
func objectNow(t testing.TB, c *testkit.Client, o object) object {
	t.Helper()
	var found []object
	c.Get(objectPath(o) + "?code=" + o["code"].(string)).OK(&found)
	require.Len(t, found, 1)
	return found[0]
}

// changed returns a record with other members.
func changed(record object, members object) object {
	other := maps.Clone(record)
	maps.Copy(other, members)
	return other
}

func TestCreateCoreObject(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	answer := c.Post(objectsPath, object{"code": "company", "name": "Acme 集团"})
	o := answer.Object()
	require.Equal(t, `"1-0"`, answer.Header.Get("Etag"))
	require.NotEmpty(t, o["id"])
	require.NotEmpty(t, o["root_node_id"])
	require.Equal(t, object{
		"id": o["id"], "tenant_id": "acme", "version": 1.0, "time_created": now(s), "time_modified": now(s),
		"code": "company", "name": "Acme 集团", "description": "",
		"status": "1", "root_node_id": o["root_node_id"], "node_count": 1.0, "seq": 0.0, "sys_ext_props": object{},
		"free_ext_props": object{}, "managed_by": nil,
	}, o)
	require.Equal(t, o, objectNow(t, c, o))
	require.Equal(t, object{
		"id": o["root_node_id"], "tenant_id": "acme", "version": 1.0, "time_created": now(s), "time_modified": now(s),
		"object_code": "company", "code": "company",
		"name": "Acme 集团", "description": "", "tag": "", "status": "1", "seq": 0.0, "perm_namespace_arn": "",
		"is_pointer": "0", "pointer_id": "", "is_dynamic": "0",
		"condition": "", "sys_ext_props": object{}, "free_ext_props": object{}, "parent_id": "",
		"arn":         "arn:idp:acme:org:company:" + o["root_node_id"].(string),
		"operator_id": "test#tester", "path": []any{o["root_node_id"]}, "depth": 0.0, "child_count": 0.0,
		"member_count": 0.0,
	}, c.Get("/v1/tree-nodes/"+o["root_node_id"].(string)).Object())

	// All members that can be set, of the object and its root.
	full := object{
		"code": "项目.x_y-2", "name": "Projects", "description": "全部", "status": "0", "seq": -7,
		"sys_ext_props": object{"a": object{"b": []any{1.0}}}, "free_ext_props": object{"键": "值"},
	}
	root := object{
		"code": "top/of:it", "name": "Top", "description": "d", "tag": "t", "status": "0", "seq": 3.0,
		"perm_namespace_arn": "arn:x", "is_dynamic": "1",
		"condition": "user.status == 'x'", "sys_ext_props": object{"x": 1.0}, "free_ext_props": object{"y": nil},
	}
	p := c.Post(objectsPath, changed(full, object{"root": root})).Object()
	require.Equal(t, changed(o, changed(full, object{"id": p["id"], "root_node_id": p["root_node_id"], "seq": -7.0})),
		p)
	top := c.Get("/v1/tree-nodes/" + p["root_node_id"].(string)).Object()
	for name, value := range root {
		require.Equal(t, value, top[name], name)
	}
	// The other members of the record may be sent back and are ignored.
	again := changed(p, object{"code": "again"})
	require.Equal(t, changed(again, object{"id": nil, "root_node_id": nil, "node_count": 1.0}),
		changed(c.Post(objectsPath, again).Object(), object{"id": nil, "root_node_id": nil}))
	// Codes are unique in a tenant only.
	addObject(t, in(s, "globex"), "company")
}

func TestCreateCoreObjectIsRefused(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addObject(t, c, "company")
	rows := map[string]refusal{
		"nothing":    bad(post(objectsPath, object{}), "body.code", "body.name"),
		"no code":    bad(post(objectsPath, object{"name": "x"}), "body.code"),
		"no name":    bad(post(objectsPath, object{"code": "x"}), "body.name"),
		"code taken": taken(post(objectsPath, object{"code": "company", "name": "x"}), "body.code"),
		"two faults": bad(post(objectsPath, object{"code": "a b", "name": ""}), "body.code", "body.name"),
	}
	for name, row := range map[string]struct {
		members   object
		locations []string
	}{
		"empty code":        {object{"code": ""}, []string{"body.code"}},
		"code with space":   {object{"code": "a b"}, []string{"body.code"}},
		"code with slash":   {object{"code": "a/b"}, []string{"body.code"}},
		"code with colon":   {object{"code": "a:b"}, []string{"body.code"}},
		"code with percent": {object{"code": "a%b"}, []string{"body.code"}},
		"code from a dot":   {object{"code": ".a"}, []string{"body.code"}},
		"code of 129":       {object{"code": strings.Repeat("x", 129)}, []string{"body.code"}},
		"code with newline": {object{"code": "a\n"}, []string{"body.code"}},
		"empty name":        {object{"name": ""}, []string{"body.name"}},
		"blank name":        {object{"name": " \t"}, []string{"body.name", "body.name"}},
		"name of 257":       {object{"name": strings.Repeat("名", 257)}, []string{"body.name"}},
		"control character": {object{"name": "a\x00b"}, []string{"body.name"}},
		"name a number":     {object{"name": 1}, []string{"body.name"}},
		"description":       {object{"description": strings.Repeat("x", 2001)}, []string{"body.description"}},
		"status":            {object{"status": "2"}, []string{"body.status"}},
		"status a number":   {object{"status": 1}, []string{"body.status"}},
		"seq too large":     {object{"seq": 1 << 53}, []string{"body.seq"}},
		"seq too small":     {object{"seq": -1 << 53}, []string{"body.seq"}},
		"seq a text":        {object{"seq": "1"}, []string{"body.seq"}},
		"seq a fraction":    {object{"seq": 1.5}, []string{"body.seq"}},
		"props an array":    {object{"sys_ext_props": []any{}}, []string{"body.sys_ext_props"}},
		"props too large": {object{"free_ext_props": object{"x": strings.Repeat("x", 64<<10)}},
			[]string{"body.free_ext_props"}},
		"unknown member":     {object{"parent_id": ""}, []string{"body.parent_id"}},
		"root with a parent": {object{"root": object{"parent_id": "1"}}, []string{"body.root.parent_id"}},
		"root's name":        {object{"root": object{"name": strings.Repeat("x", 257)}}, []string{"body.root.name"}},
		"root's code":        {object{"root": object{"code": "a b"}}, []string{"body.root.code"}},
		"root's status":      {object{"root": object{"status": "on"}}, []string{"body.root.status"}},
		"root's unknown":     {object{"root": object{"no": 1}}, []string{"body.root.no"}},
		"root's seq":         {object{"root": object{"seq": 1 << 53}}, []string{"body.root.seq"}},
		"root's condition":   {object{"root": object{"is_dynamic": "1"}}, []string{"body.root.condition"}},
		"root's bad CEL": {object{"root": object{"is_dynamic": "1", "condition": "1 +"}},
			[]string{"body.root.condition"}},
		"root's pointer": {object{"root": object{"is_pointer": "1"}}, []string{"body.root.pointer_id"}},
		"root points away": {object{"root": object{"is_pointer": "1", "pointer_id": "404"}},
			[]string{"body.root.pointer_id"}},
		"root no object": {object{"root": "x"}, []string{"body.root"}},
	} {
		rows[name] = bad(post(objectsPath, changed(object{"code": "new", "name": "New"}, row.members)),
			row.locations...)
	}
	refused(t, s, c, rows)
	// Values at the limits are allowed.
	c.Post(objectsPath, object{"code": strings.Repeat("码", 128), "name": strings.Repeat("名", 256), "seq": 1<<53 - 1,
		"description": strings.Repeat("述", 2000)}).OK(nil)
	c.Post(objectsPath, object{"code": "low", "name": " x ", "seq": 1 - 1<<53}).OK(nil)
}

func TestListAndGetCoreObjects(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	require.JSONEq(t, `[]`, string(c.Get(objectsPath).OK(nil).Body))
	var want []object
	for _, row := range []struct {
		code string
		seq  int64
	}{{"c", 2}, {"a", 0}, {"d", 2}, {"b", -1 << 40}, {"e", 1 << 40}} {
		want = append(want, addObject(t, c, row.code, object{"seq": row.seq}))
	}
	want = []object{want[3], want[1], want[0], want[2], want[4]}
	var list []object
	c.Get(objectsPath).OK(&list)
	require.Equal(t, want, list)
	other := addObject(t, in(s, "globex"), "a")
	c.Get(objectsPath).OK(&list)
	require.Equal(t, want, list)

	for url, found := range map[string]int{
		objectPath(want[0]) + "?code=b": 1, objectPath(want[0]) + "?code=a": 0, objectPath(want[0]) + "?code=B": 0,
		objectPath(want[0]) + "?code=no": 0,
		objectPath(other) + "?code=a":    0, objectsPath + "/1?code=a": 0, objectsPath + "/" +
			want[0]["root_node_id"].(string) + "?code=b": 0, objectsPath + "/%25?code=%25": 0,
	} {
		list = nil
		c.Get(url).OK(&list)
		require.NotNil(t, list, "%s: [] and not null", url)
		require.Len(t, list, found, url)
	}
	c.Get(objectPath(want[0])).Problem(http.StatusBadRequest, "invalid_parameters", "query.code")
	c.Get(objectPath(want[0])+"?code=").Problem(http.StatusBadRequest, "invalid_parameters", "query.code")
}

func TestUpdateCoreObject(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	o := addObject(t, c, "company", object{"sys_ext_props": object{"a": 1, "b": 2}})
	s.Clock.Advance(time.Second)
	answer := c.Patch(objectPath(o), object{"name": "新", "description": "d", "status": "0", "seq": 5,
		"sys_ext_props": object{"a": nil, "c": 3}})
	require.Equal(t, `"2-0"`, answer.Header.Get("Etag"))
	o = changed(o, object{
		"name": "新", "description": "d", "status": "0", "seq": 5.0, "sys_ext_props": object{"b": 2.0, "c": 3.0},
		"version": 2.0, "time_modified": now(s),
	})
	require.Equal(t, o, answer.Object())
	require.Equal(t, o, objectNow(t, c, o))

	// Read it and write it back: nothing changes.
	events := len(history(t, s))
	require.Equal(t, o, c.Patch(objectPath(o), o).Object())
	require.Equal(t, o, c.Patch(objectPath(o), object{"code": "company", "node_count": 99, "root_node_id": "1"}).
		Object())
	require.Equal(t, o, objectNow(t, c, o))
	dry := c.Patch(objectPath(o)+"?dry_run=true", object{"description": nil})
	require.Equal(t, "true", dry.Header.Get("Dry-Run"))
	require.Equal(t, "", dry.Object()["description"])
	require.Equal(t, o, objectNow(t, c, o))
	require.Len(t, history(t, s), events)

	require.Equal(t, "", c.With("If-Match", `"2"`).Patch(objectPath(o), object{"description": nil}).
		Object()["description"])
	require.Equal(t, "1", c.Patch(objectPath(o), object{"status": nil}).Object()["status"])

	foreign := objectPath(addObject(t, in(s, "globex"), "theirs"))
	refused(t, s, c, map[string]refusal{
		"another code":      bad(patch(objectPath(o), object{"code": "other"}), "body.code"),
		"no code":           bad(patch(objectPath(o), object{"code": nil}), "body.code"),
		"no name":           bad(patch(objectPath(o), object{"name": nil}), "body.name"),
		"both":              bad(patch(objectPath(o), object{"name": "", "code": "x"}), "body.name", "body.code"),
		"status":            bad(patch(objectPath(o), object{"status": "x"}), "body.status"),
		"seq":               bad(patch(objectPath(o), object{"seq": 1 << 53}), "body.seq"),
		"root":              bad(patch(objectPath(o), object{"root": object{"name": "x"}}), "body.root"),
		"unknown":           missing(patch(objectsPath+"/1", object{"name": "x"})),
		"of another tenant": missing(patch(foreign, object{"name": "x"})),
		"outdated":          outdated(ifMatch(`"2"`, patch(objectPath(o), object{"name": "x"}))),
	})
}

func TestDeleteCoreObject(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 2)
	o := addObject(t, c, "company")
	root := o["root_node_id"].(string)
	child := addNode(t, c, "company", "", "child")
	theirs := objectPath(addObject(t, in(s, "globex"), "theirs"))
	refused(t, s, c, map[string]refusal{
		"children":               conflict("has_children", remove(objectPath(o), nil)),
		"children before grants": away(remove(objectPath(o)+"?grants=refuse", nil)),
		"children, dry":          conflict("has_children", remove(objectPath(o)+"?dry_run=true", nil)),
		"unknown":                missing(remove(objectsPath+"/1", nil)),
		"unknown, with grants":   missing(remove(objectsPath+"/1?grants=refuse", nil)),
		"of another tenant":      missing(remove(theirs, nil)),
		"by its root's id":       missing(remove(objectsPath+"/"+root, nil)),
		"outdated":               outdated(ifMatch(`"2"`, remove(objectPath(o), nil))),
		"grants":                 bad(remove(objectPath(o)+"?grants=keep", nil), "query.grants"),
	})
	c.Delete(node(child)+"?object_code=company", nil).OK(nil)

	addObject(t, c, "project")
	pointer := addNode(t, c, "project", "", "pointer", object{"is_pointer": "1", "pointer_id": root})
	refused(t, s, c, map[string]refusal{"pointed at": conflict("in_use", remove(objectPath(o), nil),
		"tree_nodes.pointer_id")})
	c.Patch(node(pointer), object{"is_pointer": "0", "pointer_id": nil}).OK(nil)

	member := c.Post("/v1/tree-users", object{"node_id": root, "user_id": "1"}).Object()
	link := c.Post("/v1/tree-associations", object{"source_node_id": pointer["id"], "target_node_id": root}).Object()
	before := whole(t, c)
	require.Equal(t, object{"id": o["id"]}, c.Delete(objectPath(o)+"?dry_run=true", nil).Object())
	require.Equal(t, before, whole(t, c))
	events := len(history(t, s))
	require.Equal(t, object{"id": o["id"]}, c.With("Content-Type", "multipart/form-data; boundary=x").
		Delete(objectPath(o), "--x--\r\n").Object())
	require.ElementsMatch(t, []string{
		"core_object.deleted " + id(o), "node.deleted " + root, "membership.deleted " + id(member),
		"association.deleted " + id(link),
	}, told(history(t, s)[events:]))
	c.Get("/v1/tree-nodes/"+root).Problem(http.StatusNotFound, "not_found")
	c.Get("/v1/tree-users/"+id(member)).Problem(http.StatusNotFound, "not_found")
	c.Get("/v1/tree-nodes?object_code=company").Problem(http.StatusNotFound, "not_found")
	require.JSONEq(t, `[]`, string(c.Get("/v1/tree-users?user_id=1").OK(nil).Body))
	c.Delete(objectPath(o), nil).Problem(http.StatusNotFound, "not_found")
	require.NotEqual(t, o["id"], addObject(t, c, "company")["id"], "the code is free, the id is not")
}

// permissions stands for the permissions service; it answers that so many grants exist for any node.
func permissions(t testing.TB, s *testkit.Service, count int) *[]object {
	t.Helper()
	asked := &[]object{}
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "permissions", "grants-of-node",
		func(_ context.Context, q object) (object, error) {
			*asked = append(*asked, q)
			return object{"count": count}, nil
		}))
	return asked
}

func TestGrantsHoldCoreObjectsAndNodes(t *testing.T) {
	t.Parallel()
	for count, name := range map[int]string{0: "none", 3: "some"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := acme(t)
			o := addObject(t, c, "company")
			n := addNode(t, c, "company", "", "n")
			asked := permissions(t, s, count)
			urls := []string{node(n) + "?object_code=company", objectPath(o) + "?"}
			for _, url := range urls {
				if count > 0 {
					refused(t, s, c, map[string]refusal{
						"granted": conflict("in_use", remove(url+"&grants=refuse", nil), "auth_rules"),
					})
					c.Delete(url, nil).OK(nil) // its grants are deleted with it
				} else {
					c.Delete(url+"&grants=refuse", nil).OK(nil)
				}
			}
			require.Equal(t, []object{
				{"object_code": "company", "node_id": n["id"]},
				{"object_code": "company", "node_id": o["root_node_id"]},
			}, slices.Clone(*asked))
		})
	}
}
