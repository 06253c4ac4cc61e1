package organization_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// storedMember is a membership as it is stored, whether or not lists show it.
type storedMember struct {
	docstore.Meta
	ObjectCode string `json:"object_code"`
	NodeID     string `json:"node_id"`
	UserID     string `json:"user_id"`
	IsPrimary  string `json:"is_primary"`
	Dynamic    bool   `json:"dynamic"`
}

// storedMembers reads all memberships of a tenant, sorted by id.
func storedMembers(t testing.TB, s *testkit.Service, tenant string) (all []storedMember) {
	t.Helper()
	c := docstore.Define(docstore.Schema[storedMember]{Name: "tree_users"})
	require.NoError(t, c.Each(request.System(t.Context(), tenant), s.Deps.Store, docstore.Filter{},
		func(d docstore.Doc[storedMember]) error {
			m, err := d.Value()
			all = append(all, *m)
			return err
		}))
	return all
}

// stored counts a tenant's documents of a collection.
func stored(t testing.TB, s *testkit.Service, tenant, collection string) int64 {
	t.Helper()
	type anything struct{ docstore.Meta }
	n, err := docstore.Define(docstore.Schema[anything]{Name: collection}).Count(request.System(t.Context(), tenant),
		s.Deps.Store, docstore.Filter{})
	require.NoError(t, err)
	return n
}

// treeNode has the members that verify checks.
type treeNode struct {
	ID          string   `json:"id"`
	ObjectCode  string   `json:"object_code"`
	Code        string   `json:"code"`
	Name        string   `json:"name"`
	Status      string   `json:"status"`
	ParentID    string   `json:"parent_id"`
	Path        []string `json:"path"`
	Depth       int      `json:"depth"`
	ChildCount  int64    `json:"child_count"`
	MemberCount int64    `json:"member_count"`
	IsPointer   string   `json:"is_pointer"`
	PointerID   string   `json:"pointer_id"`
	IsDynamic   string   `json:"is_dynamic"`
}

// everyPage reads a list from its first page to its last. The total, if there is one, must be right.
func everyPage[T any](t testing.TB, c *testkit.Client, url string) (all []T) {
	t.Helper()
	url += "&page_size=200"
	if !strings.Contains(url, "?") {
		url = strings.Replace(url, "&", "?", 1)
	}
	for token, total := "", int64(-1); ; {
		var page struct {
			Items    []T    `json:"items"`
			Total    *int64 `json:"total"`
			Relation string `json:"total_relation"`
			Next     string `json:"next_page_token"`
		}
		at := url
		if token != "" {
			at += "&page_token=" + token
		}
		c.Get(at).OK(&page)
		all = append(all, page.Items...)
		if page.Total != nil && page.Relation == "" && total < 0 {
			total = *page.Total
		}
		if token = page.Next; token == "" {
			if total >= 0 {
				require.EqualValues(t, total, len(all), url)
			}
			return all
		}
	}
}

// readTrees reads all nodes of all trees of acme, by id.
func readTrees(t testing.TB, c *testkit.Client) (nodes map[string]treeNode, roots map[string]string) {
	t.Helper()
	nodes, roots = map[string]treeNode{}, map[string]string{}
	var objects []struct {
		Code  string `json:"code"`
		Root  string `json:"root_node_id"`
		Count int64  `json:"node_count"`
	}
	c.Get("/v1/core-objects").OK(&objects)
	for _, o := range objects {
		all := everyPage[treeNode](t, c, "/v1/tree-nodes?object_code="+o.Code)
		require.EqualValues(t, o.Count, len(all), "node_count of %s", o.Code)
		roots[o.Code] = o.Root
		codes := map[string]bool{}
		for _, n := range all {
			require.Equal(t, o.Code, n.ObjectCode)
			require.False(t, codes[n.Code], "code %s twice in %s", n.Code, o.Code)
			codes[n.Code] = true
			nodes[n.ID] = n
		}
	}
	return nodes, roots
}

// verify reads everything that acme has. It fails the test unless each core object is one tree whose paths, depths and
// counts are right, pointers lead to nodes, and memberships are those of existing nodes, with one primary for each user
// and tree. No upkeep may be left.
func verify(t testing.TB, s *testkit.Service) map[string]treeNode {
	t.Helper()
	c := in(s, "acme")
	nodes, roots := readTrees(t, c)
	verifyTrees(t, c, nodes, roots)
	require.EqualValues(t, stored(t, s, "acme", "tree_nodes"), len(nodes), "a node is in no tree")
	require.Zero(t, stored(t, s, "acme", "upkeeps"))
	verifyMembers(t, c, nodes, roots, storedMembers(t, s, "acme"))
	require.NoError(t, s.Deps.Store.Check(t.Context()))
	return nodes
}

