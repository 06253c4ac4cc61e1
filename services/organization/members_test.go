package organization_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

const (
	membersPath  = "/v1/tree-users"
	membersBatch = "/v1/batch/tree-users"
)

// join makes a user a member of a node.
func join(t testing.TB, c *testkit.Client, n object, user string, more ...object) object {
	t.Helper()
	return c.Post(membersPath, with(object{"node_id": n["id"], "user_id": user}, more)).Object()
}

func memberNow(t testing.TB, c *testkit.Client, m object) object {
	t.Helper()
	return c.Get(membersPath + "/" + id(m)).Object()
}

// primaries are the nodes of a user's primary memberships, by core object.
func primaries(t testing.TB, c *testkit.Client, user string) object {
	t.Helper()
	var list []object
	c.Get(membersPath + "?user_id=" + user).OK(&list)
	found := object{}
	for _, m := range list {
		if m["is_primary"] == "1" {
			require.NotContains(t, found, m["object_code"], "one in each tree")
			found[m["object_code"].(string)] = m["node_name"]
		}
	}
	return found
}

func TestAddMember(t *testing.T) {
	t.Parallel()
	s, c, p := withPeople(t, 2)
	addObject(t, c, "company")
	rd := addNode(t, c, "company", "", "研发")
	n := addNode(t, c, "company", id(rd), "平台组")
	s.Clock.Advance(time.Second)
	answer := c.Post(membersPath, object{"node_id": n["id"], "user_id": "1"})
	m := answer.Object()
	require.Equal(t, `"1"`, answer.Header.Get("Etag"))
	require.Equal(t, object{
		"id": m["id"], "tenant_id": "acme", "version": 1.0, "time_created": now(s), "time_modified": now(s),
		"object_code": "company", "node_id": n["id"],
		"node_name": "平台组", "node_path": []any{"COMPANY", "研发", "平台组"}, "user_id": "1", "is_primary": "1", "title": "",
		"role": "member", "seq": 0.0, "dynamic": false,
	}, m)
	require.Equal(t, m, memberNow(t, c, m))
	require.Equal(t, changed(n, object{"member_count": 1.0}), nodeNow(t, c, n))
	require.EqualValues(t, 0, nodeNow(t, c, rd)["member_count"])

	full := object{"is_primary": "0", "title": strings.Repeat("长", 128), "role": "项目 leader_1.x-y",
		"seq": float64(1 - 1<<53)}
	second := join(t, c, rd, "1", full, object{"id": "7", "version": 3, "node_name": "x", "node_path": []string{},
		"object_code": "x", "dynamic": true})
	require.Equal(t, changed(changed(m, full), object{
		"id": second["id"], "node_id": rd["id"], "node_name": "研发", "node_path": []any{"COMPANY", "研发"},
	}), second)
	require.Equal(t, "1", join(t, c, rd, "2", object{"is_primary": "0"})["is_primary"],
		"the first is primary in any case")

	// Names are the current ones.
	c.Patch(node(rd), object{"name": "R&D"}).OK(nil)
	require.Equal(t, []any{"COMPANY", "R&D", "平台组"}, memberNow(t, c, m)["node_path"])
	c.Patch(node(n), object{"parent_id": ""}).OK(nil)
	require.Equal(t, []any{"COMPANY", "平台组"}, memberNow(t, c, m)["node_path"])

	before, asked := whole(t, c), p.asked
	dry := c.Post(membersPath+"?dry_run=true", object{"node_id": n["id"], "user_id": "2"})
	require.Equal(t, "true", dry.Header.Get("Dry-Run"))
	require.Equal(t, "2", dry.Object()["user_id"])
	require.Equal(t, before, whole(t, c))
	require.Equal(t, asked+1, p.asked, "a dry run is checked too")
}

