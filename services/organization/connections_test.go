package organization_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
)

const peopleOfChanges = 50_000

// changesOfTree are the changes that several clients make in one tree.
func changesOfTree(t testing.TB, _ *testkit.Service, c *testkit.Client) []testkit.Change {
	t.Helper()
	addObject(t, c, "company")
	top := addNode(t, c, "company", "", "top")
	all, leaving := addNode(t, c, "company", "", "all"), addNode(t, c, "company", "", "leaving")
	var teams []object
	for i := range 16 {
		unit := addNode(t, c, "company", id(top), fmt.Sprint("unit", i))
		teams = append(teams, addNode(t, c, "company", id(unit), "team"))
	}
	join := func(c *testkit.Client, node object, n int) *testkit.Answer {
		return c.Post("/v1/tree-users", object{"node_id": id(node), "user_id": fmt.Sprint(n%peopleOfChanges + 1)})
	}
	return []testkit.Change{
		{Name: "members of a node each", Do: func(c *testkit.Client, i, n int) *testkit.Answer {
			return join(c, teams[i], n)
		}},
		{Name: "members of one node", Do: func(c *testkit.Client, _, n int) *testkit.Answer { return join(c, all, n) }},
		{Name: "members of one node join and leave", Do: func(c *testkit.Client, i, n int) *testkit.Answer {
			joined := join(c, leaving, n)
			if joined.Status != http.StatusOK {
				return joined
			}
			return c.Delete("/v1/tree-users/"+joined.ID(), nil)
		}},
		{Name: "nodes of one tree", Do: func(c *testkit.Client, i, n int) *testkit.Answer {
			return c.Post("/v1/tree-nodes", object{
				"object_code": "company", "parent_id": id(teams[i]), "name": fmt.Sprint("n", n),
			})
		}},
	}
}