func verifyTrees(t testing.TB, c *testkit.Client, nodes map[string]treeNode, roots map[string]string) {
	t.Helper()
	children := map[string][]string{}
	for id, n := range nodes {
		if n.ParentID == "" {
			require.Equal(t, roots[n.ObjectCode], id, "a second root")
			require.Equal(t, []string{id}, n.Path)
			require.Zero(t, n.Depth)
		} else {
			parent, ok := nodes[n.ParentID]
			require.True(t, ok, "%s is an orphan", id)
			require.Equal(t, slices.Concat(parent.Path, []string{id}), n.Path, "path of %s", id)
			require.Equal(t, parent.Depth+1, n.Depth)
			children[n.ParentID] = append(children[n.ParentID], id)
		}
		require.Equal(t, roots[n.ObjectCode], n.Path[0])
		if n.IsPointer == "1" {
			target, ok := nodes[n.PointerID]
			require.True(t, ok, "%s points at nothing", id)
			require.NotEqual(t, "1", target.IsPointer, "%s points at a pointer", id)
			require.NotContains(t, n.Path, target.ID, "%s points at itself or above", id)
		} else {
			require.Empty(t, n.PointerID)
		}
	}
	var reached func(id string) int
	reached = func(id string) int {
		n := 1
		for _, child := range children[id] {
			n += reached(child)
		}
		return n
	}
	total := 0
	for _, root := range roots {
		total += reached(root)
	}
	require.Len(t, nodes, total, "a cycle")
	for id, n := range nodes {
		require.EqualValues(t, len(children[id]), n.ChildCount, "child_count of %s", id)
		if n.ChildCount > 0 && len(nodes) < 1000 { // the list of children has an index of its own
			var listed []string
			for _, child := range everyPage[treeNode](t, c, "/v1/tree-nodes/"+id+"/children") {
				listed = append(listed, child.ID)
			}
			require.ElementsMatch(t, children[id], listed)
		}
	}
}

func verifyMembers(t testing.TB, c *testkit.Client, nodes map[string]treeNode, roots map[string]string,
	all []storedMember) {
	t.Helper()
	count, ofUser := map[string]int64{}, map[string][]string{}
	primaries, byHand, places := map[string]int{}, map[string]bool{}, map[string]bool{}
	users := map[string]map[string]bool{} // of each tree
	for _, m := range all {
		n, ok := nodes[m.NodeID]
		require.True(t, ok, "a membership in a node that is gone")
		require.Equal(t, n.ObjectCode, m.ObjectCode)
		require.Equal(t, n.IsDynamic == "1", m.Dynamic)
		require.False(t, places[m.NodeID+"/"+m.UserID], "twice in a node")
		places[m.NodeID+"/"+m.UserID] = true
		count[m.NodeID]++
		ofUser[m.UserID] = append(ofUser[m.UserID], m.ID)
		key := m.ObjectCode + "/" + m.UserID
		byHand[key] = byHand[key] || !m.Dynamic
		if m.IsPrimary == "1" {
			require.False(t, m.Dynamic)
			primaries[key]++
		}
		if users[m.ObjectCode] == nil {
			users[m.ObjectCode] = map[string]bool{}
		}
		users[m.ObjectCode][m.UserID] = true
	}
	for key, hand := range byHand {
		want := 0
		if hand {
			want = 1
		}
		require.Equal(t, want, primaries[key], "primary memberships of %s", key)
	}
	for id, n := range nodes {
		require.Equal(t, count[id], n.MemberCount, "member_count of %s", id)
	}
	type ident struct {
		ID     string `json:"id"`
		UserID string `json:"user_id"`
	}
	left := 100 // if there are many, a sample is enough
	for user, want := range ofUser {
		if left--; left < 0 {
			break
		}
		var listed []ident
		c.Get("/v1/tree-users?user_id=" + user).OK(&listed)
		var ids []string
		for _, m := range listed {
			ids = append(ids, m.ID)
		}
		require.ElementsMatch(t, want, ids)
	}
	for code, root := range roots {
		var listed []string
		for _, u := range everyPage[ident](t, c, "/v1/tree-nodes/"+root+"/users?recursive=true") {
			listed = append(listed, u.UserID)
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(users[code])), listed, "users of %s", code)
	}
}

// pool holds the ids of records that may exist, and of deleted ones.
type pool struct {
	mu  sync.Mutex
	ids []string
}

func (p *pool) add(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = append(p.ids, ids...)
}