// spoiltMembers are members that no membership may have, with the locations of their faults.
var spoiltMembers = map[string]struct {
	members   object
	locations []string
}{
	"role with slash": {object{"role": "a/b"}, []string{"role"}},
	"role of 65":      {object{"role": strings.Repeat("x", 65)}, []string{"role"}},
	"role of a space": {object{"role": " a"}, []string{"role"}},
	"title of 129":    {object{"title": strings.Repeat("长", 129)}, []string{"title"}},
	"title":           {object{"title": "a\tb"}, []string{"title"}},
	"is_primary":      {object{"is_primary": "yes"}, []string{"is_primary"}},
	"a boolean":       {object{"is_primary": true}, []string{"is_primary"}},
	"seq":             {object{"seq": 1 << 53}, []string{"seq"}},
	"seq a text":      {object{"seq": "1"}, []string{"seq"}},
	"unknown":         {object{"status": "1"}, []string{"status"}},
	"many":            {object{"role": "/", "title": "\x01", "seq": -1 << 53}, []string{"role", "title", "seq"}},
}

func TestAddMemberIsRefused(t *testing.T) {
	t.Parallel()
	s, c, p := withPeople(t, 3)
	p.put("3", object{"status": "resigned"})
	addObject(t, c, "company")
	n, dynamic := addNode(t, c, "company", "", "n"),
		addNode(t, c, "company", "", "dynamic", object{"is_dynamic": "1", "condition": "user.status == 'never'"})
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	foreign := addNode(t, theirs, "company", "", "x")
	join(t, c, n, "1")
	create := func(members object) ask {
		return post(membersPath, changed(object{"node_id": n["id"], "user_id": "2"}, members))
	}
	rows := map[string]refusal{
		"nothing":          bad(post(membersPath, object{}), "body.node_id", "body.user_id"),
		"empty":            bad(create(object{"node_id": "", "user_id": ""}), "body.node_id", "body.user_id"),
		"numbers":          bad(create(object{"node_id": 1, "user_id": 2}), "body.node_id", "body.user_id"),
		"unknown node":     bad(create(object{"node_id": "404"}), "body.node_id"),
		"another tenant's": bad(create(object{"node_id": foreign["id"]}), "body.node_id"),
		"unknown user":     bad(create(object{"user_id": "404"}), "body.user_id"),
		"resigned":         bad(create(object{"user_id": "3"}), "body.user_id"),
		"user of 65":       bad(create(object{"user_id": strings.Repeat("1", 65)}), "body.user_id"),
		"again":            taken(create(object{"user_id": "1"}), "body.user_id"),
		"dynamic":          conflict("invalid_state", create(object{"node_id": dynamic["id"]})),
	}
	for name, row := range spoiltMembers {
		rows["spoilt: "+name] = bad(create(row.members), below("body", row.locations)...)
	}
	refused(t, s, c, rows)
}

func TestMembersNeedTheUsersService(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addObject(t, c, "company")
	n := addNode(t, c, "company", "", "n")
	refused(t, s, c, map[string]refusal{
		"one":      away(post(membersPath, object{"node_id": n["id"], "user_id": "1"})),
		"a dry":    away(post(membersPath+"?dry_run=true", object{"node_id": n["id"], "user_id": "1"})),
		"many":     away(post(membersBatch, object{"node_id": n["id"], "user_ids": []string{"1"}})),
		"keyword":  away(get(node(n, "users?keyword=x"))),
		"spoilt":   bad(post(membersPath, object{"node_id": "", "user_id": "1"}), "body.node_id"),
		"no users": bad(post(membersBatch, object{"node_id": n["id"], "user_ids": []string{}}), "body"),
	})
}

