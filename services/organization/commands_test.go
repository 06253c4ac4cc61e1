package organization_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// writes describe what the service writes; see testkit.Writes.
var writes = testkit.Writes{
	Service: "organization",
	Start: func(t testing.TB) (*testkit.Service, *testkit.Client) {
		s, c, _ := withPeople(t, peopleOfChanges)
		permissions(t, s, 0)
		return s, c
	},
	Commands: func(t testing.TB, _ *testkit.Service, c *testkit.Client) []testkit.Commands {
		addObject(t, c, "company")
		addObject(t, c, "project")
		p := &prepared{t: t, c: c, fresh: testkit.Names()}
		return append(append(p.ofNodes(), p.ofMembers()...), p.ofOthers()...)
	},
	Changes: changesOfTree,
}

func TestCommands(t *testing.T)         { writes.TestCommands(t) }
func TestAtOnce(t *testing.T)           { writes.TestAtOnce(t) }
func BenchmarkConnections(b *testing.B) { writes.BenchmarkConnections(b) }

// prepared makes the records that operations change. Its own requests are not counted.
type prepared struct {
	t     testing.TB
	c     *testkit.Client
	fresh func() string
	users int // those who are members
}

func (p *prepared) node(below string) object { return addNode(p.t, p.c, "company", below, p.fresh()) }

func (p *prepared) user() string { p.users++; return fmt.Sprint(p.users) }

// usersOf makes the ids of n new members.
func (p *prepared) usersOf(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = p.user()
	}
	return ids
}

func (p *prepared) ofNodes() []testkit.Commands {
	top, other := p.node(""), p.node("")
	deep, large := p.node(id(p.node(id(top)))), p.node(id(top))
	nodes := func(parent any) object {
		items := make([]object, 1000)
		for i := range items {
			items[i] = object{"name": fmt.Sprint("node ", i), "parent_id": parent}
		}
		return object{"object_code": "company", "items": items}
	}
	for range 10 {
		p.c.Post(nodesBatch, nodes(id(large))).OK(nil)
	}
	moves := 0
	leaf := testkit.Path(func() string { return node(p.node(id(deep))) })
	return []testkit.Commands{
		testkit.Takes("get a node", http.MethodGet, node(deep), nil),
		testkit.Takes("create a node", http.MethodPost, "/v1/tree-nodes",
			func() any { return object{"object_code": "company", "parent_id": id(deep), "name": p.fresh()} }),
		testkit.Takes("create a batch of 1,000 nodes", http.MethodPost, nodesBatch, nodes(id(other))),
		testkit.Takes("change a node", http.MethodPatch, node(deep), func() any { return object{"name": p.fresh()} }),
		testkit.Takes("move 10,000 nodes", http.MethodPatch, node(large), func() any {
			moves++
			return object{"parent_id": []any{id(other), id(top)}[(moves-1)%2]}
		}),
		testkit.Takes("enable a node", http.MethodPost, leaf.After(p.c, "/disable").Below("/enable"), nil),
		testkit.Takes("disable a node", http.MethodPost, leaf.Below("/disable"), nil),
		testkit.Takes("delete a node", http.MethodDelete, leaf.Below("?object_code=company"), nil),
	}
}

func (p *prepared) ofMembers() []testkit.Commands {
	const members = "/v1/tree-users"
	there := p.node(id(p.node(id(p.node("")))))
	joining := func() any { return object{"node_id": id(there), "user_id": p.user()} }
	member := testkit.Path(func() string { return members + "/" + p.c.Post(members, joining()).ID() })
	below := func(each int) func() string { // of a node with four others that have members
		top := p.node("")
		for range 4 {
			there := id(p.node(id(top)))
			p.c.Post("/v1/batch/tree-users", object{"node_id": there, "user_ids": p.usersOf(each)}).OK(nil)
		}
		return func() string { return node(top) + "/users?recursive=true" }
	}
	some := func(n int) func() any {
		return func() any { return object{"node_id": id(there), "user_ids": p.usersOf(n)} }
	}
	return []testkit.Commands{
		testkit.Takes("add a member", http.MethodPost, members, joining),
		testkit.Takes("add a batch of 500 members", http.MethodPost, "/v1/batch/tree-users", some(500)),
		testkit.Takes("list all 16 members of a node and below", http.MethodGet, below(4), nil),
		testkit.Takes("list 20 of 400 members of a node and below", http.MethodGet, below(100), nil),
		testkit.Takes("change a member", http.MethodPatch, member, func() any { return object{"title": p.fresh()} }),
		testkit.Takes("remove a member", http.MethodDelete, member, nil),
		testkit.Takes("remove a batch of 500 members", http.MethodDelete, members, func() any {
			body := some(500)()
			p.c.Post("/v1/batch/tree-users", body).OK(nil)
			return body
		}),
	}
}

