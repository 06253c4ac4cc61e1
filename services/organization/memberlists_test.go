package organization_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMembershipsOfAUser(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 2)
	require.JSONEq(t, `[]`, string(c.Get(membersPath+"?user_id=1").OK(nil).Body))
	addObject(t, c, "company")
	addObject(t, c, "a")
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	n := addNode(t, c, "company", "", "n")
	first := join(t, c, n, "1")
	second := join(t, c, addNode(t, c, "a", "", "m"), "1")
	third := join(t, c, addNode(t, c, "company", id(n), "o"), "1")
	join(t, c, n, "2")
	join(t, theirs, addNode(t, theirs, "company", "", "n"), "1")
	var list []object
	c.Get(membersPath + "?user_id=1").OK(&list)
	require.Equal(t, []object{second, first, third}, list, "by tree, then in the order of creation")
	for _, user := range []string{"404", "1/company", "1%2Fcompany", "1/", "%25", "01"} {
		require.JSONEq(t, `[]`, string(c.Get(membersPath+"?user_id="+user).OK(nil).Body), user)
	}
	c.Get(membersPath).Problem(http.StatusBadRequest, "invalid_parameters", "query.user_id")
	c.Get(membersPath+"?user_id=").Problem(http.StatusBadRequest, "invalid_parameters", "query.user_id")
	c.Get(membersPath+"?user_id="+strings.Repeat("1", 65)).Problem(http.StatusBadRequest, "invalid_parameters",
		"query.user_id")
}