func TestAddMembers(t *testing.T) {
	t.Parallel()
	s, c, p := withPeople(t, 1000)
	addObject(t, c, "company")
	a, b := addNode(t, c, "company", "", "a"), addNode(t, c, "company", "", "b")
	users := make([]string, 1000)
	for i := range users {
		users[i] = fmt.Sprint(i + 1)
	}
	before := whole(t, c)
	require.Len(t, c.Post(membersBatch+"?dry_run=true", object{"node_id": a["id"], "user_ids": users}).
		Object()["items"], 1000)
	require.Equal(t, before, whole(t, c))
	p.asked = 0
	items := c.Post(membersBatch, object{"node_id": a["id"], "user_ids": users}).Object()["items"]
	require.Equal(t, 1, p.asked, "one question for all")
	for i, user := range members(items, "user_id") {
		require.Equal(t, users[i], user)
	}
	require.EqualValues(t, 1000, nodeNow(t, c, a)["member_count"])

	got := c.Post(membersBatch, object{"items": []object{
		{"node_id": b["id"], "user_id": "1", "title": "t", "is_primary": "1"},
		{"node_id": b["id"], "user_id": "2", "role": "leader", "seq": 3},
		{"node_id": a["path"].([]any)[0], "user_id": "1"},
	}}).Object()["items"].([]any)
	require.Equal(t, []any{"1", "0", "0"}, members(got, "is_primary"))
	require.Equal(t, []any{"t", "", ""}, members(got, "title"))
	for _, item := range got {
		require.Equal(t, item, memberNow(t, c, item.(object)))
	}
	require.Equal(t, object{"company": "b"}, primaries(t, c, "1"))
	require.Len(t, history(t, s), 4+1000+3+1)
}

func TestAddMembersIsRefused(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 5)
	addObject(t, c, "company")
	n, dynamic := addNode(t, c, "company", "", "n"),
		addNode(t, c, "company", "", "dynamic", object{"is_dynamic": "1", "condition": "user.status == 'never'"})
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	foreign := addNode(t, theirs, "company", "", "x")
	join(t, c, n, "1")
	join(t, c, n, "2")
	users := func(ids ...string) ask {
		return post(membersBatch, object{"node_id": n["id"], "user_ids": ids})
	}
	items := func(list ...object) ask {
		for i := range list {
			list[i] = changed(object{"node_id": n["id"]}, list[i])
		}
		return post(membersBatch, object{"items": list})
	}
	many := make([]string, 1001)
	manyItems := make([]object, 1001)
	for i := range many {
		many[i], manyItems[i] = fmt.Sprint(i), object{"user_id": fmt.Sprint(i)}
	}
	good := object{"user_id": "3"}
	rows := map[string]refusal{
		"nothing": bad(post(membersBatch, object{}), "body"),
		"none": bad(post(membersBatch, object{"node_id": n["id"], "user_ids": []string{},
			"items": []object{}}), "body"),
		"both": bad(post(membersBatch, object{"node_id": n["id"], "user_ids": []string{"3"},
			"items": []object{{"node_id": n["id"], "user_id": "4"}}}), "body"),
		"a node beside items": bad(post(membersBatch,
			object{"node_id": n["id"], "items": []object{{"node_id": n["id"], "user_id": "4"}}}), "body.node_id"),
		"no node": bad(post(membersBatch, object{"user_ids": []string{"3", "4"}}), "body.node_id"),
		"unknown node": bad(post(membersBatch, object{"node_id": "404", "user_ids": []string{"3", "4"}}),
			"body.node_id"),
		"another tenant's": bad(post(membersBatch, object{"node_id": foreign["id"], "user_ids": []string{"3"}}),
			"body.node_id"),
		"1001 users": bad(users(many...), "body.user_ids"),
		"1001 items": bad(items(manyItems...), "body.items"),
		"numbers": bad(post(membersBatch, object{"node_id": n["id"], "user_ids": []int{3}}),
			"body.user_ids[0]"),
		"unknown users":       bad(users("3", "404", "4", "405"), "body.user_ids[1]", "body.user_ids[3]"),
		"empty user":          bad(users("3", ""), "body.user_ids[1]"),
		"twice":               bad(users("3", "4", "3"), "body.user_ids[2]"),
		"members already":     taken(users("3", "2", "4", "1"), "body.user_ids[1]", "body.user_ids[3]"),
		"items, unknown user": bad(items(good, object{"user_id": "404"}), "body.items[1].user_id"),
		"items, unknown nodes": bad(items(good, object{"user_id": "4", "node_id": "404"},
			object{"user_id": "5", "node_id": foreign["id"]}), "body.items[1].node_id", "body.items[2].node_id"),
		"items, twice":          bad(items(good, good), "body.items[1].user_id"),
		"items, member already": taken(items(good, object{"user_id": "2"}), "body.items[1].user_id"),
		"items, no user":        bad(items(good, object{}), "body.items[1].user_id"),
		"items, dynamic": conflict("invalid_state",
			items(good, object{"user_id": "4", "node_id": dynamic["id"]})),
	}
	for name, row := range spoiltMembers {
		rows["spoilt: "+name] = bad(items(good, changed(object{"user_id": "4"}, row.members)),
			below("body.items[1]", row.locations)...)
	}
	refused(t, s, c, rows)
}