// pick prefers recent ids, which are more likely to exist.
func (p *pool) pick(r *rand.Rand) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.ids); n > 40 && r.IntN(4) > 0 {
		return p.ids[n-40+r.IntN(40)]
	}
	return p.ids[r.IntN(len(p.ids))]
}

// randomLoad makes random requests on two trees.
type randomLoad struct {
	trees map[string]*pool // nodes, by object code
	of    sync.Map         // node id → object code
	users int
}

func newRandomLoad(c *testkit.Client, users int) *randomLoad {
	m := &randomLoad{trees: map[string]*pool{}, users: users}
	for _, code := range []string{"company", "projects"} {
		var o struct {
			Root string `json:"root_node_id"`
		}
		c.Post("/v1/core-objects", object{"code": code, "name": code}).OK(&o)
		m.trees[code] = &pool{}
		m.know(code, o.Root)
	}
	return m
}

func (m *randomLoad) know(code string, ids ...string) {
	m.trees[code].add(ids...)
	for _, id := range ids {
		m.of.Store(id, code)
	}
}

func (m *randomLoad) tree(r *rand.Rand) string { return []string{"company", "projects"}[r.IntN(2)] }

// idsOf returns the ids in an answer: of a record, or of a batch.
func idsOf(a *testkit.Answer) (ids []string) {
	var body struct {
		ID    string                `json:"id"`
		Items []struct{ ID string } `json:"items"`
	}
	if a.Status != http.StatusOK || json.Unmarshal(a.Body, &body) != nil {
		return nil
	}
	for _, item := range body.Items {
		ids = append(ids, item.ID)
	}
	if body.ID != "" {
		ids = append(ids, body.ID)
	}
	return ids
}

// step makes a request, and returns its description and the answers that it may have.
func (m *randomLoad) step(c *testkit.Client, r *rand.Rand) (what string, a *testkit.Answer, allowed []int) {
	code := m.tree(r)
	id, other := m.trees[code].pick(r), m.trees[code].pick(r)
	elsewhere := m.trees[m.tree(r)].pick(r)
	user := fmt.Sprint(1 + r.IntN(m.users))
	nodeURL := "/v1/tree-nodes/" + id
	switch n := r.IntN(100); {
	case n < 22:
		body := object{"object_code": code, "parent_id": id, "name": "n"}
		if r.IntN(4) == 0 {
			body["code"] = fmt.Sprint("c", r.IntN(20))
		}
		a = c.Post("/v1/tree-nodes", body)
		m.know(code, idsOf(a)...)
		return "create", a, []int{200, 400, 409}
	case n < 27:
		a = c.Post("/v1/batch/tree-nodes", object{"object_code": code, "items": []object{
			{"name": "b", "parent_ref": "a", "ref": "b"}, {"name": "a", "parent_id": id, "ref": "a"},
			{"name": "c", "parent_id": other}, {"name": "d", "parent_ref": "b"},
		}})
		m.know(code, idsOf(a)...)
		return "batch", a, []int{200, 400}
	case n < 47:
		return "move", c.Patch(nodeURL, object{"parent_id": other}), []int{200, 400, 404}
	case n < 60:
		return "delete", c.Delete(nodeURL+"?object_code="+code, nil), []int{200, 404, 409}
	case n < 67:
		return "point", c.Patch(nodeURL, object{"is_pointer": "1", "pointer_id": elsewhere}), []int{200, 400, 404, 409}
	case n < 70:
		return "point no more", c.Patch(nodeURL, object{"is_pointer": "0", "pointer_id": ""}), []int{200, 404}
	case n < 73:
		a = c.Post("/v1/tree-nodes", object{"object_code": code, "parent_id": id, "name": "p", "is_pointer": "1",
			"pointer_id": elsewhere})
		m.know(code, idsOf(a)...)
		return "create a pointer", a, []int{200, 400}
	case n < 83:
		return "add", c.Post("/v1/tree-users", object{"node_id": id, "user_id": user,
			"is_primary": fmt.Sprint(r.IntN(2))}), []int{200, 400, 409}
	case n < 86:
		return "remove", c.Delete("/v1/tree-users", object{"node_id": id, "user_ids": []string{user}}), []int{200}
	case n < 93:
		a = c.Get("/v1/tree-users?user_id=" + user)
		var has []object
		if json.Unmarshal(a.Body, &has) != nil || len(has) == 0 {
			return "list", a, []int{200}
		}
		membership := "/v1/tree-users/" + has[r.IntN(len(has))]["id"].(string)
		if n < 90 {
			return "end", c.Delete(membership, nil), []int{200, 404}
		}
		return "make primary", c.Patch(membership, object{"is_primary": "1"}), []int{200, 404}
	case n < 96:
		return "switch", c.Post(nodeURL+[]string{"/enable", "/disable"}[r.IntN(2)]+"?recursive=true", nil),
			[]int{200, 404}
	default:
		return "rename", c.Patch(nodeURL, object{"name": fmt.Sprint("r", r.IntN(100))}), []int{200, 404}
	}
}

