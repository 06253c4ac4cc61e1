package events_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// fragile is an engine whose writes fail while it is broken, like those of a process that has lost its database. The
// next so many lists of a collection's tenants fail, too.
type fragile struct {
	docstore.Engine
	broken *atomic.Bool
	lists  *atomic.Int64
}

func (f fragile) NextTenant(ctx context.Context, def *docstore.Def, after string) (string, error) {
	if def.Name == "subscriptions" && f.lists != nil && f.lists.Add(-1) >= 0 {
		return "", apperr.Away("the database", errors.New("it was cut off"))
	}
	return f.Engine.NextTenant(ctx, def, after)
}

func (f fragile) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	if f.broken.Load() {
		return apperr.Away("the database", errors.New("it was cut off"))
	}
	return f.Engine.Write(ctx, fn)
}

// share is the number of subscriptions that a replica delivers to.
func share(t testing.TB, s *testkit.Service) float64 {
	t.Helper()
	return gauge(t, s, "idp_delivery_subscriptions")
}

func gauge(t testing.TB, s *testkit.Service, name string) (n float64) {
	t.Helper()
	families, err := s.Deps.Metrics.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			n = family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return n
}

// Replicas share the subscriptions. If one loses its database, another takes over its subscriptions within 10 s. No
// event is lost, and apart from repetitions the events of a record are in order.
func TestReplicaTakesOver(t *testing.T) {
	t.Parallel()
	const subscriptions, perPhase = 12, 40
	s := start(t)
	var broken atomic.Bool
	other := s.Replica(spec(), testkit.Options{
		Engine: func(e docstore.Engine) docstore.Engine { return fragile{Engine: e, broken: &broken} },
	})
	t.Cleanup(func() { broken.Store(false) })
	other.Ready()
	c := in(s, "acme")
	var receivers []*receiver
	for n := range subscriptions {
		r := newReceiver(t, nil)
		receivers = append(receivers, r)
		c.Post(subscriptionsPath, hook(fmt.Sprint("s", n), r.URL, onlyThings)).OK(nil)
	}
	wait.Until(t, func() bool {
		return share(t, s) > 0 && share(t, other) > 0 && share(t, s)+share(t, other) == subscriptions
	})
	phase := func(n int) {
		for i := range perPhase {
			tell(t, s, "acme", fmt.Sprint(i%5), int64(n*perPhase+i+1), "updated")
		}
	}
	phase(0)
	for _, r := range receivers {
		r.await(perPhase)
	}

	broken.Store(true)
	phase(1)
	for _, r := range receivers {
		wait.Until(t, func() bool { return len(distinct(r.all())) == 2*perPhase })
		inOrder(t, r.all())
	}
	wait.Until(t, func() bool { return share(t, s) == subscriptions })
}

// A replica that could not list the subscriptions once delivers all the same.
func TestReplicaThatCannotListSubscriptions(t *testing.T) {
	t.Parallel()
	const subscriptions = 12
	s := start(t)
	c := in(s, "acme")
	for n := range subscriptions {
		c.Post(subscriptionsPath, hook(fmt.Sprint("s", n), "https://hr.acme.test", onlyThings)).OK(nil)
	}
	var broken atomic.Bool
	var lists atomic.Int64
	lists.Store(3)
	other := s.Replica(spec(), testkit.Options{
		Engine: func(e docstore.Engine) docstore.Engine { return fragile{e, &broken, &lists} },
	})
	wait.Until(t, func() bool {
		return share(t, other) > 0 && share(t, s)+share(t, other) == subscriptions
	})
	require.Negative(t, lists.Load())
}

// distinct are the ids of the received events.
func distinct(list []received) map[string]bool {
	ids := map[string]bool{}
	for _, r := range list {
		ids[r.Event.ID] = true
	}
	return ids
}

// inOrder checks that the first delivery of each event comes after those of all earlier events of its record.
func inOrder(t testing.TB, list []received) {
	t.Helper()
	newest, seen := map[string]int64{}, map[string]bool{}
	for _, r := range list {
		if seen[r.Event.ID] || r.Status/100 != 2 {
			continue
		}
		seen[r.Event.ID] = true
		sequence, err := strconv.ParseInt(r.Event.Sequence, 10, 64)
		require.NoError(t, err)
		require.Greater(t, sequence, newest[r.Event.Subject], "of record %s", r.Event.Subject)
		newest[r.Event.Subject] = sequence
	}
}

// A subscription over NATS gets its events on its own subject, in a stream that keeps them.
func TestDeliveryOverNATS(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	made := c.Post(subscriptionsPath, object{"name": "n", "event_types": []any{"component.*"},
		"delivery": object{"type": "nats"}}).Object()
	subject := made["delivery"].(object)["subject"].(string)
	require.Equal(t, "idp.subscriptions.acme."+id(made), subject)
	for n := range 50 {
		tell(t, s, "acme", fmt.Sprint(n%3), int64(n+1), "updated")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	stream, err := s.Deps.Bus.JetStream().Stream(ctx, "IDP_SUBSCRIPTIONS")
	require.NoError(t, err)
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	require.NoError(t, err)
	messages, err := consumer.Messages()
	require.NoError(t, err)
	defer messages.Stop()
	var got []received
	for range 50 {
		m, err := messages.Next(jetstream.NextContext(ctx))
		require.NoError(t, err)
		got = append(got, receivedOf(t, m.Data()))
	}
	require.Len(t, distinct(got), 50)
	inOrder(t, got)
	awaitRecord(t, c, one(made), delivered(50))
}

// The audit log has one entry for each change, however many replicas write it.
func TestAuditLogOfReplicas(t *testing.T) {
	t.Parallel()
	s := start(t)
	var broken atomic.Bool
	other := s.Replica(spec(), testkit.Options{
		Engine: func(e docstore.Engine) docstore.Engine { return fragile{Engine: e, broken: &broken} },
	})
	t.Cleanup(func() { broken.Store(false) })
	other.Ready()
	third := replica(t, s)
	for n := range 300 {
		if n == 150 {
			broken.Store(true) // the other replicas take over
		}
		tell(t, s, "acme", "7", int64(n+1), "updated")
	}
	entries := map[any]bool{}
	c := in(third, "acme")
	wait.Until(t, func() bool {
		return c.Get(auditPath + "?page_size=1").Object()["total"].(float64) >= 300
	})
	require.EqualValues(t, 300, c.Get(auditPath + "?page_size=1").Object()["total"])
	for page := 1; page <= 2; page++ {
		for _, event := range c.Items(fmt.Sprintf("%s?page_size=200&page_num=%d", auditPath, page), "event_id") {
			entries[event] = true
		}
	}
	require.Len(t, entries, 300)
}