// One of a user's memberships in a tree is primary.
func TestPrimaryMemberships(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 3)
	addObject(t, c, "company")
	addObject(t, c, "other")
	nodes := map[string]object{}
	for _, name := range []string{"a", "b", "c", "d"} {
		nodes[name] = addNode(t, c, "company", "", name)
	}
	a := join(t, c, nodes["a"], "1")
	s.Clock.Advance(time.Second)
	b := join(t, c, nodes["b"], "1")
	elsewhere := join(t, c, addNode(t, c, "other", "", "x"), "1")
	require.Equal(t, object{"company": "a", "other": "x"}, primaries(t, c, "1"))

	// Making another one primary, by a change or by adding, ends that, with an event.
	events := len(history(t, s))
	b = c.Patch(membersPath+"/"+id(b), object{"is_primary": "1"}).Object()
	require.EqualValues(t, 2, b["version"])
	require.Equal(t, object{"company": "b", "other": "x"}, primaries(t, c, "1"))
	all := history(t, s)[events:]
	require.ElementsMatch(t, []string{"membership.updated " + id(a), "membership.updated " + id(b)}, told(all))
	require.EqualValues(t, 2, memberNow(t, c, a)["version"])
	third := join(t, c, nodes["c"], "1", object{"is_primary": "1"})
	require.Equal(t, object{"company": "c", "other": "x"}, primaries(t, c, "1"))

	// The flag cannot be removed, only given to another membership.
	refused(t, s, c, map[string]refusal{
		"taken away":     bad(patch(membersPath+"/"+id(third), object{"is_primary": "0"}), "body.is_primary"),
		"set to null":    bad(patch(membersPath+"/"+id(third), object{"is_primary": nil}), "body.is_primary"),
		"the only one's": bad(patch(membersPath+"/"+id(elsewhere), object{"is_primary": "0"}), "body.is_primary"),
		"with other ones": bad(patch(membersPath+"/"+id(third), object{"is_primary": "0", "role": "/"}),
			"body.is_primary", "body.role"),
	})

	// When the primary membership ends, the oldest of the others becomes primary.
	events = len(history(t, s))
	c.Delete(membersPath+"/"+id(third), nil).OK(nil)
	require.Equal(t, object{"company": "a", "other": "x"}, primaries(t, c, "1"))
	require.ElementsMatch(t, []string{"membership.deleted " + id(third), "membership.updated " + id(a)},
		told(history(t, s)[events:]))
	join(t, c, nodes["d"], "1")
	require.Equal(t, object{"removed": 2.0}, c.Delete(membersPath, object{"ids": []any{a["id"], b["id"]}}).Object())
	require.Equal(t, object{"company": "d", "other": "x"}, primaries(t, c, "1"))
	c.Delete(membersPath, object{"node_id": nodes["d"]["id"], "user_ids": []string{"1"}}).OK(nil)
	require.Equal(t, object{"other": "x"}, primaries(t, c, "1"))

	// In a batch, too: the last that asks for it, otherwise the first; each is answered as it is, and has one event.
	for user, row := range map[string]struct {
		asks []string
		want string
	}{"2": {[]string{"", "", ""}, "a"}, "3": {[]string{"1", "", "1"}, "c"}} {
		var list []object
		for i, name := range []string{"a", "b", "c"} {
			m := object{"node_id": nodes[name]["id"], "user_id": user}
			if row.asks[i] != "" {
				m["is_primary"] = row.asks[i]
			}
			list = append(list, m)
		}
		events := len(history(t, s))
		items := c.Post(membersBatch, object{"items": list}).Object()["items"].([]any)
		require.Equal(t, object{"company": row.want}, primaries(t, c, user))
		var want []string
		for _, item := range items {
			require.Equal(t, item, memberNow(t, c, item.(object)))
			want = append(want, "membership.created "+id(item.(object)))
		}
		require.ElementsMatch(t, want, told(history(t, s)[events:]))
	}
}

