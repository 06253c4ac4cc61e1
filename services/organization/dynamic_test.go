package organization_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// dynamic adds a dynamic node.
func (g *guided) dynamic(name, condition string) object {
	g.t.Helper()
	return addNode(g.t, g.Client, "company", "", name, object{"is_dynamic": "1", "condition": condition})
}

// once interferes with the next answer to a question only.
func (g *guided) once(question string, do func()) {
	var done sync.Once
	g.interfere(func(_ context.Context, asked string) error {
		if asked == question {
			done.Do(do)
		}
		return nil
	})
}

func (g *guided) memberCount(n object) any { return g.Get(node(n)).Object()["member_count"] }

func (g *guided) storedIn(n object) (count int) {
	for _, m := range storedMembers(g.t, g.Service, "acme") {
		if m.NodeID == id(n) {
			count++
		}
	}
	return count
}

// More users than a page has; some lack what the condition reads.
func TestDynamicMembers(t *testing.T) {
	t.Parallel()
	g := guide(t, 1200)
	var seniors []string
	for i := 1; i <= 1200; i++ {
		user := fmt.Sprint(i)
		switch i % 4 {
		case 0:
			g.put(user, object{"level": 9})
			seniors = append(seniors, user)
		case 1:
			g.put(user, object{"level": "nine"}) // not a number: the condition cannot be decided
		case 2:
			g.put(user, object{"level": 9, "status": "resigned"})
		}
	}
	addObject(t, g.Client, "company")
	n := g.dynamic("seniors", "user.level > 6")
	require.Empty(t, g.usersOf(n, ""))
	g.upkeep()
	require.ElementsMatch(t, seniors, g.usersOf(n, ""))
	require.EqualValues(t, len(seniors), g.memberCount(n))
	var has []object
	g.Get("/v1/tree-users?user_id=4").OK(&has)
	require.Equal(t, true, has[0]["dynamic"])
	require.Equal(t, "0", has[0]["is_primary"])
	created := 0
	for _, told := range g.published(-1) {
		if strings.HasPrefix(told, "membership.created ") {
			created++
		}
	}
	require.Equal(t, len(seniors), created)
	verify(t, g.Service)
}

func TestDynamicCondition(t *testing.T) {
	t.Parallel()
	g := guide(t, 0)
	for i := range 10 {
		g.put(fmt.Sprint(i), object{"level": i})
	}
	addObject(t, g.Client, "company")
	n := g.dynamic("some", "user.level < 6")
	g.upkeep()
	before := storedMembers(t, g.Service, "acme")
	require.Len(t, before, 6)

	g.Patch(node(n), object{"condition": "user.level > 3"}).OK(nil)
	g.upkeep()
	require.ElementsMatch(t, []string{"4", "5", "6", "7", "8", "9"}, g.usersOf(n, ""))
	after := storedMembers(t, g.Service, "acme")
	require.Equal(t, before[4:], after[:2], "users who meet both conditions keep their memberships")

	g.Patch(node(n), object{"name": "a name does not matter"}).OK(nil)
	require.Zero(t, stored(t, g.Service, "acme", "upkeeps"))

	g.Patch(node(n), object{"is_dynamic": "0"}).OK(nil)
	require.Empty(t, g.usersOf(n, ""))
	require.Zero(t, stored(t, g.Service, "acme", "upkeeps"))
	g.join(n, "1")
	g.Patch(node(n), object{"is_dynamic": "1"}).Problem(409, "invalid_state")
	g.Delete("/v1/tree-users", object{"node_id": n["id"], "user_ids": []string{"1"}}).OK(nil)
	g.Patch(node(n), object{"is_dynamic": "1"}).OK(nil)
	g.upkeep()
	require.Len(t, g.usersOf(n, ""), 6)
	verify(t, g.Service)
}

func TestDynamicMembersAreNotMadeByHand(t *testing.T) {
	t.Parallel()
	g := guide(t, 2)
	addObject(t, g.Client, "company")
	n := g.dynamic("all", "user.id == '1'")
	g.upkeep()
	g.Post("/v1/tree-users", object{"node_id": n["id"], "user_id": "2"}).Problem(409, "invalid_state")
	g.Delete("/v1/tree-users", object{"node_id": n["id"], "user_ids": []string{"1"}}).Problem(409, "invalid_state")
	member := "/v1/tree-users/" + storedMembers(t, g.Service, "acme")[0].ID
	g.Delete(member, nil).Problem(409, "invalid_state")
	g.Patch(member, object{"role": "leader"}).Problem(409, "invalid_state")
	g.Patch(member, object{"is_primary": "1"}).Problem(409, "invalid_state")
	require.Equal(t, []string{"1"}, g.usersOf(n, ""))
	verify(t, g.Service)
}

