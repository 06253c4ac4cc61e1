package organization_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

const companyNodes = nodesPath + "?object_code=company"

// names are those of a list's items, in order.
func names(t testing.TB, c *testkit.Client, url string) []any {
	t.Helper()
	return c.Items(url, "name")
}

// forest makes the tree company: a (a1 (a11, a12), a2), b (b1), and the tree other with one node, and returns nodes by
// name.
func forest(t testing.TB, c *testkit.Client) map[string]object {
	t.Helper()
	addObject(t, c, "company")
	addObject(t, c, "other")
	all := map[string]object{"alien": addNode(t, c, "other", "", "a", object{"tag": "red"})}
	for i, n := range addBatch(t, c,
		object{"name": "a", "ref": "a", "tag": "red", "seq": 2}, object{"name": "a1", "ref": "a1", "parent_ref": "a",
			"status": "0"},
		object{"name": "a2", "parent_ref": "a", "tag": "red", "seq": -1, "code": "a/2"},
		object{"name": "a11", "parent_ref": "a1", "tag": "red", "status": "0"},
		object{"name": "a12", "parent_ref": "a1", "seq": -5}, object{"name": "b", "ref": "b", "seq": 1},
		object{"name": "b1", "parent_ref": "b", "tag": "Red"}) {
		delete(n, "ref")
		n = nodeNow(t, c, n)
		all[n["name"].(string)] = n
		require.Equal(t, []string{"a", "a1", "a2", "a11", "a12", "b", "b1"}[i], n["name"])
	}
	return all
}