func TestUpdateMember(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 2)
	addObject(t, c, "company")
	n, other := addNode(t, c, "company", "", "n"), addNode(t, c, "company", "", "other")
	m := join(t, c, n, "1", object{"title": "old", "role": "old", "seq": 1})
	url := membersPath + "/" + id(m)
	s.Clock.Advance(time.Second)
	answer := c.With("If-Match", `"1"`).Patch(url, object{"title": "架构师", "role": "leader", "seq": -4})
	require.Equal(t, `"2"`, answer.Header.Get("Etag"))
	m = changed(m, object{"title": "架构师", "role": "leader", "seq": -4.0, "version": 2.0, "time_modified": now(s)})
	require.Equal(t, m, answer.Object())
	require.Equal(t, m, memberNow(t, c, m))
	require.Equal(t, http.StatusNotModified, c.With("If-None-Match", `"2"`).Get(url).Status)

	s.Clock.Advance(time.Second)
	before, events := whole(t, c), len(history(t, s))
	require.Equal(t, m, c.Patch(url, m).Object())
	require.Equal(t, m, c.Patch(url, object{"is_primary": "1", "dynamic": true, "node_path": []string{"x"},
		"object_code": "x", "node_name": "x"}).Object())
	require.Equal(t, "dry", c.Patch(url+"?dry_run=true", object{"title": "dry"}).Object()["title"])
	require.Equal(t, before, whole(t, c))
	require.Len(t, history(t, s), events)

	rows := map[string]refusal{
		"another node": bad(patch(url, object{"node_id": other["id"]}), "body.node_id"),
		"another user": bad(patch(url, object{"user_id": "2"}), "body.user_id"),
		"no node":      bad(patch(url, object{"node_id": nil, "user_id": nil}), "body.node_id", "body.user_id"),
		"unknown":      missing(patch(membersPath+"/404", object{"title": "x"})),
		"outdated":     outdated(ifMatch(`"1"`, patch(url, object{"title": "x"}))),
		"get unknown":  missing(get(membersPath + "/404")),
	}
	for name, row := range spoiltMembers {
		rows["spoilt: "+name] = bad(patch(url, row.members), below("body", row.locations)...)
	}
	refused(t, s, c, rows)
	theirs := in(s, "globex")
	theirs.Get(url).Problem(http.StatusNotFound, "not_found")
	theirs.Patch(url, object{"title": "x"}).Problem(http.StatusNotFound, "not_found")
	theirs.Delete(url, nil).Problem(http.StatusNotFound, "not_found")

	require.Equal(t, "member", c.Patch(url, object{"role": nil, "title": nil, "seq": nil}).Object()["role"])
}

