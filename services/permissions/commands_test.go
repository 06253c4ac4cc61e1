package permissions_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// TestCommands limits the commands that operations send to MongoDB. Checks send none.
func TestCommands(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	resource := c.Post("/v1/resources", resourceBody("there")).ID()
	n := 0
	fresh := func() string { n++; return fmt.Sprint("new", n) }
	s.CountCommands("permissions", c,
		testkit.Commands{Operation: "check", Most: 0, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Post("/v1/auth-check", reading("20"))
		}},
		testkit.Commands{Operation: "create a resource", Most: 3, Older: 4,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Post("/v1/resources", resourceBody(fresh()))
			}},
		testkit.Commands{Operation: "change a resource", Most: 4, Older: 5,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Patch("/v1/resources/"+resource, object{"description": fresh()})
			}},
		testkit.Commands{Operation: "grant", Most: 6, Older: 9, Do: func(c *testkit.Client) *testkit.Answer {
			code := fresh()
			in(s, "acme").Post("/v1/resources", resourceBody(code)).OK(nil)
			return c.Post("/v1/batch/auth-unit-rules", grantBody(code))
		}},
	)
}

// resourceBody is the body of a resource, and grantBody that of a rule for it.
func resourceBody(code string) object {
	return object{"application_id": "9", "type": "data", "code": code, "name": code,
		"actions": []any{object{"code": "read"}}}
}

func grantBody(code string) object {
	return object{"identities": []any{object{"identity_id": "20", "identity_type": "user"}}, "rules": []any{
		object{"application_id": "9", "type": "data", "code": code, "affect": "affect", "actions": []any{"read"}}}}
}

// BenchmarkConnections makes resources by 1, 4 and 16 clients at once.
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
		{Name: "rules of one unit", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			return c.Post("/v1/batch/auth-unit-rules", object{
				"identities": []any{object{"identity_id": "20", "identity_type": "user"}},
				"rules": []any{object{
					"application_id": "9", "type": "res", "code": fmt.Sprint("code", n, "*"), "actions": []any{"read"},
				}},
			})
		}},
		{Name: "resources", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			return c.Post("/v1/resources", resourceBody(fmt.Sprint("resource", n)))
		}},
	}
}
