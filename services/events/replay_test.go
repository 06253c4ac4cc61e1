package events_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
)

// A replay and another delivery on request reach a subscriber over NATS at any time, also within the time in which
// JetStream recognizes duplicates.
func TestReplaysOverNATSArrive(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	made := c.Post(subscriptionsPath, object{"name": "n", "event_types": []any{"component.*"},
		"delivery": object{"type": "nats"}}).Object()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	tell(t, s, "acme", "1", 1, "created")
	tell(t, s, "acme", "1", 2, "updated")
	awaitRecord(t, c, one(made), delivered(2))
	consumer, err := s.Deps.Bus.JetStream().Consumer(ctx, bus.SubscriptionStream, bus.SubscriptionConsumer(id(made)))
	require.NoError(t, err)
	messages, err := consumer.Messages()
	require.NoError(t, err)
	defer messages.Stop()
	next := func() received {
		m, err := messages.Next(jetstream.NextContext(ctx))
		require.NoError(t, err)
		require.NoError(t, m.Ack())
		return receivedOf(t, m.Data())
	}
	first, second := next(), next()

	for n := range 2 {
		c.Post(one(made)+"/events/"+second.Event.ID+"/redeliver", nil).OK(nil)
		require.Equal(t, second.Event.ID, next().Event.ID)
		awaitRecord(t, c, one(made), delivered(float64(3+n)))
	}
	for range 2 {
		c.Post(one(made)+"/reset", object{"to": first.Event.ID}).OK(nil)
		require.Equal(t, []string{first.Event.ID, second.Event.ID}, []string{next().Event.ID, next().Event.ID})
	}
}

// An event is judged by the filter that holds when it is sent: what waits for another try, and what a changed filter
// excludes, is no longer sent. What a client asks for is.
func TestAChangedFilterHoldsForWaitingEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	hooked, mend := newBroken(t)
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	tell(t, s, "acme", "7", 1, "created")
	tell(t, s, "acme", "8", 1, "created")
	hooked.await(2)
	tell(t, s, "acme", "7", 2, "updated") // it waits for the event before
	awaitRecord(t, c, one(made), func(o object) bool { return o["counters"].(object)["pending"] == 3.0 })

	c.Patch(one(made), object{"filter": `event.subject != "7"`}).OK(nil)
	tell(t, s, "acme", "7", 3, "updated")
	tell(t, s, "acme", "9", 1, "created")
	hooked.await(3) // the worker that tries this one has heard of the change, which came before it
	mend()
	awaitRecord(t, c, one(made), func(o object) bool {
		s.Clock.Advance(time.Second) // again and again: the last try may not have its next time yet
		return delivered(2)(o) && o["counters"].(object)["pending"] == 0.0
	})
	var sent []string
	for _, r := range hooked.all() {
		if r.Status == http.StatusOK {
			sent = append(sent, r.Event.Subject)
		}
	}
	require.ElementsMatch(t, []string{"8", "9"}, sent)

	c.Patch(one(made), object{"filter": `event.subject == "none"`}).OK(nil)
	last := hooked.all()[len(hooked.all())-1]
	c.Post(one(made)+"/events/"+last.Event.ID+"/redeliver", nil).OK(nil)
	awaitRecord(t, c, one(made), delivered(3))
}