// ofOthers are core objects, and associations of nodes.
func (p *prepared) ofOthers() []testkit.Commands {
	const objects = "/v1/core-objects"
	another := testkit.Path(func() string { return objects + "/" + id(addObject(p.t, p.c, p.fresh())) })
	ends := func() object {
		project := addNode(p.t, p.c, "project", "", p.fresh())
		return object{"source_node_id": id(p.node("")), "target_node_id": id(project)}
	}
	link := func() string { return p.c.Post(linksPath, ends()).ID() }
	return []testkit.Commands{
		testkit.Takes("find core objects by a keyword", http.MethodGet, objects+"?keyword=co", nil),
		testkit.Takes("create a core object", http.MethodPost, objects,
			func() any { code := p.fresh(); return object{"code": code, "name": code} }),
		testkit.Takes("change a core object", http.MethodPatch, another,
			func() any { return object{"name": p.fresh()} }),
		testkit.Takes("delete a core object", http.MethodDelete, another, nil),
		testkit.Takes("link two nodes", http.MethodPost, linksPath, func() any { return ends() }),
		testkit.Takes("delete an association", http.MethodDelete,
			func() string { return linksPath + "/" + link() }, nil),
		testkit.Takes("delete 10 associations", http.MethodDelete, linksPath, func() any {
			ids := make([]string, 10)
			for i := range ids {
				ids[i] = link()
			}
			return object{"ids": ids}
		}),
	}
}

// Neither unrelated changes nor changes of one tree's structure make transactions run again, which would send more
// commands.
func TestConcurrentChangesAreNotRepeated(t *testing.T) {
	t.Parallel()
	const n = 16
	s, c, _ := withPeople(t, 2*n)
	s.CommandsOf("") // skips the test without MongoDB
	addObject(t, c, "company")
	units := make([]object, n)
	for i := range units {
		units[i] = addNode(t, c, "company", "", fmt.Sprint("unit ", i))
	}
	for name, side := range map[string]struct {
		do   func(c *testkit.Client, i int) *testkit.Answer
		each int // commands for each
	}{
		"members of different nodes": {func(c *testkit.Client, i int) *testkit.Answer {
			return c.Post("/v1/tree-users", object{"node_id": id(units[i]), "user_id": fmt.Sprint(i + 1)})
		}, 8},
		"nodes of one tree": {func(c *testkit.Client, i int) *testkit.Answer {
			return c.Post("/v1/tree-nodes", object{"object_code": "company", "parent_id": id(units[i]), "name": "new"})
		}, 4},
		"an object beside nodes": {func(c *testkit.Client, i int) *testkit.Answer {
			if i == 0 {
				return c.Post("/v1/core-objects", object{"code": "another", "name": "another"})
			}
			return c.Post("/v1/tree-nodes", object{"object_code": "company", "parent_id": id(units[i]), "name": "new"})
		}, 4},
	} {
		request := func(i int) string { return fmt.Sprint(strings.ReplaceAll(name, " ", "-"), i) }
		acts := make([]func() *testkit.Answer, n)
		for i := range acts {
			acts[i] = func() *testkit.Answer { return side.do(c.With("X-Request-Id", request(i)), i) }
		}
		for _, status := range atOnce(acts...) {
			require.Equal(t, http.StatusOK, status, name)
		}
		sent := 0
		for i := range n {
			sent += s.CommandsOf(request(i))
		}
		t.Log(name, float64(sent)/n)
		require.LessOrEqual(t, sent, n*side.each*3/2, "%s: some may have met a simulated fault", name)
	}
}