func TestListTreeNodes(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	n := forest(t, c)
	a, a1 := id(n["a"]), id(n["a1"])
	for query, want := range map[string][]any{
		"":                                            {"a12", "a2", "COMPANY", "a1", "a11", "b1", "b", "a"},
		"&parent_id=" + a:                             {"a2", "a1"},
		"&parent_id=":                                 {"a12", "a2", "COMPANY", "a1", "a11", "b1", "b", "a"},
		"&parent_id=" + id(n["b1"]):                   {},
		"&parent_id=" + a + "&recursive=true":         {"a12", "a2", "a1", "a11"},
		"&parent_id=" + a + "&recursive=1":            {"a12", "a2", "a1", "a11"},
		"&parent_id=" + a + "&recursive=false":        {"a2", "a1"},
		"&parent_id=" + a + "&depth=1":                {"a2", "a1"},
		"&parent_id=" + a + "&depth=1&recursive=true": {"a2", "a1"},
		"&parent_id=" + a + "&depth=2":                {"a12", "a2", "a1", "a11"},
		"&parent_id=" + a + "&depth=64":               {"a12", "a2", "a1", "a11"},
		"&depth=1":                                    {"COMPANY", "b", "a"},
		"&depth=2":                                    {"a2", "COMPANY", "a1", "b1", "b", "a"},
		"&status=0":                                   {"a1", "a11"},
		"&status=1&depth=1":                           {"COMPANY", "b", "a"},
		"&tag=red":                                    {"a2", "a11", "a"},
		"&tag=Red":                                    {"b1"},
		"&tag=re":                                     {},
		"&tag=red&status=0":                           {"a11"},
		"&tag=red&status=1&parent_id=" + a:            {"a2"},
		"&tag=red&status=1&parent_id=" + a + "&recursive=true&name=A": {"a2"},
		"&tag=red&parent_id=" + a + "&recursive=true&name=1":          {"a11"},
		"&name=1&parent_id=" + a + "&depth=1":                         {"a1"},
		"&name=1&parent_id=" + a1:                                     {"a12", "a11"},
		"&code=a/2":                                                   {"a2"},
		"&code=a%2F2":                                                 {"a2"},
		"&code=a/2&name=A2":                                           {"a2"},
		"&code=a/2&name=A1":                                           {},
		"&code=a/2&name=a11":                                          {},
		"&code=A/2":                                                   {},
		"&code=a":                                                     {},
		"&code=a/2&parent_id=" + a1:                                   {},
		"&code=a/2&parent_id=" + a + "&status=1&tag=red&name=A2&depth=5": {"a2"},
		"&code=" + n["b"]["code"].(string) + "&page_sort=name":           {"b"},
		"&unknown=1&tag=Red": {"b1"},
		"&page_sort=name": {"a", "a1", "a11", "a12", "a2", "b", "b1",
			"COMPANY"},
		"&page_sort=name[desc]": {"COMPANY", "b1", "b", "a2", "a12", "a11",
			"a1", "a"},
		"&page_sort=depth[desc],name": {"a11", "a12", "a1", "a2", "b1", "a", "b",
			"COMPANY"},
		"&page_sort=depth,seq[desc]": {"COMPANY", "a", "b", "b1", "a1", "a2",
			"a11", "a12"},
		"&parent_id=" + a + "&page_sort=seq[desc]":                          {"a1", "a2"},
		"&parent_id=" + a + "&page_sort=name":                               {"a1", "a2"},
		"&parent_id=" + a + "&page_sort=status[desc]":                       nil,
		"&page_sort=code&depth=1&name=A":                                    {"COMPANY", "a"},
		"&page_sort=time_created,name&parent_id=" + a + "&recursive=true":   {"a1", "a11", "a12", "a2"},
		"&page_sort=name&page_size=2&page_num=2":                            {"a11", "a12"},
		"&page_sort=name&page_size=3&page_num=3":                            {"b1", "COMPANY"},
		"&page_sort=name&page_size=3&page_num=4":                            {},
		"&parent_id=" + a + "&page_size=1&page_num=2":                       {"a1"},
		"&parent_id=" + a + "&recursive=true&page_size=1&page_num=2&name=1": {"a1"},
	} {
		if want == nil {
			c.Get(companyNodes+query).Problem(http.StatusBadRequest, "invalid_parameters", "query.page_sort")
			continue
		}
		require.Equal(t, want, names(t, c, companyNodes+query), query)
		unpaged := c.Get(companyNodes + query + "&count=true").Object()
		if !strings.Contains(query, "page_size") {
			require.EqualValues(t, len(want), unpaged["total"], query)
		}
		require.NotContains(t, c.Get(companyNodes+query+"&count=false").Object(), "total", query)
	}
	page := c.Get(companyNodes + "&tag=Red").Object()
	require.Equal(t, object{"items": []any{n["b1"]}, "total": 1.0, "page_num": 1.0, "page_size": 20.0}, page)
	require.EqualValues(t, 3, c.Get(companyNodes + "&tag=red&page_size=1&page_num=9").Object()["total"])

	theirs := in(s, "globex")
	root := addObject(t, theirs, "company")
	require.Equal(t, []any{"COMPANY"}, names(t, theirs, companyNodes))
	refused(t, s, c, map[string]refusal{
		"no tree":          bad(get(nodesPath), "query.object_code"),
		"empty tree":       bad(get(nodesPath+"?object_code="), "query.object_code"),
		"unknown tree":     missing(get(nodesPath + "?object_code=no")),
		"tree in capitals": missing(get(nodesPath + "?object_code=Company")),
		"unknown parent":   missing(get(companyNodes + "&parent_id=404")),
		"parent elsewhere": missing(get(companyNodes + "&parent_id=" + id(n["alien"]))),
		"another tenant's": missing(get(companyNodes + "&parent_id=" + root["root_node_id"].(string))),
		"all faults": bad(get(companyNodes+"&recursive=yes&depth=0&status=on&page_num=0&page_size=201&count=x"),
			"query.recursive", "query.depth", "query.status", "query.page_num", "query.page_size", "query.count"),
		"depth of 65":       bad(get(companyNodes+"&depth=65"), "query.depth"),
		"depth a text":      bad(get(companyNodes+"&depth=x"), "query.depth"),
		"name of 257":       bad(get(companyNodes+"&name="+strings.Repeat("x", 257)), "query.name"),
		"tag of 65":         bad(get(companyNodes+"&tag="+strings.Repeat("x", 65)), "query.tag"),
		"sort":              bad(get(companyNodes+"&page_sort=tag"), "query.page_sort"),
		"sort by inner":     bad(get(companyNodes+"&page_sort=sibling"), "query.page_sort"),
		"sort order":        bad(get(companyNodes+"&page_sort=name[up]"), "query.page_sort"),
		"sort twice":        bad(get(companyNodes+"&page_sort=name,name"), "query.page_sort"),
		"token":             bad(get(companyNodes+"&page_token=x"), "query.page_token"),
		"descendants depth": bad(get(node(n["a"], "descendants?depth=0")), "query.depth"),
		"tree's depth":      bad(get(node(n["a"], "tree?depth=65")), "query.depth"),
		"children's size":   bad(get(node(n["a"], "children?page_size=0")), "query.page_size"),
	})
	// A token is valid only for its list.
	token := "&page_token=" + c.Get(companyNodes + "&page_size=1").Object()["next_page_token"].(string)
	for _, query := range []string{"&name=a", "&page_sort=name", "&status=1", "&parent_id=" + a, "&depth=3"} {
		c.Get(companyNodes+token+query).Problem(http.StatusBadRequest, "invalid_parameters", "query.page_token")
	}
	c.Get(nodesPath+"?object_code=other"+token).Problem(http.StatusBadRequest, "invalid_parameters", "query.page_token")
	theirs.Get(companyNodes+token).Problem(http.StatusBadRequest, "invalid_parameters", "query.page_token")
}

