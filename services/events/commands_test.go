package events_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// writes describe what the service writes; see testkit.Writes.
var writes = testkit.Writes{
	Service: "events",
	Start: func(t testing.TB) (*testkit.Service, *testkit.Client) {
		s := start(t)
		return s, s.As("acme", auth.PlatformAdmin)
	},
	Commands: func(t testing.TB, s *testkit.Service, c *testkit.Client) []testkit.Commands {
		return append(ofSubscriptions(c, testkit.Names()), ofDeliveries(t, s, c)...)
	},
	Changes: changes,
}

func TestCommands(t *testing.T)         { writes.TestCommands(t) }
func TestAtOnce(t *testing.T)           { writes.TestAtOnce(t) }
func BenchmarkConnections(b *testing.B) { writes.BenchmarkConnections(b) }

// paused makes a subscription whose events no worker delivers. A worker saves its progress now and then, and a
// transaction that meets that runs twice.
var paused = object{"status": "0"}

func changes(testing.TB, *testkit.Service, *testkit.Client) []testkit.Change {
	return []testkit.Change{
		{Name: "subscriptions", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			name := fmt.Sprint("subscription ", n)
			return c.Post(subscriptionsPath, hook(name, "https://hr.acme.test/events", paused))
		}},
	}
}

func ofSubscriptions(c *testkit.Client, fresh func() string) []testkit.Commands {
	const url = "https://hr.acme.test/events"
	body := func() any { return hook(fresh(), url, onlyThings) }
	subscription := testkit.Path(func() string { return one(c.Post(subscriptionsPath, body()).Object()) })
	there := subscription.After(c, "/pause")() // see paused
	return []testkit.Commands{
		testkit.Takes("get a subscription", http.MethodGet, there, nil),
		testkit.Takes("find subscriptions by a keyword", http.MethodGet, subscriptionsPath+"?keyword=s", nil),
		testkit.Takes("create a subscription", http.MethodPost, subscriptionsPath, body),
		testkit.Takes("change a subscription", http.MethodPatch, there, func() any { return object{"name": fresh()} }),
		testkit.Takes("replace a subscription", http.MethodPut, there, func() any {
			return hook(fresh(), "", object{"delivery": object{"type": "webhook", "url": url, "secret": "******"}})
		}),
		testkit.Takes("pause a subscription", http.MethodPost, subscription.Below("/pause"), nil),
		testkit.Takes("resume a subscription", http.MethodPost, subscription.After(c, "/pause").Below("/resume"), nil),
		testkit.Takes("reset a subscription", http.MethodPost, subscription.Below("/reset"), object{"to": "now"}),
		testkit.Takes("delete a subscription", http.MethodDelete, subscription, nil),
	}
}

// ofDeliveries need somebody who receives them, and dead letters, which are in NATS.
func ofDeliveries(t testing.TB, s *testkit.Service, c *testkit.Client) []testkit.Commands {
	hooked := newReceiver(t, nil)
	path := one(c.Post(subscriptionsPath, hook("delivered", hooked.URL, onlyThings)).Object())
	tell(t, s, "acme", "7", 1, "created")
	event := hooked.await(1)[0].Event.ID
	awaitRecord(t, c, path, delivered(1))
	letter := func() string {
		park(t, s, "things-of-nobody", "7")
		items := c.Get(deadLettersPath).Object()["items"].([]any)
		return deadLettersPath + "/" + id(items[0].(object))
	}
	return []testkit.Commands{
		testkit.Takes("test a subscription", http.MethodPost, path+"/test", nil),
		testkit.Takes("deliver an event again", http.MethodPost, path+"/events/"+event+"/redeliver", nil),
		testkit.Takes("replay a dead letter", http.MethodPost, testkit.Path(letter).Below("/replay"), nil),
		testkit.Takes("delete a dead letter", http.MethodDelete, letter, nil),
	}
}