// run makes steps in as many goroutines as there are clients, and counts the answers.
func (m *randomLoad) run(t testing.TB, steps int, clients ...*testkit.Client) map[string]int {
	t.Helper()
	seed := rand.Uint64()
	t.Log("seed", seed)
	var mu sync.Mutex
	counts := map[string]int{}
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range steps {
				what, a, allowed := m.step(c, r)
				if !slices.Contains(allowed, a.Status) {
					t.Errorf("%s: %d %s", what, a.Status, a.Body)
				}
				mu.Lock()
				counts[fmt.Sprint(what, " ", a.Status)]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return counts
}

func repeat[T any](v T, n int) []T { return slices.Repeat([]T{v}, n) }

func TestRaceOfEverything(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 12)
	m := newRandomLoad(c, 14) // two of whom do not exist
	counts := m.run(t, 150, repeat(c, 10)...)
	for _, what := range []string{"create", "batch", "move", "delete", "point", "create a pointer", "add", "end",
		"make primary", "switch"} {
		require.NotZero(t, counts[what+" 200"], "%s: %v", what, counts)
	}
	require.NotZero(t, counts["move 400"])
	require.NotZero(t, counts["delete 409"])
	verify(t, s)
}

// atOnce makes all requests at the same time and returns the statuses.
func atOnce(acts ...func() *testkit.Answer) []int {
	statuses := make([]int, len(acts))
	basic.AtOnce(len(acts), func(i int) int {
		statuses[i] = acts[i]().Status
		return statuses[i]
	})
	return statuses
}