func TestNodesAboveAndBelow(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	n := forest(t, c)
	root := c.Get(nodesPath + "/" + n["a"]["parent_id"].(string)).Object()
	var above []object
	c.Get(node(n["a11"], "parent")).OK(&above)
	require.Equal(t, []object{n["a1"], n["a"], root}, above)
	require.JSONEq(t, `[]`, string(c.Get(node(root, "parent")).OK(nil).Body))

	require.Equal(t, object{"items": []any{n["a2"], n["a1"]}, "total": 2.0, "page_num": 1.0, "page_size": 20.0},
		c.Get(node(n["a"], "children")).Object())
	require.Equal(t, []any{"b", "a"}, names(t, c, node(root, "children")))
	require.Equal(t, []any{"a12", "a2", "a1", "a11"}, names(t, c, node(n["a"], "descendants")))
	require.Equal(t, []any{"a2", "a1"}, names(t, c, node(n["a"], "descendants?depth=1")))
	require.Equal(t, []any{"a12", "a2", "a1", "a11"}, names(t, c, node(n["a"], "descendants?depth=2")))
	require.Equal(t, []any{"a2", "a1", "b1", "b", "a"}, names(t, c, node(root, "descendants?depth=2")))
	require.Equal(t, []any{"a11", "a12", "a1", "a2"},
		names(t, c, node(n["a"], "descendants?page_sort=depth[desc],name")))
	require.EqualValues(t, 4, c.Get(node(n["a"], "descendants?page_size=1")).Object()["total"])
	require.Equal(t, object{"items": []any{}, "total": 0.0, "page_num": 1.0, "page_size": 20.0},
		c.Get(node(n["b1"], "descendants")).Object())

	nested := func(n object, children ...any) object {
		return changed(n, object{"children": append([]any{}, children...)})
	}
	want := nested(n["a"], nested(n["a2"]), nested(n["a1"], nested(n["a12"]), nested(n["a11"])))
	require.Equal(t, want, c.Get(node(n["a"], "tree")).Object())
	require.Equal(t, want, c.Get(node(n["a"], "tree?depth=2")).Object())
	require.Equal(t, nested(n["a"], nested(n["a2"]), nested(n["a1"])), c.Get(node(n["a"], "tree?depth=1")).Object())
	require.Equal(t, nested(n["b1"]), c.Get(node(n["b1"], "tree")).Object())
	require.Equal(t, nested(root, nested(n["b"], nested(n["b1"])), want), c.Get(node(root, "tree")).Object())
}

