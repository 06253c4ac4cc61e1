package events_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/events"
)

// The events are a format that other services and clients rely on.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	config := events.DefaultConfig()
	config.Webhook.RetryDelays = nil
	s := startWith(t, config)
	began := s.Clock.Now()
	c := in(s, "acme")
	failing := newReceiver(t, func(received) int { return http.StatusInternalServerError })
	hooked := newReceiver(t, nil)
	tick := func() { s.Clock.Advance(time.Second) }
	made := c.Post(subscriptionsPath, hook("things", "https://hr.acme.test/events", onlyThings)).Object()
	tick()
	c.With("X-Payload-Origin", "console").Patch(one(made), object{"name": "All things"}).OK(nil)
	tick()
	c.Post(one(made)+"/pause", nil).OK(nil)
	tick()
	c.Post(one(made)+"/reset", object{"to": "now", "rotate_secret": true}).OK(nil)
	tick()
	c.Delete(one(made), nil).OK(nil)
	tick()

	made = c.Post(subscriptionsPath, hook("things", failing.URL, onlyThings)).Object()
	tell(t, s, "acme", "7", 1, "created")
	awaitRecord(t, c, one(made), func(o object) bool { return o["state"] == "failing" })
	tick()
	c.Patch(one(made), object{"delivery": object{
		"url": hooked.URL, "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
	}}).OK(nil)
	tick()
	c.Post(one(made)+"/resume", nil).OK(nil)
	got := hooked.await(1)
	awaitRecord(t, c, one(made), delivered(1))
	tick()
	c.Post(one(made)+"/events/"+got[0].Event.ID+"/redeliver", nil).OK(nil)
	hooked.await(2)
	tick()
	hooked.refuse()
	tell(t, s, "acme", "8", 1, "created")
	awaitRecord(t, c, one(made), func(o object) bool { return o["state"] == "disabled" })
	tick()
	letters := retire(t, s, tick)
	s.As("acme", read).Post(subscriptionsPath, object{}).Problem(http.StatusForbidden, "forbidden")
	s.TellDenied()

	told := s.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.access.denied" })
	told = slices.DeleteFunc(told, func(e stream.Event) bool { return strings.HasPrefix(e.Type, "idp.component.") })
	slices.SortStableFunc(told, func(a, b stream.Event) int { return a.Time.Std().Compare(b.Time.Std()) })
	for i := range told { // replace what differs from run to run
		text := strings.ReplaceAll(string(told[i].Data), failing.URL, "http://failing.test")
		text = strings.ReplaceAll(text, hooked.URL, "http://hooked.test")
		for _, letter := range letters {
			text = strings.ReplaceAll(text, letter, "1795413428655447")
			told[i].Subject = strings.ReplaceAll(told[i].Subject, letter, "1795413428655447")
		}
		told[i].Data = []byte(strings.ReplaceAll(text, got[0].Event.ID, "019c1f3e-8a2b-7c4d-9e5f-0123456789ab"))
	}
	types := []string{"access.denied", "dead_letter.replayed", "dead_letter.deleted"}
	for _, action := range strings.Fields("created updated paused reset deleted failing resumed redelivered disabled") {
		types = append(types, "event_subscription."+action)
	}
	testkit.GoldenEvents(t, began, told, types...)
	testkit.EventTypes(t, s, "events", began, told, nil)
}

// refuse makes the receiver answer 410, which ends the deliveries.
func (r *receiver) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func(received) int { return http.StatusGone }
}

// retire replays one dead letter and removes another, and returns their ids.
func retire(t testing.TB, s *testkit.Service, tick func()) (letters []string) {
	t.Helper()
	admin := s.As("acme", auth.PlatformAdmin)
	for n := range 2 {
		park(t, s, "users-a", "7")
		letter := id(admin.Get(deadLettersPath).Object()["items"].([]any)[0].(object))
		if n == 0 {
			admin.Post(deadLettersPath+"/"+letter+"/replay", nil).OK(nil)
		} else {
			admin.Delete(deadLettersPath+"/"+letter, nil).OK(nil)
		}
		letters = append(letters, letter)
		tick()
	}
	return letters
}
