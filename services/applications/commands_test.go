package applications_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// TestCommands limits the commands that operations send to MongoDB.
func TestCommands(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "there")
	n := 0
	fresh := func() string { n++; return fmt.Sprint("new", n) }
	s.CountCommands("applications", c,
		testkit.Commands{Operation: "get an application", Most: 1, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Get(path(app))
		}},
		testkit.Commands{Operation: "create an application", Most: 5, Older: 11,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Post("/v1/applications", object{"name": fresh()})
			}},
		testkit.Commands{Operation: "change an application", Most: 6, Older: 10,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Patch(path(app), object{"descr": fresh()})
			}},
		testkit.Commands{Operation: "refresh a secret", Most: 5, Older: 8, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Post(path(app, "secrets"), nil)
		}},
		testkit.Commands{Operation: "create a sub-account", Most: 8, Older: 14,
			Do: func(c *testkit.Client) *testkit.Answer {
				n++
				return c.Post(path(app, "accounts"), object{"user_id": fmt.Sprint(n), "account": fresh()})
			}},
		testkit.Commands{Operation: "delete an application", Most: 13, Older: 22,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Delete(path(addApp(t, in(s, "acme"), fresh())), nil)
			}},
	)
}

// BenchmarkConnections changes applications by 1, 4 and 16 clients at once.
func BenchmarkConnections(b *testing.B) {
	s, c := acme(b)
	s.ByConnections(b, c, changes()...)
}

// TestAtOnce: changes by several connections do not make each other's transactions run again.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	s.AtOnce(c, changes()...)
}

func changes() []testkit.Change {
	return []testkit.Change{
		{Name: "applications", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			return c.Post("/v1/applications", object{"name": fmt.Sprint("application ", n)})
		}},
	}
}
