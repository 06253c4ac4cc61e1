package events_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/events"
)

// patient is how long a test waits at most.
const patient = wait.Long // how long a test waits for what must happen

// receiver receives webhooks and records the requests.
type receiver struct {
	retryAfter string // in seconds, "" for none
	*httptest.Server
	t  testing.TB
	mu sync.Mutex

	got    []received
	answer func(received) int // the status of an answer; nil means 200
}

// received is a request that a receiver got.
type received struct {
	Header http.Header
	Body   []byte
	Event  struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Subject  string `json:"subject"`
		Sequence string `json:"sequence"`
	}
	Status int
}

// receivedOf is an event that came without an HTTP request.
func receivedOf(t testing.TB, body []byte) (r received) {
	r.Body, r.Status = body, http.StatusOK
	require.NoError(t, json.Unmarshal(body, &r.Event))
	return r
}

func newReceiver(t testing.TB, answer func(received) int) *receiver {
	r := &receiver{t: t, answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(r.receive))
	t.Cleanup(r.Close)
	return r
}

// newBroken makes a receiver that answers 503 until mend is called.
func newBroken(t testing.TB) (r *receiver, mend func()) {
	var mended atomic.Bool
	r = newReceiver(t, func(received) int {
		if mended.Load() {
			return http.StatusOK
		}
		return http.StatusServiceUnavailable
	})
	return r, func() { mended.Store(true) }
}

func (r *receiver) receive(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender gave up
	}
	got := received{Header: request.Header.Clone(), Body: body, Status: http.StatusOK}
	if err := json.Unmarshal(body, &got.Event); err != nil {
		r.t.Errorf("not an event: %s", body)
	}
	r.mu.Lock()
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		got.Status = answer(got)
	}
	r.mu.Lock()
	r.got = append(r.got, got)
	r.mu.Unlock()
	if r.retryAfter != "" {
		w.Header().Set("Retry-After", r.retryAfter)
	}
	w.WriteHeader(got.Status)
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// await waits for n requests.
func (r *receiver) await(n int) []received {
	r.t.Helper()
	wait.Until(r.t, func() bool { return len(r.all()) >= n })
	return r.all()
}

// things are records whose changes the tests emit.
var things = outbox.Kind{Entity: "component", Source: "/things"}

// tell emits a change of a record, as a service would. The revision grows with each call for a record.
func tell(t testing.TB, s *testkit.Service, tenant, record string, revision int64, action string) {
	t.Helper()
	ctx := request.With(context.Background(), request.Info{ID: "request-1", Tenant: tenant, Actor: "ann"})
	require.NoError(t, docstore.Do(ctx, s.Deps.Store, func(tx *docstore.Tx) error {
		return outbox.Append(ctx, tx, outbox.Event{
			Entity: things.Entity, Action: action, Source: things.Source, Subject: record, Revision: revision,
			Record: json.RawMessage(
				fmt.Sprintf(`{"id":%q,"name":"new","secret":"******","version":%d}`, record, revision)),
			Previous: map[string]json.RawMessage{"name": json.RawMessage(`"old"`)},
		})
	}))
}

// onlyThings makes a subscription get the events of tell only.
var onlyThings = object{"event_types": []any{"component.*"}}

// awaitRecord waits until the record of a subscription is as wanted, and returns it.
func awaitRecord(t testing.TB, c *testkit.Client, path string, wanted func(object) bool) object {
	t.Helper()
	var last object
	wait.Until(t, func() bool { last = c.Get(path).Object(); return wanted(last) }, "%v", last)
	return last
}

// delivered reports that a subscription has delivered n events.
func delivered(n float64) func(object) bool {
	return func(o object) bool { return o["counters"].(object)["delivered"] == n }
}

func TestWebhookGetsTheEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	hooked := newReceiver(t, nil)
	const given = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings, object{
		"filter": `event.subject != "9"`,
		"delivery": object{"type": "webhook", "url": hooked.URL + "/in", "headers": object{"X-Api-Key": "key-1",
			"Authorization": "Basic eA=="}, "secret": given},
	})).Object()
	tell(t, s, "acme", "9", 1, "created")
	tell(t, s, "globex", "8", 1, "created")
	tell(t, s, "acme", "7", 1, "created")
	tell(t, s, "acme", "7", 2, "updated")
	got := hooked.await(2)
	require.Len(t, got, 2, "events of other tenants, of other types, or that the filter does not select are not "+
		"delivered")
	for i, want := range []string{"idp.component.created", "idp.component.updated"} {
		require.Equal(t, want, got[i].Event.Type)
		require.Equal(t, "7", got[i].Event.Subject)
		require.Equal(t, got[i].Event.ID, got[i].Header.Get("Webhook-Id"))
		require.Equal(t, "key-1", got[i].Header.Get("X-Api-Key"))
		require.Equal(t, "Basic eA==", got[i].Header.Get("Authorization"))
		require.Equal(t, "application/cloudevents+json; charset=utf-8", got[i].Header.Get("Content-Type"))
		verify(t, got[i], given)
	}
	shown := awaitRecord(t, c, one(made), delivered(2))
	require.Equal(t, "active", shown["state"])
	require.Equal(t, "******", shown["delivery"].(object)["secret"])
	require.Equal(t, object{"X-Api-Key": "******", "Authorization": "******"}, shown["delivery"].(object)["headers"])

	list := c.Get(one(made) + "/events").Object()
	require.EqualValues(t, 2, list["total"])
	newest := list["items"].([]any)[0].(object)
	require.Equal(t, []any{"idp.component.updated", "delivered", 1.0, 200.0},
		[]any{newest["event_type"], newest["status"], newest["tries"], newest["response_code"]})
	in(s, "globex").Get(one(made)+"/events").Problem(http.StatusNotFound, "not_found")
}

