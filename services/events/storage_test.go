package events_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/events"
)

// small is a configuration with the smallest share of the storage.
func small() events.Config {
	c := events.DefaultConfig()
	c.TenantMIB = 1
	return c
}

// flood emits n events of 100 KiB.
func flood(t testing.TB, s *testkit.Service, tenant string, n int) {
	t.Helper()
	ctx := request.With(context.Background(), request.Info{ID: "request-1", Tenant: tenant, Actor: "ann"})
	large, err := json.Marshal(object{"id": "large", "blob": strings.Repeat("x", 100<<10)})
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, docstore.Do(ctx, s.Deps.Store, func(tx *docstore.Tx) error {
			return outbox.Append(ctx, tx, outbox.Event{
				Entity: things.Entity, Action: "updated", Source: things.Source, Subject: fmt.Sprint("large", i%4),
				Revision: int64(i + 1), Record: large,
			})
		}))
	}
}

// sizeOf returns how many bytes a stream takes.
func sizeOf(t testing.TB, s *testkit.Service, stream string) uint64 {
	t.Helper()
	size, _, err := s.Deps.Bus.StreamSize(t.Context(), stream)
	require.NoError(t, err)
	return size
}

// continues returns the cursor that a refused one can be replaced by.
func continues(t testing.TB, answer *testkit.Answer) string {
	t.Helper()
	_, cursor, ok := strings.Cut(answer.Problem(http.StatusConflict, "invalid_state").Detail, "after=")
	require.True(t, ok)
	return cursor
}

// A flood of one tenant drops its own oldest events, once they are in the audit log. Its feed and its subscriptions say
// so, after a restart, too. Nothing of another tenant's is missing, and the service stays ready.
func TestAFloodDropsTheTenantsOwnEvents(t *testing.T) {
	t.Parallel()
	const large = 200 // more than a replica has in memory
	s := startWith(t, small())
	a, b := in(s, "acme"), in(s, "globex")
	hooked, paused := newReceiver(t, nil), newReceiver(t, nil)
	b.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).OK(nil)
	waits := a.Post(subscriptionsPath, hook("things", paused.URL, onlyThings)).Object()
	a.Post(one(waits)+"/pause", nil).OK(nil)
	firstA := a.Get("/v1/events?after=now").Object()["next"].(string)
	firstB := b.Get("/v1/events?after=now").Object()["next"].(string)
	tell(t, s, "globex", "before", 1, "created")
	flood(t, s, "acme", large)
	tell(t, s, "globex", "after", 1, "created")
	wait.Until(t, func() bool {
		return a.Get(auditPath + "?entity=component").Object()["total"] == float64(large) &&
			sizeOf(t, s, bus.EventStream) < 1<<20
	})
	s.Ready()
	hooked.await(2)

	whole := func(s *testkit.Service) {
		a, b := in(s, "acme"), in(s, "globex")
		wait.Until(t, func() bool { return b.Get("/v1/events?after="+firstB).Status == http.StatusOK })
		require.Equal(t, []any{"before", "after"}, recordsOf(b.Get("/v1/events?types=component.*&after="+firstB)))
		next := continues(t, a.Get("/v1/events?after="+firstA))
		kept := recordsOf(a.Get("/v1/events?after=" + next))
		require.Equal(t, kept, recordsOf(a.Get("/v1/events?types=component.*")), "without a cursor from the oldest on")
		require.Equal(t, fmt.Sprint("large", (large-1)%4), kept[len(kept)-1])
		require.Less(t, len(kept), large/2)
		live := a.With("Last-Event-ID", next).Events("/v1/events")
		require.Contains(t, string(live.Next().Data), kept[0])
		live.Leave()
	}
	whole(s)
	files := s.NATS.Copy()
	_, err := embedded.Verify(t.Context(), files, embedded.Verification{
		Whole: []string{bus.EventStream}, Dropped: bus.DroppedOfAll,
	})
	require.NoError(t, err)
	fresh := s.Replica(events.Spec(small()))
	fresh.Ready()
	whole(fresh)

	a.Post(one(waits)+"/resume", nil).OK(nil)
	shown := awaitRecord(t, a, one(waits), func(o object) bool { return o["counters"].(object)["delivered"] != 0.0 })
	require.Contains(t, shown["last_error"], "used up its share of the storage")
	require.Equal(t, "active", shown["state"])
}

// recordsOf lists the records of a page of events.
func recordsOf(answer *testkit.Answer) (list []any) {
	for _, item := range answer.Object()["items"].([]any) {
		list = append(list, item.(object)["subject"])
	}
	return list
}

// The queues of a tenant's subscriptions over NATS share its storage. The longest loses its oldest events first, and
// the subscription counts those that its subscriber had not read.
func TestAFloodShortensTheTenantsOwnQueues(t *testing.T) {
	t.Parallel()
	const large = 30
	s := startWith(t, small())
	a, b := in(s, "acme"), in(s, "globex")
	overNATS := func(c *testkit.Client, name string) object {
		return c.Post(subscriptionsPath, object{"name": name, "event_types": []any{"component.*"},
			"delivery": object{"type": "nats"}}).Object()
	}
	reads, away, other := overNATS(a, "reads"), overNATS(a, "away"), overNATS(b, "other")
	tell(t, s, "globex", "1", 1, "created")
	tell(t, s, "acme", "1", 1, "created")
	awaitRecord(t, a, one(reads), delivered(1))
	awaitRecord(t, a, one(away), delivered(1))
	awaitRecord(t, b, one(other), delivered(1))
	read := 0
	consumer, err := s.Deps.Bus.JetStream().Consumer(t.Context(), bus.SubscriptionStream,
		bus.SubscriptionConsumer(id(reads)))
	require.NoError(t, err)
	messages, err := consumer.Messages()
	require.NoError(t, err)
	defer messages.Stop()
	for range large / 3 {
		flood(t, s, "acme", 3)
		for ; read < 1+3; read++ {
			m, err := messages.Next(jetstream.NextContext(t.Context()))
			require.NoError(t, err)
			require.NoError(t, m.DoubleAck(t.Context()))
		}
		read = 1
	}
	shown := awaitRecord(t, a, one(away), func(o object) bool {
		return delivered(large+1)(o) && o["counters"].(object)["dropped"] != 0.0 &&
			sizeOf(t, s, bus.SubscriptionStream) < 1<<20
	})
	require.Contains(t, shown["last_error"], "events were dropped unread since 20")
	require.Equal(t, "active", shown["state"])
	wait.Until(t, func() bool {
		unread, err := s.Deps.Bus.Unread(t.Context(), id(away))
		require.NoError(t, err)
		dropped := a.Get(one(away)).Object()["counters"].(object)["dropped"].(float64)
		return float64(unread)+dropped == large+1
	})
	require.EqualValues(t, 0, a.Get(one(reads)).Object()["counters"].(object)["dropped"], "it has read all")
	unread, err := s.Deps.Bus.Unread(t.Context(), id(other))
	require.NoError(t, err)
	require.EqualValues(t, 1, unread)
	s.Ready()
	reset := a.Post(one(away)+"/reset", object{"to": "now"}).Object()
	require.Equal(t, []any{"", 0.0}, []any{reset["last_error"], reset["counters"].(object)["dropped"]})
}