// Siblings are ordered by seq, and by id if that is equal, in lists and in nested trees.
func TestSiblingsAreOrdered(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	o := addObject(t, c, "company")
	seqs := []int64{5, 0, -1, 1<<53 - 1, 5, 1 - 1<<53, -1, 0, 256, -256, 5, 1 << 32}
	nodes := make([]object, len(seqs))
	for i, seq := range seqs {
		nodes[i] = object{"name": fmt.Sprint(i), "seq": seq}
	}
	got := addBatch(t, c, nodes...)
	slices.SortStableFunc(got, func(a, b object) int { return cmp.Compare(a["seq"].(float64), b["seq"].(float64)) })
	var want []any
	for _, n := range got {
		want = append(want, n["name"])
	}
	root := rootOf(t, c, o)
	require.Equal(t, want, names(t, c, node(root, "children")))
	require.Equal(t, want, names(t, c, companyNodes+"&parent_id="+id(root)))
	require.Equal(t, want, names(t, c, node(root, "descendants")))
	require.Equal(t, want, members(c.Get(node(root, "tree")).Object()["children"], "name"))
	downwards := names(t, c, node(root, "children?page_sort=seq[desc]"))
	require.Equal(t, []any{"3", "11", "8"}, downwards[:3])
	require.ElementsMatch(t, want, downwards)
}

