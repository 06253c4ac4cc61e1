package users_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// TestCommands: the commands that operations send to MongoDB.
func TestCommands(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	u := addUser(t, c, "there")
	n := 0
	fresh := func() string { n++; return fmt.Sprint("new", n) }
	records := func(n int) string {
		var body strings.Builder
		of := fresh()
		for i := range n {
			fmt.Fprintf(&body, `{"username":"%s-%d","email":"%[1]s-%[2]d@acme.test"}`+"\n", of, i)
		}
		return body.String()
	}
	s.CountCommands("users", c,
		testkit.Commands{Operation: "get a user", Most: 1, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Get(path(u))
		}},
		testkit.Commands{Operation: "a page of users with their number", Most: 2,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Get("/v1/users?page_size=20")
			}},
		testkit.Commands{Operation: "create a user with a password", Most: 3, Older: 4,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Post("/v1/users", object{"username": fresh(), "password": "c0rrect horse"})
			}},
		testkit.Commands{Operation: "change a user", Most: 4, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Patch(path(u), object{"display_name": fresh(), "email": fresh() + "@acme.test"})
		}},
		testkit.Commands{Operation: "delete a user", Most: 8, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Delete(path(addUser(t, in(s, "acme"), fresh())), nil)
		}},
		testkit.Commands{Operation: "import 1,000 users", Most: 12, Do: func(c *testkit.Client) *testkit.Answer {
			return send(c, ndjson, "", records(1000))
		}},
	)
}
