package organization_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// TestCommands: the commands that operations send to MongoDB.
func TestCommands(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 4000)
	addObject(t, c, "company")
	top := addNode(t, c, "company", "", "top")
	other := addNode(t, c, "company", "", "other")
	deep := addNode(t, c, "company", id(addNode(t, c, "company", id(top), "unit")), "team")
	large := addNode(t, c, "company", id(top), "large")
	nodes := func(parent any, n int) object {
		items := make([]object, n)
		for i := range items {
			items[i] = object{"name": fmt.Sprint("node ", i), "parent_id": parent}
		}
		return object{"object_code": "company", "items": items}
	}
	for range 10 {
		c.Post(nodesBatch, nodes(id(large), 1000)).OK(nil)
	}
	member := c.Post("/v1/tree-users", object{"node_id": id(top), "user_id": "4000"}).Object()
	user, moves, title := 0, 0, 0
	s.CountCommands("organization", c,
		testkit.Commands{Operation: "get a node", Most: 1, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Get(node(deep))
		}},
		testkit.Commands{Operation: "create a node", Most: 6, Older: 8, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Post("/v1/tree-nodes", object{"object_code": "company", "parent_id": id(deep), "name": "new"})
		}},
		testkit.Commands{Operation: "create a batch of 1,000 nodes", Most: 12,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Post(nodesBatch, nodes(id(other), 1000))
			}},
		testkit.Commands{Operation: "add a member", Most: 8, Older: 11, Do: func(c *testkit.Client) *testkit.Answer {
			user++
			return c.Post("/v1/tree-users", object{"node_id": id(deep), "user_id": fmt.Sprint(user)})
		}},
		testkit.Commands{Operation: "add a batch of 500 members", Most: 20,
			Do: func(c *testkit.Client) *testkit.Answer {
				users := make([]string, 500)
				for i := range users {
					user++
					users[i] = fmt.Sprint(user)
				}
				return c.Post("/v1/batch/tree-users", object{"node_id": id(deep), "user_ids": users})
			}},
		testkit.Commands{Operation: "change a member", Most: 6, Do: func(c *testkit.Client) *testkit.Answer {
			title++
			return c.Patch("/v1/tree-users/"+id(member), object{"title": fmt.Sprint(title)})
		}},
		testkit.Commands{Operation: "remove a member", Most: 8, Older: 9, Do: func(c *testkit.Client) *testkit.Answer {
			user++
			added := in(s, "acme").Post("/v1/tree-users", object{"node_id": id(deep), "user_id": fmt.Sprint(user)})
			return c.Delete("/v1/tree-users/"+added.ID(), nil)
		}},
		testkit.Commands{Operation: "change a node", Most: 5, Do: func(c *testkit.Client) *testkit.Answer {
			title++
			return c.Patch(node(deep), object{"name": fmt.Sprint("name ", title)})
		}},
		testkit.Commands{Operation: "move 10,000 nodes", Most: 30, Do: func(c *testkit.Client) *testkit.Answer {
			moves++
			return c.Patch(node(large), object{"parent_id": []any{id(other), id(top)}[(moves-1)%2]})
		}},
	)
}

// TestAtOnce: changes by several connections do not make each other's transactions run again.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	const people = 1000
	s, c, _ := withPeople(t, people)
	s.AtOnce(c, changesOfTree(t, c, people)...)
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