// A keyword is found anywhere in a name, whatever its case and width; there are no wildcards.
func TestSearchNames(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addObject(t, c, "company", object{"name": "总部"})
	long := strings.Repeat("长", 200) + "end"
	for _, name := range []string{
		"平台研发部", "Platform R&D", "100% done", "snake_case", `back\slash`, "ＦＵＬＬ width", "ﾊﾝｶｸ", "aaaa", "Straße",
		"a*b?c", "İstanbul", "x  y", "O'Brien \"q\"", "研发", long, "名/字", "👩‍💻 team", "École",
	} {
		addNode(t, c, "company", "", name)
	}
	addObject(t, c, "other")
	addNode(t, c, "other", "", "研发")
	addObject(t, in(s, "globex"), "company", object{"name": "研发"})
	for part, want := range map[string][]any{
		"平": {"平台研发部"}, "台研": {"平台研发部"}, "研发": {"平台研发部", "研发"}, "研发部": {"平台研发部"}, "部": {"总部", "平台研发部"}, "发研": {},
		"plat": {"Platform R&D"}, "FORM": {"Platform R&D"}, "R&D": {"Platform R&D"}, "m r": {"Platform R&D"},
		"&": {"Platform R&D"},
		"%": {"100% done"}, "0%": {"100% done"}, "%done": {}, "1%e": {}, "_": {"snake_case"}, "e_c": {"snake_case"},
		"e__": {}, "kexc": {}, `\`: {`back\slash`}, `k\s`: {`back\slash`},
		"full": {"ＦＵＬＬ width"}, "ｗｉｄ": {"ＦＵＬＬ width"}, "ハンカク": {"ﾊﾝｶｸ"}, "ﾝｶ": {"ﾊﾝｶｸ"}, "a": nil, "aa": {"aaaa"},
		"aaaa": {"aaaa"}, "aaaaa": {},
		"strasse": {"Straße"}, "STRASSE": {"Straße"}, "ße": {"Straße"}, "*": {"a*b?c"}, "?": {"a*b?c"}, "a*c": {},
		"b?c": {"a*b?c"}, "x  y": {"x  y"}, "x y": {},
		"o'b": {"O'Brien \"q\""}, `"q"`: {"O'Brien \"q\""}, "/": {"名/字"}, "名/字": {"名/字"}, "👩": {"👩‍💻 team"},
		"team": {"👩‍💻 team"},
		"end":  {long}, "长end": {long}, strings.Repeat("长", 61) + "end": {long}, strings.Repeat("长", 64): {long},
		strings.Repeat("长", 200): {long}, strings.Repeat("长", 201): {}, long: {long}, strings.Repeat("长", 62) +
			"en": {long}, "lend": {},
		"école": {"École"}, "e\u0301cole": {"École"}, "ecole": {}, "stanbul": {"İstanbul"},
	} {
		got := names(t, c, companyNodes+"&page_sort=time_created&name="+url.QueryEscape(part))
		if want != nil {
			require.ElementsMatch(t, want, got, "%q", part)
		}
		page := c.Get(companyNodes + "&page_size=1&name=" + url.QueryEscape(part)).Object()
		require.EqualValues(t, len(got), page["total"], "%q: each node counts once", part)
		require.Len(t, walk(t, c, companyNodes+"&name="+url.QueryEscape(part), 1), len(got), "%q: each node comes once",
			part)
	}
	// The new name is found, the old one no longer.
	n := addNode(t, c, "company", "", "before")
	c.Patch(node(n), object{"name": "after"}).OK(nil)
	require.Equal(t, []any{}, names(t, c, companyNodes+"&name=before"))
	require.Equal(t, []any{"after"}, names(t, c, companyNodes+"&name=fte"))
	c.Delete(node(n)+"?object_code=company", nil).OK(nil)
	require.Equal(t, []any{}, names(t, c, companyNodes+"&name=fte"))
}

// Pages by token neither skip nor repeat existing nodes while others write.
func TestPagesOfNodes(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addObject(t, c, "company")
	top := addNode(t, c, "company", "", "top")
	nodes := make([]object, 100)
	for i := range nodes {
		nodes[i] = object{"name": fmt.Sprintf("n %d", i%30), "seq": i % 9, "ref": fmt.Sprint(i), "parent_id": top["id"],
			"tag": "old"}
		if i > 85 {
			nodes[i]["parent_ref"] = fmt.Sprint(i % 7)
			delete(nodes[i], "parent_id")
		}
		if i%20 == 0 {
			s.Clock.Advance(time.Millisecond)
		}
	}
	want := map[string]bool{}
	children := map[string]bool{}
	for i, n := range addBatch(t, c, nodes...) {
		want[id(n)] = true
		if i <= 85 {
			children[id(n)] = true
		}
	}
	for url, want := range map[string]map[string]bool{
		node(top, "children?"): children, node(top, "descendants?"): want, node(top, "descendants?depth=2"): want,
		companyNodes + "&tag=old": want, companyNodes + "&parent_id=" + id(top): children, companyNodes +
			"&recursive=true&status=1&parent_id=" + id(top): want, companyNodes + "&name=N": want,
	} {
		for _, sort := range []string{"", "seq[desc]", "name[desc],seq", "code", "depth[desc],seq[desc]",
			"time_created,name"} {
			sizes := []int{30}
			if sort == "" {
				sizes = []int{7, 200}
			}
			if sort == "" && strings.HasSuffix(url, "?") { // one by one: children, descendants
				sizes = append(sizes, 1)
			}
			for _, size := range sizes {
				written := 0
				seen := map[string]bool{}
				for _, n := range walk(t, c, url+"&count=false&page_sort="+sort, size, func() {
					if written++; written < 3 { // before and after the position of the walk
						addNode(t, c, "company", id(top), fmt.Sprint("n ", written*17),
							object{"seq": written*9 - 10, "tag": "old"})
					}
				}) {
					require.False(t, seen[id(n)], "%s %s %d repeats", url, sort, size)
					seen[id(n)] = true
				}
				for id := range want {
					require.True(t, seen[id], "%s %s %d skips", url, sort, size)
				}
			}
		}
	}
}

func TestNestedTreeHasALimit(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	o := addObject(t, c, "company")
	for part := range 10 {
		nodes := make([]object, 1000)
		for i := range nodes {
			nodes[i] = object{"name": "x", "ref": fmt.Sprint(i)}
			if i > 9 {
				nodes[i]["parent_ref"] = fmt.Sprint(i % 10)
			}
		}
		if part == 9 {
			nodes = nodes[:999]
		}
		addBatch(t, c, nodes...)
	}
	root := rootOf(t, c, o)
	count := func(url string) int { return strings.Count(string(c.Get(url).OK(nil).Body), `"children":[`) }
	require.Equal(t, 10_000, count(node(root, "tree")))
	addNode(t, c, "company", "", "one more")
	c.Get(node(root, "tree")).Problem(http.StatusBadRequest, "invalid_parameters", "path.id")
	require.Equal(t, 102, count(node(root, "tree?depth=1")))
}

// A nested answer is in memory as a whole, so large nodes make it smaller.
func TestNestedTreeOfLargeNodes(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	root := rootOf(t, c, addObject(t, c, "company"))
	large := object{"x": strings.Repeat("x", 60<<10)}
	for range 20 {
		nodes := make([]object, 7)
		for i := range nodes {
			nodes[i] = object{"name": "x", "sys_ext_props": large, "free_ext_props": large}
		}
		addBatch(t, c, nodes...)
	}
	c.Get(node(root, "tree")).Problem(http.StatusBadRequest, "invalid_parameters", "path.id")
}