// Requests that conflict run at the same time: the answers are those of some order, one after the other.
func TestConflictingRequests(t *testing.T) {
	t.Parallel()
	const rounds = 15
	type act = func() *testkit.Answer
	type scene struct {
		*testkit.Client
		t     *testing.T
		round int
	}
	below := func(a scene, parent object) object {
		if parent == nil {
			return addNode(a.t, a.Client, "company", "", "n")
		}
		return addNode(a.t, a.Client, "company", id(parent), "n")
	}
	move := func(a scene, n, to object) act {
		return func() *testkit.Answer { return a.Patch(node(n), object{"parent_id": id(to)}) }
	}
	remove := func(a scene, n object) act {
		return func() *testkit.Answer {
			return a.Delete(node(n)+"?object_code="+n["object_code"].(string), nil)
		}
	}
	point := func(a scene, n, to object) act {
		return func() *testkit.Answer { return a.Patch(node(n), object{"is_pointer": "1", "pointer_id": id(to)}) }
	}
	join := func(a scene, n object, user string) act {
		return func() *testkit.Answer {
			return a.Post("/v1/tree-users", object{"node_id": id(n), "user_id": user, "is_primary": "1"})
		}
	}
	create := func(a scene, body object) act {
		return func() *testkit.Answer { return a.Post("/v1/tree-nodes", body) }
	}
	for name, conflict := range map[string]struct {
		of      func(scene) []act
		allowed [][]int
	}{
		"crossing moves": {func(a scene) []act {
			x, y := below(a, nil), below(a, nil)
			return []act{move(a, x, y), move(a, y, x)}
		}, [][]int{{200, 400}, {400, 200}}},
		"moves in a ring": {func(a scene) []act {
			x, y, z := below(a, nil), below(a, nil), below(a, nil)
			return []act{move(a, x, y), move(a, y, z), move(a, z, x)}
		}, [][]int{{200, 200, 400}, {200, 400, 200}, {400, 200, 200}}},
		"a child and its parent's end": {func(a scene) []act {
			x := below(a, nil)
			return []act{create(a, object{"object_code": "company", "parent_id": id(x), "name": "child"}), remove(a, x)}
		}, [][]int{{200, 409}, {400, 200}}},
		"a move and the end of where it leads": {func(a scene) []act {
			x, y := below(a, nil), below(a, nil)
			return []act{move(a, x, y), remove(a, y)}
		}, [][]int{{200, 409}, {400, 200}}},
		"a move and the end of what moves": {func(a scene) []act {
			x, y := below(a, nil), below(a, nil)
			return []act{move(a, x, y), remove(a, x)}
		}, [][]int{{200, 200}, {404, 200}}},
		"a child's move away and its parent's end": {func(a scene) []act {
			x, y := below(a, nil), below(a, nil)
			return []act{move(a, below(a, x), y), remove(a, x)}
		}, [][]int{{200, 200}, {200, 409}}},
		"a member and the node's end": {func(a scene) []act {
			x := below(a, nil)
			return []act{join(a, x, "1"), remove(a, x)}
		}, [][]int{{200, 200}, {400, 200}}},
		"one member twice": {func(a scene) []act {
			x := below(a, nil)
			return []act{join(a, x, "2"), join(a, x, "2")}
		}, [][]int{{200, 409}, {409, 200}}},
		"a user's primaries": {func(a scene) []act {
			return []act{join(a, below(a, nil), "3"), join(a, below(a, nil), "3"), join(a, below(a, nil), "3")}
		}, [][]int{{200, 200, 200}}},
		"a first member's end and a second": {func(a scene) []act {
			user := fmt.Sprint(10 + a.round)
			x, y := below(a, nil), below(a, nil)
			first := join(a, x, user)().ID()
			return []act{join(a, y, user), func() *testkit.Answer { return a.Delete("/v1/tree-users/"+first, nil) }}
		}, [][]int{{200, 200}}},
		"promotion by hand and by an end": {func(a scene) []act {
			user := fmt.Sprint(10 + a.round)
			first := join(a, below(a, nil), user)().ID()
			second := a.Post("/v1/tree-users", object{"node_id": id(below(a, nil)), "user_id": user}).ID()
			third := a.Post("/v1/tree-users", object{"node_id": id(below(a, nil)), "user_id": user}).ID()
			return []act{
				func() *testkit.Answer { return a.Delete("/v1/tree-users/"+first, nil) },
				func() *testkit.Answer { return a.Patch("/v1/tree-users/"+second, object{"is_primary": "1"}) },
				func() *testkit.Answer { return a.Patch("/v1/tree-users/"+third, object{"is_primary": "1"}) },
			}
		}, [][]int{{200, 200, 200}}},
		"a pointer and its target's end": {func(a scene) []act {
			x := addNode(a.t, a.Client, "projects", "", "target")
			return []act{create(a, object{"object_code": "company", "parent_id": "", "name": "p", "is_pointer": "1",
				"pointer_id": id(x)}), remove(a, x)}
		}, [][]int{{200, 409}, {400, 200}}},
		"a pointer at what becomes one": {func(a scene) []act {
			x, y, z := below(a, nil), addNode(a.t, a.Client, "projects", "", "y"),
				addNode(a.t, a.Client, "projects", "", "z")
			return []act{point(a, x, y), point(a, y, z)}
		}, [][]int{{200, 409}, {400, 200}}},
		"two that point at one another": {func(a scene) []act {
			x, y := below(a, nil), addNode(a.t, a.Client, "projects", "", "y")
			return []act{point(a, x, y), point(a, y, x)}
		}, [][]int{{200, 400}, {400, 200}, {200, 409}, {409, 200}}},
		"a pointer that a move would put below its target": {func(a scene) []act {
			x, target := below(a, nil), below(a, nil)
			return []act{point(a, below(a, x), target), move(a, x, target)}
		}, [][]int{{200, 400}, {400, 200}}},
		"a core object and its first node": {func(a scene) []act {
			o := addObject(a.t, a.Client, fmt.Sprint("object-", a.round))
			return []act{
				create(a, object{"object_code": o["code"], "parent_id": "", "name": "n"}),
				func() *testkit.Answer { return a.Delete("/v1/core-objects/"+id(o), nil) },
			}
		}, [][]int{{200, 409}, {400, 200}}},
		"one core object twice": {func(a scene) []act {
			both := func() *testkit.Answer {
				return a.Post("/v1/core-objects", object{"code": fmt.Sprint("twin-", a.round), "name": "twin"})
			}
			return []act{both, both}
		}, [][]int{{200, 409}, {409, 200}}},
		"one code twice": {func(a scene) []act {
			x, y := below(a, nil), below(a, nil)
			body := func(parent object) object {
				return object{"object_code": "company", "parent_id": id(parent), "name": "n",
					"code": fmt.Sprint("code-", a.round)}
			}
			return []act{create(a, body(x)), create(a, body(y))}
		}, [][]int{{200, 409}, {409, 200}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c, _ := withPeople(t, 10+rounds)
			addObject(t, c, "company")
			addObject(t, c, "projects")
			for round := range rounds {
				statuses := atOnce(conflict.of(scene{c, t, round})...)
				require.Contains(t, conflict.allowed, statuses)
			}
			verify(t, s)
		})
	}
}
