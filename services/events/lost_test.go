package events_test

import (
	"net/http"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// A delivery that waits is of one event. If the stream is made anew and has another event at its place, that one is not
// taken for it, not even if its places start again.
func TestWaitingDeliveriesOfALostStream(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	hooked, mend := newBroken(t)
	js := s.Deps.Bus.JetStream()
	stream, err := js.Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	tell(t, s, "acme", "7", 1, "created")
	lost := hooked.await(1)[0].Event.ID
	awaitRecord(t, c, one(made), func(o object) bool { return o["counters"].(object)["pending"] == 1.0 })
	list := c.Get(one(made) + "/events?status=retrying").Object()["items"].([]any)
	require.Len(t, list, 1)

	require.NoError(t, js.DeleteStream(t.Context(), bus.EventStream))
	_, err = js.CreateStream(t.Context(), config)
	require.NoError(t, err)
	s.NATS.Stop()
	s.NATS.Start()
	mend()
	for n := range 3 {
		tell(t, s, "acme", "7", int64(n+2), "updated")
		tell(t, s, "acme", "8", int64(n+1), "updated")
	}
	awaitRecord(t, c, one(made), func(o object) bool {
		s.Clock.Advance(1e8) // what NATS's absence has postponed is due, too
		return delivered(6)(o) && o["counters"].(object)["pending"] == 0.0
	})
	got := hooked.all()
	require.Len(t, distinct(got), 7)
	inOrder(t, got)
	for _, r := range got[1:] {
		require.NotEqual(t, lost, r.Event.ID)
	}
	failed := c.Get(one(made) + "/events?status=failed").Object()["items"].([]any)
	require.Len(t, failed, 1)
	require.Equal(t, []any{lost, "the event is no longer kept"},
		[]any{failed[0].(object)["event_id"], failed[0].(object)["error"]})
	require.Contains(t, c.Get(one(made)).Object()["last_error"], "no longer kept")
}

// A server that lost its newest events gives their places to others. Those are delivered, and have audit log entries.
func TestEventsAtThePlacesOfLostOnes(t *testing.T) {
	t.Parallel()
	for name, records := range map[string][]string{
		"fewer than were lost": {"5", "6"}, "more than were lost": {"5", "6", "7", "8", "9", "10", "11", "12"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eventsAtThePlacesOfLostOnes(t, records)
		})
	}
}

func eventsAtThePlacesOfLostOnes(t *testing.T, records []string) {
	s := start(t)
	c := in(s, "acme")
	hooked := newReceiver(t, nil)
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	tell(t, s, "acme", "1", 1, "created")
	awaitRecord(t, c, one(made), delivered(1))
	before := s.NATS.Copy()
	for _, record := range []string{"2", "3", "4"} {
		tell(t, s, "acme", record, 1, "created")
	}
	awaitRecord(t, c, one(made), delivered(4))
	audited := func(n float64) {
		wait.Until(t, func() bool { return c.Get(auditPath + "?entity=component").Object()["total"] == n })
	}
	audited(4)

	s.NATS.Restore(before)
	for _, record := range records {
		tell(t, s, "acme", record, 1, "created")
	}
	all := 4 + len(records)
	wait.Until(t, func() bool { return len(distinct(hooked.all())) == all })
	audited(float64(all))
}

// The places of a stream that is made anew are greater than those of the lost one.
func TestPlacesNeverComeTwice(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := s.Deps.Bus.JetStream()
	tell(t, s, "acme", "1", 1, "created")
	s.Events(1)
	for _, name := range []string{bus.EventStream, bus.SubscriptionStream, bus.DeadLetterStream} {
		stream, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		last := stream.CachedInfo().State.LastSeq
		require.NoError(t, js.DeleteStream(t.Context(), name))
		s.NATS.Stop()
		s.NATS.Start()
		var again jetstream.Stream
		wait.Until(t, func() bool { again, err = js.Stream(t.Context(), name); return err == nil })
		require.Greater(t, again.CachedInfo().State.FirstSeq, last)
	}
}

// A cursor of an event that the server lost is refused if another event has its place: the client learns from where on
// it misses nothing.
func TestCursorsOfLostEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	tell(t, s, "acme", "1", 1, "created")
	awaitFeed(t, c, 1)
	kept := c.Get("/v1/events").Object()["next"].(string)
	before := s.NATS.Copy()
	for _, record := range []string{"2", "3", "4"} {
		tell(t, s, "acme", record, 1, "created")
	}
	arrived := func(n int) bool { // NATS was away
		answer := c.Get("/v1/events?after=" + kept)
		return answer.Status == http.StatusOK && len(answer.Object()["items"].([]any)) == n
	}
	wait.Until(t, func() bool { return arrived(3) })
	lost := c.Get("/v1/events").Object()["next"].(string)
	c.Get("/v1/events?after=" + lost).OK(nil)

	s.NATS.Restore(before)
	again := []any{"5", "6", "7", "8"}
	for _, record := range again {
		tell(t, s, "acme", record.(string), 1, "created")
	}
	wait.Until(t, func() bool { return arrived(len(again)) })
	next := continues(t, c.Get("/v1/events?after="+lost))
	require.Equal(t, append([]any{"1"}, again...), recordsOf(c.Get("/v1/events?after="+next)))
	require.Equal(t, again, recordsOf(in(replica(t, s), "acme").Get("/v1/events?after="+kept)))
	c.Get("/v1/events?after="+lost+"x").Problem(http.StatusBadRequest, "invalid_parameters", "query.after")
}

// A replica that has not seen the newest events yet takes their places for what they are: neither a client that another
// replica gave a cursor, nor a subscription that it handed over, begins from the oldest event.
func TestAReplicaThatIsBehind(t *testing.T) {
	t.Parallel()
	s := start(t)
	behind, err := stream.New(stream.Config{Bus: s.Deps.Bus, Log: s.Deps.Log})
	require.NoError(t, err)
	require.NoError(t, behind.Await(t.Context()))
	began, epoch, err := behind.End()
	require.NoError(t, err)
	tell(t, s, "acme", "1", 1, "created")
	end := began + 1
	wait.Until(t, func() bool { last, _, _ := behind.End(); return last == end })
	behind.Close()
	tell(t, s, "acme", "2", 1, "created")
	events := s.Events(2)
	newest := events[1]

	ctx := request.System(t.Context(), "acme")
	var at uint64
	wait.Until(t, func() bool {
		cursor := stream.Cursor(epoch, end+1, newest.ID)
		at, err = behind.Start(ctx, cursor)
		return err == nil
	})
	require.Equal(t, end+1, at)
	at, err = behind.Back(ctx, stream.Mark{Epoch: epoch, Place: end + 1, Event: newest.ID})
	require.NoError(t, err)
	require.Equal(t, end+1, at)
	_, err = behind.Find(ctx, "acme", stream.Cursor(epoch, end+1, newest.ID), newest.ID)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "it is there, and not lost")

	_, err = behind.Start(ctx, stream.Cursor(epoch, end+2, ""))
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err), "the stream does not have that")
	found, err := behind.Find(ctx, "acme", stream.Cursor(epoch, end+2, ""), newest.ID)
	require.NoError(t, err)
	require.Nil(t, found)
}