func TestConditionsThatAreRefused(t *testing.T) {
	t.Parallel()
	_, c, _ := withPeople(t, 0)
	addObject(t, c, "company")
	good := addNode(t, c, "company", "", "good", object{"is_dynamic": "1", "condition": "true"})
	for name, condition := range map[string]string{
		"no condition": "",
		"no CEL":       "user.level >",
		"no truth":     "1 + 1",
		"unknown name": "group.level > 1",
		"too costly":   "user.a.all(a, user.a.all(b, user.a.all(c, user.a.all(d, a + b + c + d > 0))))",
		"a wide range": `user.name.matches("(a{1,100}){1,100}")`,
		"too long":     "true " + strings.Repeat(" ", 4096),
	} {
		body := object{"object_code": "company", "parent_id": "", "name": "bad", "is_dynamic": "1",
			"condition": condition}
		doc := c.Post("/v1/tree-nodes", body).Problem(400, "invalid_parameters", "body.condition")
		require.NotEmpty(t, doc.Errors[0].Message, name)
		c.Patch(node(good), object{"condition": condition}).Problem(400, "invalid_parameters", "body.condition")
	}
}

// Users come and go one by one, without an evaluation of the others.
func TestDynamicMembersComeAndGo(t *testing.T) {
	t.Parallel()
	g := guide(t, 3)
	addObject(t, g.Client, "company")
	high, low := g.dynamic("high", "user.level > 5"), g.dynamic("low", "user.level < 5")
	g.upkeep()
	asked := 0
	g.interfere(func(context.Context, string) error { asked++; return nil })
	g.change("updated", "1", object{"level": 9})
	require.Equal(t, []string{id(high)}, g.nodesOf("1"))
	g.change("updated", "1", object{"level": 1})
	require.Equal(t, []string{id(low)}, g.nodesOf("1"))
	require.EqualValues(t, 0, g.memberCount(high))
	require.EqualValues(t, 1, g.memberCount(low))
	g.change("updated", "1", object{})
	require.Empty(t, g.nodesOf("1"))
	g.change("created", "8", object{"level": 9})
	require.Equal(t, []string{"8"}, g.usersOf(high, ""))

	before, events := g.everything(), g.published(-1)
	g.hear(g.tell("acme", "updated", object{"id": "8", "version": 1, "level": 9}))
	require.Equal(t, before, g.everything(), "a repeated event changes nothing")
	g.change("updated", "8", object{"level": 1})
	g.hear(g.tell("acme", "updated", object{"id": "8", "version": 1, "level": 9}))
	require.Equal(t, []string{id(low)}, g.nodesOf("8"), "nor does a late one")
	told := g.published(len(events) + 2)[len(events):]
	slices.Sort(told)
	require.Regexp(t, `^\[membership.created \d+ membership.deleted \d+\]$`, fmt.Sprint(told))
	require.Zero(t, asked)
	verify(t, g.Service)
}

// A user changes after a page of users was read and before it is evaluated.
func TestDynamicStalePage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(*guided)
		want      []string
	}{
		"one meets it no more": {func(g *guided) { g.change("updated", "1", object{"level": 1}) }, []string{"2"}},
		"one meets it now": {func(g *guided) {
			g.change("updated", "3", object{"level": 9})
		}, []string{"1", "2", "3"}},
		"one is deleted": {func(g *guided) { g.expel("1") }, []string{"2"}},
		"one resigns":    {func(g *guided) { g.resign("1") }, []string{"2"}},
		"one is new": {func(g *guided) {
			g.change("created", "4", object{"level": 9})
		}, []string{"1", "2", "4"}},
		"one is back": {func(g *guided) {
			g.resign("1")
			g.change("reinstated", "1", object{"level": 9})
		}, []string{"1", "2"}},
		"an event is to come": {func(g *guided) { g.put("1", object{"level": 1}) }, []string{"1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guide(t, 0)
			for user, level := range map[string]int{"1": 9, "2": 9, "3": 1} {
				g.put(user, object{"level": level})
			}
			addObject(t, g.Client, "company")
			n := g.dynamic("high", "user.level > 5")
			g.once("records", func() { c.meanwhile(g) })
			g.upkeep()
			require.ElementsMatch(t, c.want, g.usersOf(n, ""))
			verify(t, g.Service)
		})
	}
}

