package events_test

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
	there := one(c.Post(subscriptionsPath, hook("there", "https://hr.acme.test/events")).Object())
	n := 0
	fresh := func() string { n++; return fmt.Sprint("new", n) }
	s.CountCommands("events", c,
		testkit.Commands{Operation: "get a subscription", Most: 2, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Get(there)
		}},
		testkit.Commands{Operation: "create a subscription", Most: 6, Older: 10,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Post(subscriptionsPath, hook(fresh(), "https://hr.acme.test/events"))
			}},
		testkit.Commands{Operation: "change a subscription", Most: 8, Older: 12,
			Do: func(c *testkit.Client) *testkit.Answer {
				return c.Patch(there, object{"name": fresh()})
			}},
	)
}

// BenchmarkConnections makes subscriptions by 1, 4 and 16 clients at once.
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
		{Name: "subscriptions", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			return c.Post(subscriptionsPath, hook(fmt.Sprint("subscription ", n), "https://hr.acme.test/events"))
		}},
	}
}