func TestUsersOfANode(t *testing.T) {
	t.Parallel()
	s, c, p := withPeople(t, 6)
	for id, name := range map[string]string{"1": "李伟", "2": "王伟", "3": "李娜", "4": "Ann"} {
		p.put(id, object{"display_name": name})
	}
	addObject(t, c, "company")
	a := addNode(t, c, "company", "", "a")
	b := addNode(t, c, "company", id(a), "b")
	side := addNode(t, c, "company", "", "side")
	m := map[string]object{}
	for _, row := range []struct {
		key, user, role string
		node            object
		seq             int
	}{
		{"a4", "4", "leader", a, 7}, {"a1", "1", "member", a, 0}, {"a2", "2", "member", a, -2},
		{"a3", "3", "leader", a, 0},
		{"b5", "5", "member", b, 0}, {"b1", "1", "leader", b, 9}, {"b2", "2", "member", b, -1},
		{"side1", "1", "member", side, 0}, {"side6", "6", "leader", side, 0},
	} {
		m[row.key] = join(t, c, row.node, row.user, object{"role": row.role, "seq": row.seq})
	}
	for key := range m {
		m[key] = memberNow(t, c, m[key])
	}
	of := func(m object) object {
		shown := object{}
		for _, name := range []string{"id", "node_id", "node_name", "role", "title", "is_primary", "dynamic"} {
			shown[name] = m[name]
		}
		return shown
	}
	item := func(first string, more ...string) any {
		nodes := []any{of(m[first])}
		for _, key := range more {
			nodes = append(nodes, of(m[key]))
		}
		return changed(m[first], object{"nodes": nodes})
	}
	users := func(query string) string { return node(a, "users?x=1") + query }
	direct := []any{item("a2"), item("a1"), item("a3"), item("a4")}
	all := []any{item("a2", "b2"), item("a1", "b1"), item("a3"), item("a4"), item("b5")}
	for query, want := range map[string][]any{
		"": direct, "&recursive=false": direct, "&recursive=true": all, "&recursive=1&page_sort=seq": all,
		"&page_sort=seq[asc]": direct,
		"&role=leader":        {item("a3"), item("a4")}, "&role=member": {item("a2"), item("a1")}, "&role=lead": {},
		"&role=Leader": {}, "&role=": direct,
		"&role=leader%2F": {}, "&role=leader%2F8000000000000000": {}, "&role=%25": {},
		"&role=leader&recursive=true":                                 {item("a3"), item("a4"), item("b1")},
		"&keyword=%20&recursive=true":                                 all,
		"&keyword=" + url.QueryEscape("伟"):                            {item("a2"), item("a1")},
		"&recursive=true&keyword=" + url.QueryEscape("李"):             {item("a1", "b1"), item("a3")},
		"&recursive=true&role=leader&keyword=" + url.QueryEscape("李"): {item("a3"), item("b1")},
		"&keyword=nobody":                                             {},
		"&page_size=2&page_num=2":                                     direct[2:],
		"&page_size=3&page_num=2":                                     direct[3:],
		"&page_size=2&page_num=3":                                     {},
		"&recursive=true&page_size=2&page_num=2":                      all[2:4],
		"&recursive=true&page_size=2&page_num=3":                      all[4:],
		"&recursive=true&page_size=4&page_num=3":                      {},
		"&page_size=1&page_num=2&keyword=" + url.QueryEscape("伟"):     {item("a1")},
	} {
		page := c.Get(users(query)).Object()
		require.Equal(t, want, page["items"], query)
		if !strings.Contains(query, "page_size") {
			require.EqualValues(t, len(want), page["total"], query)
			walked := walk(t, c, users(query), 1)
			require.Len(t, walked, len(want), query)
			for i := range walked {
				require.Equal(t, want[i], walked[i], query)
			}
		}
		require.NotContains(t, c.Get(users(query+"&count=false")).Object(), "total", query)
	}
	require.EqualValues(t, 5, c.Get(users("&recursive=true&page_size=1&page_num=99")).Object()["total"])
	require.Equal(t, []any{"1", "6"}, c.Items(node(side, "users?recursive=true"), "user_id"), "a leaf's are its own")
	require.Equal(t, []any{}, c.Items(nodesPath+"/"+a["path"].([]any)[0].(string)+"/users", "user_id"))
	require.Len(t, c.Items(nodesPath+"/"+a["path"].([]any)[0].(string)+"/users?recursive=true", "user_id"), 6)

	token := "&page_token=" + c.Get(users("&recursive=true&page_size=1")).Object()["next_page_token"].(string)
	theirs := in(s, "globex")
	refused(t, s, c, map[string]refusal{
		"unknown":        missing(get(nodesPath + "/404/users")),
		"sort":           bad(get(users("&page_sort=role")), "query.page_sort"),
		"sort downwards": bad(get(users("&page_sort=seq[desc]")), "query.page_sort"),
		"all faults": bad(get(users("&recursive=x&page_size=0&page_num=x")), "query.recursive",
			"query.page_size", "query.page_num"),
		"role of 65": bad(get(users("&role="+strings.Repeat("x", 65))), "query.role"),
		"no token":   bad(get(users("&page_token=x")), "query.page_token"),
		"token of a list": bad(get(users("&page_token="+c.Get(companyNodes + "&page_size=1").
			Object()["next_page_token"].(string))), "query.page_token"),
		"token, other role": bad(get(users("&recursive=true&role=leader"+token)), "query.page_token"),
		"token, direct":     bad(get(users(token)), "query.page_token"),
		"token, other node": bad(get(node(b, "users?recursive=true"+token)), "query.page_token"),
		"token, keyword":    bad(get(users("&recursive=true&keyword=x"+token)), "query.page_token"),
	})
	theirs.Get(users("")).Problem(http.StatusNotFound, "not_found")
}