// The node is changed while a page of users is being read.
func TestDynamicNodeChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(*guided, object)
		want      []string
	}{
		"another condition": {func(g *guided, n object) {
			g.Patch(node(n), object{"condition": "user.level < 5"}).OK(nil)
		}, []string{"3"}},
		"there and back": {func(g *guided, n object) {
			g.Patch(node(n), object{"condition": "user.level < 5"}).OK(nil)
			g.Patch(node(n), object{"condition": "user.level > 5"}).OK(nil)
		}, []string{"1", "2"}},
		"off": {func(g *guided, n object) { g.Patch(node(n), object{"is_dynamic": "0"}).OK(nil) }, []string{}},
		"off and by hand": {func(g *guided, n object) {
			g.Patch(node(n), object{"is_dynamic": "0"}).OK(nil)
			g.join(n, "3")
		}, []string{"3"}},
		"off and on": {func(g *guided, n object) {
			g.Patch(node(n), object{"is_dynamic": "0"}).OK(nil)
			g.Patch(node(n), object{"is_dynamic": "1"}).OK(nil)
		}, []string{"1", "2"}},
		"moved": {func(g *guided, n object) {
			g.Patch(node(n), object{"parent_id": addNode(g.t, g.Client, "company", "", "n")["id"]}).OK(nil)
		}, []string{"1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guide(t, 0)
			for user, level := range map[string]int{"1": 9, "2": 9, "3": 1} {
				g.put(user, object{"level": level})
			}
			addObject(t, g.Client, "company")
			n := g.dynamic("some", "user.level > 5")
			g.once("records", func() { c.meanwhile(g, n) })
			g.upkeep()
			require.ElementsMatch(t, c.want, g.usersOf(n, ""))
			verify(t, g.Service)
		})
	}
}

func TestDynamicNodeDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	g := guide(t, 1100)
	addObject(t, g.Client, "company")
	remove := func(n object) { g.Delete(node(n)+"?object_code=company", nil).OK(nil) }
	first := g.dynamic("first", "true")
	g.once("records", func() { remove(first) })
	g.upkeep()
	require.Zero(t, g.storedIn(first))

	// With more members than end in one transaction, the node's end is an upkeep, too, and must not be confused with
	// the running one.
	second := g.dynamic("second", "true")
	g.upkeep()
	require.Equal(t, 1100, g.storedIn(second))
	g.Patch(node(second), object{"condition": "user.id != ''"}).OK(nil)
	g.once("records", func() { remove(second) })
	g.upkeep()
	require.Zero(t, g.storedIn(second))
	verify(t, g.Service)
}

// If a node is no longer dynamic, the users who met its condition leave it, a batch at a time, but not those who were
// added by hand meanwhile.
func TestDynamicNodeOfMany(t *testing.T) {
	t.Parallel()
	g := guide(t, 1100)
	addObject(t, g.Client, "company")
	n := g.dynamic("all", "true")
	g.upkeep()
	g.Patch(node(n), object{"is_dynamic": "0"}).OK(nil)
	require.Equal(t, 100, g.storedIn(n))
	g.put("new", object{})
	g.join(n, "new")
	g.upkeep()
	require.Equal(t, []string{"new"}, g.usersOf(n, ""))
	verify(t, g.Service)
}

// A node's members end a batch at a time; what has not ended yet is not shown.
func TestDeleteNodeOfMany(t *testing.T) {
	t.Parallel()
	const many = 2500
	g := guide(t, many)
	addObject(t, g.Client, "company")
	n, other := addNode(t, g.Client, "company", "", "n"), addNode(t, g.Client, "company", "", "other")
	var users []string
	for i := 1; i <= many; i++ {
		users = append(users, fmt.Sprint(i))
	}
	for part := range slices.Chunk(users, 1000) {
		g.join(n, part...)
	}
	g.join(other, users[0], users[many-1])
	events := g.published(-1)

	g.Delete(node(n)+"?object_code=company", nil).OK(nil)
	require.Len(t, storedMembers(t, g.Service, "acme"), many-1000+2)
	require.Equal(t, []string{id(other) + "*"}, g.nodesOf(users[0]))
	require.Equal(t, []string{id(other)}, g.nodesOf(users[many-1]), "the one that ends later is still the primary one")
	require.Empty(t, g.nodesOf(users[many-2]))
	root := object{"id": n["parent_id"]}
	require.Equal(t, []string{users[0], users[many-1]}, g.usersOf(root, "?recursive=true"))
	g.Get("/v1/tree-users/"+storedMembers(t, g.Service, "acme")[0].ID).Problem(404, "not_found")

	g.upkeep()
	require.Equal(t, []string{id(other) + "*"}, g.nodesOf(users[many-1]))
	verify(t, g.Service)
	var sizes []int
	g.EventsUntil(func(e stream.Event) bool {
		if e.Type == "idp.membership.deleted" {
			list := data(t, e)["memberships"].([]any)
			require.Equal(t, list[0].(object)["id"], e.Subject, "the first of them")
			sizes = append(sizes, len(list))
		}
		return len(sizes) == 3
	})
	require.Equal(t, []int{1000, 1000, 500}, sizes)
	require.Contains(t, g.published(-1)[len(events):], "node.deleted "+id(n))
}

