package identitysources_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// TestCommands limits the commands that operations send to MongoDB.
func TestCommands(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	method := func(code string) object { return object{"code": code, "name": code, "type": "password"} }
	there := c.Post(methodsPath, method("there")).ID()
	connection := one(c.Post(connectionsPath, ldap(nil)).Object())
	n := 0
	fresh := func() string { n++; return fmt.Sprint("new", n) }
	s.CountCommands("identity-sources", c,
		testkit.Commands{Operation: "get a connection", Most: 1, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Get(connection)
		}},
		testkit.Commands{Operation: "create a connection", Most: 6, Older: 10,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Post(connectionsPath, with(ldap(nil), "display_name", fresh()))
			}},
		testkit.Commands{Operation: "create a method", Most: 3, Older: 4, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Post(methodsPath, method(fresh()))
		}},
		testkit.Commands{Operation: "change a method", Most: 4, Older: 5, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Patch(methodsPath+"/"+there, object{"name": fresh()})
		}},
	)
}

func with(body object, name string, value any) object {
	body[name] = value
	return body
}

// BenchmarkConnections makes connections and methods by 1, 4 and 16 clients at once.
func BenchmarkConnections(b *testing.B) {
	s := start(b)
	s.ByConnections(b, in(s, "acme"), changes()...)
}

// TestAtOnce: changes by several connections do not make each other's transactions run again.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.AtOnce(in(s, "acme"), changes()...)
}

func changes() []testkit.Change {
	return []testkit.Change{
		{Name: "methods", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			code := fmt.Sprint("method-", n)
			return c.Post(methodsPath, object{"code": code, "name": code, "type": "password"})
		}},
	}
}