// Pages by token neither skip nor repeat existing users while others write.
func TestPagesOfUsers(t *testing.T) {
	t.Parallel()
	const old = 60 // users who exist from the start; later ones have higher ids
	_, c, p := withPeople(t, 2*old)
	for i := 1; i <= 2*old; i++ {
		p.put(fmt.Sprint(i), object{"display_name": fmt.Sprint("user ", i)})
	}
	addObject(t, c, "company")
	top := addNode(t, c, "company", "", "top")
	nodes := []object{top}
	for i := range 12 {
		nodes = append(nodes, addNode(t, c, "company", id(nodes[i/3]), fmt.Sprint(i)))
	}
	var list []object
	for i := range old { // most are in several nodes
		for _, n := range []int{i % 13, (i*7 + 1) % 13} {
			m := object{"node_id": nodes[n]["id"], "user_id": fmt.Sprint(1 + i), "seq": i % 5,
				"role": []string{"member", "leader"}[i%2]}
			if len(list) == 0 || list[len(list)-1]["user_id"] != m["user_id"] ||
				list[len(list)-1]["node_id"] != m["node_id"] {
				list = append(list, m)
			}
		}
	}
	c.Post(membersBatch, object{"items": list}).OK(nil)
	inTop := c.Items(node(top, "users?page_size=200"), "user_id")
	newcomer := old
	for query, want := range map[string]int{"?": len(inTop), "?recursive=true": old,
		"?recursive=true&role=leader": old / 2, "?recursive=true&keyword=user": old} {
		for _, size := range []int{1, 7, 200} {
			written, had := 0, 0
			seen := map[any]bool{}
			for _, u := range walk(t, c, node(top, "users"+query+"&count=false"), size, func() {
				if written++; written < 4 {
					newcomer++
					join(t, c, nodes[written*4%13], fmt.Sprint(newcomer), object{"seq": written - 2, "role": "leader"})
				}
			}) {
				require.False(t, seen[u["user_id"]], "%s %d repeats", query, size)
				seen[u["user_id"]] = true
			}
			for user := range old {
				if seen[fmt.Sprint(user+1)] {
					had++
				}
			}
			require.Equal(t, want, had, "%s %d", query, size)
		}
	}
	// A walk continues if the node at its position has moved or is deleted.
	for _, end := range []func(n string){
		func(n string) { c.Patch(nodesPath+"/"+n, object{"parent_id": ""}).OK(nil) },
		func(n string) { c.Delete(nodesPath+"/"+n+"?object_code=company", nil).OK(nil) },
	} {
		url := node(top, "users?recursive=true&count=false&page_size=1")
		var came, next string
		ended, after := false, 0
		for more := true; more; {
			page := c.Get(url + next).Object()
			u := page["items"].([]any)[0].(object)
			if ended {
				after++
				require.NotEqual(t, came, u["node_id"])
			} else if came = u["node_id"].(string); c.Get(nodesPath + "/" + came).Object()["child_count"] == 0.0 {
				ended = true
				end(came)
			}
			var token string
			token, more = page["next_page_token"].(string)
			next = "&page_token=" + token
		}
		require.Positive(t, after)
	}
}

// Nodes with more members than are looked up together are listed one by one, in the same order.
func TestPagesOfManyUsers(t *testing.T) {
	t.Parallel()
	const users = 1000
	_, c, _ := withPeople(t, users)
	addObject(t, c, "company")
	top := addNode(t, c, "company", "", "top")
	small, large, last := addNode(t, c, "company", id(top), "small"), addNode(t, c, "company", id(top), "large"),
		addNode(t, c, "company", id(top), "last")
	var want []any
	add := func(n object, from, to, repeated int) {
		addMany(t, c, membersBatch, to-from+repeated, func(i int) object {
			user := fmt.Sprint(from + i)
			if from+i < to {
				want = append(want, user)
			} else {
				user = fmt.Sprint(from + i - to + 1) // listed before
			}
			return object{"node_id": n["id"], "user_id": user}
		})
	}
	add(small, 1, 21, 0)
	add(large, 21, 951, 20)
	add(last, 951, 1001, 300)
	for _, size := range []int{7, 200} {
		walked := []any{}
		for _, u := range walk(t, c, node(top, "users?recursive=true&count=false"), size) {
			walked = append(walked, u["user_id"])
		}
		require.Equal(t, want, walked, size)
	}
	require.EqualValues(t, users, c.Get(node(top, "users?recursive=true")).Object()["total"])
	require.Equal(t, want[960:980], c.Items(node(top, "users?recursive=true&page_num=49"), "user_id"), "by number")
}