// An event that fails is tried again. Later events of its record wait for it, those of other records do not.
func TestFailuresHoldUpOnlyTheirRecord(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	var broken sync.Map
	broken.Store("7", true)
	hooked := newReceiver(t, func(r received) int {
		if _, fails := broken.Load(r.Event.Subject); fails {
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	})
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	tell(t, s, "acme", "7", 1, "created")
	hooked.await(1)
	tell(t, s, "acme", "7", 2, "updated")
	tell(t, s, "acme", "8", 1, "created")
	tell(t, s, "acme", "8", 2, "updated")
	hooked.await(3)
	shown := awaitRecord(t, c, one(made), func(o object) bool {
		return delivered(2)(o) && o["counters"].(object)["pending"] == 2.0
	})
	require.EqualValues(t, 1, shown["counters"].(object)["failed"])
	require.Contains(t, shown["last_error"], "the receiver answered 503")
	list := c.Get(one(made) + "/events").Object()["items"].([]any)
	statuses := map[string]int{}
	for _, item := range list {
		statuses[item.(object)["status"].(string)]++
	}
	require.Equal(t, map[string]int{"delivered": 2, "retrying": 1, "held": 1}, statuses)
	require.EqualValues(t, 1, c.Get(one(made) + "/events?status=held").Object()["total"])

	broken.Delete("7")
	s.Clock.Advance(6 * time.Second)
	got := hooked.await(5)
	var order []string
	for _, r := range got {
		if r.Event.Subject == "7" && r.Status == http.StatusNoContent {
			order = append(order, r.Event.Type)
		}
	}
	require.Equal(t, []string{"idp.component.created", "idp.component.updated"}, order)
	awaitRecord(t, c, one(made), func(o object) bool {
		return delivered(4)(o) && o["counters"].(object)["pending"] == 0.0
	})
}

// A receiver that asks for a pause gets it, even if the next try would come sooner.
func TestReceiversAskForAPause(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	hooked, mend := newBroken(t)
	hooked.retryAfter = "600"
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	began := s.Clock.Now()
	tell(t, s, "acme", "7", 1, "created")
	hooked.await(1)
	awaitRecord(t, c, one(made), func(o object) bool { return o["counters"].(object)["failed"] == 1.0 })
	waits := c.Get(one(made) + "/events").Object()["items"].([]any)[0].(object)
	require.Equal(t, began.Add(10*time.Minute).String(), waits["next_try"])
	mend()
	s.Clock.Advance(11 * time.Minute)
	awaitRecord(t, c, one(made), delivered(1))
	require.Len(t, hooked.all(), 2)
}

// When an event has used up its tries, the subscription is failing. Resume starts the tries again.
func TestSubscriptionFailsAndIsResumed(t *testing.T) {
	t.Parallel()
	config := events.DefaultConfig()
	config.Webhook.RetryDelays = []string{"5s", "5m"}
	s := startWith(t, config)
	c := in(s, "acme")
	fixed := make(chan struct{})
	hooked := newReceiver(t, func(received) int {
		select {
		case <-fixed:
			return http.StatusOK
		default:
			return http.StatusInternalServerError
		}
	})
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	tell(t, s, "acme", "7", 1, "created")
	for n := 1; n <= 3; n++ {
		hooked.await(n)
		awaitRecord(t, c, one(made), func(o object) bool { return o["counters"].(object)["failed"] == float64(n) })
		s.Clock.Advance(6 * time.Minute)
	}
	failing := awaitRecord(t, c, one(made), func(o object) bool { return o["state"] == "failing" })
	require.Equal(t, "0", failing["status"])
	tell(t, s, "acme", "8", 1, "created") // delivered only after resume

	close(fixed)
	require.Equal(t, "active", c.Post(one(made)+"/resume", nil).Object()["state"])
	awaitRecord(t, c, one(made), delivered(2))
	require.Len(t, hooked.all(), 5)
}

func TestGoneDisables(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	hooked := newReceiver(t, func(received) int { return http.StatusGone })
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	tell(t, s, "acme", "7", 1, "created")
	awaitRecord(t, c, one(made), func(o object) bool { return o["state"] == "disabled" && o["status"] == "0" })
	c.Post(one(made)+"/pause", nil).Problem(http.StatusConflict, "invalid_state")
	require.Equal(t, "active", c.Post(one(made)+"/reset", object{}).Object()["state"])
}

// Receivers that do not answer do not delay other subscriptions.
func TestSlowReceiversHoldUpNobody(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	release := make(chan struct{})
	hanging := newReceiver(t, func(received) int { <-release; return http.StatusOK })
	defer close(release)
	fast := newReceiver(t, nil)
	for n := range 5 {
		c.Post(subscriptionsPath, hook(fmt.Sprint("hanging ", n), hanging.URL, onlyThings)).OK(nil)
	}
	made := c.Post(subscriptionsPath, hook("fast", fast.URL, onlyThings)).Object()
	for n := range 200 {
		tell(t, s, "acme", fmt.Sprint(n), 1, "created")
	}
	fast.await(200)
	awaitRecord(t, c, one(made), delivered(200))
}

func TestResetReplays(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	hooked := newReceiver(t, nil)
	tell(t, s, "acme", "1", 1, "created")
	tell(t, s, "acme", "2", 1, "created")
	awaitFeed(t, c, 2)
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	// A delivery that is not yet saved when the subscription changes may be repeated: each step waits for the last one.
	settled := func(n int) []received {
		t.Helper()
		awaitRecord(t, c, one(made), delivered(float64(n)))
		return hooked.await(n)
	}
	tell(t, s, "acme", "3", 1, "created")
	first := settled(1)[0]
	require.Equal(t, "3", first.Event.Subject, "a new subscription gets only later events")

	c.Post(one(made)+"/reset", object{"to": "2020-01-01"}).OK(nil)
	got := settled(4)
	require.ElementsMatch(t, []string{"3", "1", "2", "3"}, subjects(got))

	c.Post(one(made)+"/reset", object{"to": first.Event.ID}).OK(nil)
	got = settled(5)
	require.Equal(t, "3", got[4].Event.Subject)

	rotated := c.Post(one(made)+"/reset", object{"to": "now", "rotate_secret": true}).Object()
	tell(t, s, "acme", "4", 1, "created")
	got = settled(6)
	require.Equal(t, "4", got[5].Event.Subject)
	fresh := rotated["delivery"].(object)["secret"].(string)
	require.NotEqual(t, made["delivery"].(object)["secret"], fresh)
	verify(t, got[5], fresh)
	verify(t, got[5], made["delivery"].(object)["secret"].(string))

	c.Post(one(made)+"/pause", nil).OK(nil)
	tell(t, s, "acme", "5", 1, "created")
	rotated = c.Post(one(made)+"/reset", object{"rotate_secret": true}).Object()
	require.Equal(t, "paused", rotated["state"])
	c.Post(one(made)+"/resume", nil).OK(nil)
	got = settled(7)
	require.Equal(t, "5", got[6].Event.Subject, "a new secret alone loses no event")
	verify(t, got[6], rotated["delivery"].(object)["secret"].(string))
	verify(t, got[6], fresh)
	for _, to := range []string{"yesterday", "019c1f3e-8a2b-7c4d-9e5f-0123456789ab"} {
		c.Post(one(made)+"/reset", object{"to": to}).Problem(http.StatusBadRequest, "invalid_parameters", "body.to")
	}
}

// awaitFeed waits until the tenant's feed has n events.
func awaitFeed(t testing.TB, c *testkit.Client, n int) {
	t.Helper()
	wait.Until(t, func() bool {
		return len(c.Get("/v1/events?limit=1000").Object()["items"].([]any)) >= n
	})
}

func subjects(list []received) (all []string) {
	for _, r := range list {
		all = append(all, r.Event.Subject)
	}
	return all
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	hooked := newReceiver(t, nil)
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	tell(t, s, "acme", "7", 1, "created")
	got := hooked.await(1)
	awaitRecord(t, c, one(made), delivered(1))
	again := c.Post(one(made)+"/events/"+got[0].Event.ID+"/redeliver", nil).Object()
	require.Equal(t, "retrying", again["status"])
	got = hooked.await(2)
	require.Equal(t, got[0].Event.ID, got[1].Event.ID)
	awaitRecord(t, c, one(made), delivered(2))
	c.Post(one(made)+"/events/none/redeliver", nil).Problem(http.StatusNotFound, "not_found")
	c.Post(one(made)+"/pause", nil).OK(nil)
	c.Post(one(made)+"/events/"+got[0].Event.ID+"/redeliver", nil).Problem(http.StatusConflict, "invalid_state")
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	hooked := newReceiver(t, nil)
	made := c.Post(subscriptionsPath, hook("things", hooked.URL, onlyThings)).Object()
	paused := c.Post(one(made)+"/pause", nil).Object()
	require.Equal(t, []any{"paused", "0"}, []any{paused["state"], paused["status"]})
	tell(t, s, "acme", "7", 1, "created")
	s.Events(3)
	require.Equal(t, object{"delivered": true, "response_code": 200.0, "duration_ms": 0.0, "error": ""},
		withoutDuration(c.Post(one(made)+"/test", nil).Object()))
	require.Equal(t, "idp.subscription.test", hooked.await(1)[0].Event.Type)
	c.Post(one(made)+"/resume", nil).OK(nil)
	require.Equal(t, "7", hooked.await(2)[1].Event.Subject, "events since the pause are delivered")
	require.Len(t, hooked.all(), 2)
}

// withoutDuration sets the duration, which differs from run to run, to 0.
func withoutDuration(result object) object {
	result["duration_ms"] = 0.0
	return result
}
