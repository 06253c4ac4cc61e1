package events_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// The status is an editable member: PUT and PATCH pause and resume a subscription, and the state follows.
func TestStatusPausesAndResumes(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	hooked := newReceiver(t, func(received) int { return http.StatusGone })
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	state := func(o object) []any { return []any{o["status"], o["state"]} }
	require.Equal(t, []any{"0", "paused"}, state(c.Patch(one(made), object{"status": "0"}).Object()))
	shown := c.Get(one(made)).Object()
	require.Equal(t, []any{"0", "paused"}, state(c.Do(http.MethodPut, one(made), shown).Object()))
	shown["status"] = "1"
	require.Equal(t, []any{"1", "active"}, state(c.Do(http.MethodPut, one(made), shown).Object()))
	require.Equal(t, []any{"1", "active"}, state(c.Patch(one(made), object{"name": "other"}).Object()))
	c.Patch(one(made), object{"status": "2"}).Problem(http.StatusBadRequest, "invalid_parameters", "body.status")

	tell(t, s, "acme", "7", 1, "created")
	awaitRecord(t, c, one(made), func(o object) bool { return o["state"] == "disabled" })
	require.Equal(t, []any{"0", "disabled"}, state(c.Patch(one(made), object{"name": "still"}).Object()),
		"a change of another member changes no state")
	require.Equal(t, []any{"1", "active"}, state(c.Patch(one(made), object{"status": "1"}).Object()))
}

// The trace of a request stands in its events, without a collector of traces, too.
func TestTraceParentReachesEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c := in(s, "acme").With("Traceparent", trace)
	c.Post(subscriptionsPath, hook("things", "https://hr.acme.test")).OK(nil)
	require.Equal(t, trace, s.Events(1)[0].TraceParent)
}

// Page tokens of deliveries belong to their list, like all others.
func TestPageTokensOfDeliveries(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	hooked := newReceiver(t, nil)
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	other := c.Post(subscriptionsPath, hook("others", hooked.URL, onlyThings)).Object()
	for n := range 5 {
		tell(t, s, "acme", "7", int64(n+1), "updated")
	}
	awaitRecord(t, c, one(made), delivered(5))
	list := one(made) + "/events?page_size=2"
	first := c.Get(list).Object()
	token := first["next_page_token"].(string)
	walked := len(first["items"].([]any))
	for next := token; next != ""; {
		page := c.Get(list + "&page_token=" + next).Object()
		walked += len(page["items"].([]any))
		next, _ = page["next_page_token"].(string)
	}
	require.Equal(t, 5, walked)
	for _, path := range []string{list + "&status=delivered", one(other) + "/events?page_size=2"} {
		c.Get(path+"&page_token="+token).Problem(http.StatusBadRequest, "invalid_parameters", "query.page_token")
	}
	c.Get(list+"&page_token=1").Problem(http.StatusBadRequest, "invalid_parameters", "query.page_token")
}