// One tenant's failures do not delay the others.
func TestUpkeepOfOthersContinues(t *testing.T) {
	t.Parallel()
	g := guide(t, 3)
	globex := in(g.Service, "globex")
	addObject(t, globex, "company")
	addNode(t, globex, "company", "", "all", object{"is_dynamic": "1", "condition": "true"})
	g.Clock.Advance(time.Second)
	addObject(t, g.Client, "company")
	n := g.dynamic("all", "true")
	g.interfere(func(ctx context.Context, _ string) error {
		if request.Tenant(ctx) == "globex" {
			return errors.New("no")
		}
		return nil
	})
	_, err := g.tasks["keep memberships"](t.Context())
	require.Error(t, err)
	require.Len(t, g.usersOf(n, ""), 3)
	g.interfere(nil)
	g.Clock.Advance(5 * time.Second)
	g.upkeep()
	require.Len(t, storedMembers(t, g.Service, "globex"), 3)
	verify(t, g.Service)
}

// Upkeep runs by itself, even if the users service does not answer at first.
func TestDynamicByItself(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addObject(t, c, "company")
	n := addNode(t, c, "company", "", "high", object{"is_dynamic": "1", "condition": "user.level > 5"})
	p := &people{users: map[string]object{}}
	p.put("1", object{"level": 9})
	p.answer(t, s.Deps.Bus)
	s.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.membership.created" })
	require.Equal(t, []any{"1"}, c.Items(node(n, "users"), "user_id"))
	g := &guided{Service: s, Client: c, people: p, t: t}
	g.tell("acme", "updated", p.put("1", object{"level": 1}))
	s.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.membership.deleted" })
	require.Empty(t, c.Items(node(n, "users"), "user_id"))
	verify(t, s)
}

// Users, conditions and upkeep change at the same time, in any order: in the end the members are those who meet the
// conditions.
func TestRaceOfConditions(t *testing.T) {
	t.Parallel()
	g := guide(t, 0)
	levels, over := make([]int, 40), make([]int, 4)
	seed := rand.Uint64()
	t.Log("seed", seed)
	for i := range levels {
		g.put(fmt.Sprint(i), object{"level": 0})
	}
	addObject(t, g.Client, "company")
	var nodes []object
	for i := range over {
		nodes = append(nodes, g.dynamic(fmt.Sprint("over ", i), "user.level > 0"))
	}
	var events []string
	var mu sync.Mutex
	atOnce(
		func() *testkit.Answer {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 200 {
				i := r.IntN(len(levels))
				levels[i] = r.IntN(10)
				event := g.tell("acme", "updated", g.put(fmt.Sprint(i), object{"level": levels[i]}))
				mu.Lock()
				events = append(events, event)
				mu.Unlock()
			}
			return &testkit.Answer{}
		},
		func() *testkit.Answer {
			r := rand.New(rand.NewPCG(seed, 2))
			for range 60 {
				i := r.IntN(len(over))
				over[i] = r.IntN(10)
				g.Patch(node(nodes[i]), object{"is_dynamic": "1", "condition": fmt.Sprint("user.level > ", over[i])})
				if r.IntN(5) == 0 {
					g.Patch(node(nodes[i]), object{"is_dynamic": "0"})
					g.Patch(node(nodes[i]), object{"is_dynamic": "1"})
				}
			}
			return &testkit.Answer{}
		},
		func() *testkit.Answer {
			for range 60 {
				_, _ = g.tasks["keep memberships"](context.Background())
			}
			return &testkit.Answer{}
		},
		func() *testkit.Answer {
			for range 60 {
				_, _ = g.tasks["keep memberships"](context.Background())
			}
			return &testkit.Answer{}
		},
	)
	g.hear(events...)
	g.upkeep()
	for i, n := range nodes {
		want := []string{}
		for user, level := range levels {
			if level > over[i] {
				want = append(want, fmt.Sprint(user))
			}
		}
		require.ElementsMatch(t, want, g.usersOf(n, ""), "level > %d", over[i])
	}
	verify(t, g.Service)
}