func TestRemoveMembers(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 300)
	addObject(t, c, "company")
	n, other := addNode(t, c, "company", "", "n"), addNode(t, c, "company", "", "other")
	theirs := in(s, "globex")
	add := func(count int) (ids []any) {
		users := make([]string, count)
		for i := range users {
			users[i] = fmt.Sprint(i + 1)
		}
		return members(c.Post(membersBatch, object{"node_id": n["id"], "user_ids": users}).Object()["items"], "id")
	}
	ids := add(5)
	kept := join(t, c, other, "1")
	one := membersPath + "/" + ids[0].(string)
	refused(t, s, c, map[string]refusal{
		"nothing":    bad(remove(membersPath, nil), "query.id"),
		"empty body": bad(remove(membersPath, object{}), "query.id"),
		"empty ids":  bad(remove(membersPath, object{"ids": []string{}}), "query.id"),
		"no users":   bad(remove(membersPath, object{"node_id": n["id"]}), "body.user_ids"),
		"empty users": bad(remove(membersPath, object{"node_id": n["id"], "user_ids": []string{}}),
			"body.user_ids"),
		"no node": bad(remove(membersPath, object{"user_ids": []string{"1"}}), "body.node_id"),
		"ids and users": bad(remove(membersPath,
			object{"ids": ids, "node_id": n["id"], "user_ids": []string{"1"}}), "body.ids"),
		"id and users": bad(remove(membersPath+"?id=1", object{"node_id": n["id"], "user_ids": []string{"1"}}),
			"body.ids"),
		"ids and a node": bad(remove(membersPath, object{"ids": ids, "node_id": n["id"]}), "body.ids",
			"body.user_ids"),
		"1001 ids": bad(remove(membersPath, object{"ids": make([]string, 1001)}), "body.ids"),
		"1001 users": bad(remove(membersPath, object{"node_id": n["id"], "user_ids": make([]string, 1001)}),
			"body.user_ids"),
		"numbers":            bad(remove(membersPath, object{"ids": []int{1}}), "body.ids[0]"),
		"unknown member":     bad(remove(membersPath, object{"id": "1"}), "body.id", "query.id"),
		"one, unknown":       missing(remove(membersPath+"/404", nil)),
		"one, a node's id":   missing(remove(membersPath+"/"+id(n), nil)),
		"one, outdated":      outdated(ifMatch(`"2"`, remove(one, nil))),
		"one, outdated, dry": outdated(ifMatch(`"2"`, remove(one+"?dry_run=true", nil))),
	})
	require.Equal(t, object{"removed": 0.0}, theirs.Delete(membersPath, object{"ids": ids}).Object())
	require.Equal(t, object{"removed": 0.0}, theirs.Delete(membersPath,
		object{"node_id": n["id"], "user_ids": []string{"1"}}).Object())

	before := whole(t, c)
	require.Equal(t, object{"id": ids[0]}, c.Delete(one+"?dry_run=true", nil).Object())
	require.Equal(t, object{"removed": 5.0}, c.Delete(membersPath+"?dry_run=true", object{"ids": ids}).Object())
	require.Equal(t, before, whole(t, c))

	events := len(history(t, s))
	require.Equal(t, object{"id": ids[0]}, c.With("If-Match", `"1"`).Delete(one, nil).Object())
	require.Equal(t, object{"removed": 1.0}, c.Delete(membersPath+"?id="+ids[1].(string), nil).Object())
	require.Equal(t, object{"removed": 0.0}, c.Delete(membersPath+"?id="+ids[1].(string), nil).Object())
	require.Equal(t, object{"removed": 0.0}, c.Delete(membersPath+"?id=404", object{}).Object())
	require.Equal(t, object{"removed": 2.0}, c.Delete(membersPath+"?id="+ids[2].(string),
		object{"ids": []any{ids[2], ids[3], "404", ids[0], ids[3]}}).Object())
	require.Equal(t, object{"removed": 1.0}, c.Delete(membersPath,
		object{"node_id": n["id"], "user_ids": []string{"5", "5", "404", "1"}}).Object())
	require.Equal(t, object{"removed": 0.0}, c.Delete(membersPath, object{"node_id": "404", "user_ids": []string{"1"}}).
		Object())
	require.EqualValues(t, 0, nodeNow(t, c, n)["member_count"])
	want := []string{"membership.updated " + id(kept)} // user 1's other membership becomes primary
	for _, id := range ids {
		want = append(want, "membership.deleted "+id.(string))
	}
	require.ElementsMatch(t, want, told(history(t, s)[events:]))

	// The same user many times, in more items than are looked up together.
	ids = add(300)
	users, often := make([]string, 1000), make([]any, 1000)
	for i := range users {
		users[i], often[i] = fmt.Sprint(i%150+1), ids[150+i%150]
	}
	require.Equal(t, object{"removed": 150.0}, c.Delete(membersPath, object{"node_id": n["id"], "user_ids": users}).
		Object())
	require.Equal(t, object{"removed": 150.0}, c.Delete(membersPath, object{"ids": often}).Object())
	require.EqualValues(t, 0, nodeNow(t, c, n)["member_count"])
}
