package drive

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// RetryDelays is a schedule of deliveries for tests, for IDP_WEBHOOK_RETRY_DELAYS: receivers that fail half the time
// do not use it up.
var RetryDelays = strings.TrimSuffix(strings.Repeat("200ms,", 20), ",")

// Webhooks is a receiver of many subscriptions, each with a path of its own.
type Webhooks struct {
	*httptest.Server
	client *Client // of the tenant that has the subscriptions
	paths  []string
	ids    []string // of the subscriptions

	mu       sync.Mutex
	got      map[string]map[string]int   // by path and event, how often it was accepted
	last     map[string]map[string]int64 // by path and record, the newest sequence
	late     []string                    // events that came for the first time after a later one of their record
	requests int
}

// NewWebhooks starts a receiver that refuses half of all requests to paths that begin with /failing.
func NewWebhooks(t testing.TB) *Webhooks {
	w := &Webhooks{got: map[string]map[string]int{}, last: map[string]map[string]int64{}}
	w.Server = httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(w.Close)
	return w
}

func (w *Webhooks) receive(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var e struct{ ID, Subject, Sequence string }
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	if err != nil || json.Unmarshal(body, &e) != nil || strings.HasPrefix(r.URL.Path, "/failing") && rand.IntN(2) == 0 {
		rw.WriteHeader(http.StatusInternalServerError)
		return
	}
	sequence, _ := strconv.ParseInt(e.Sequence, 10, 64)
	got, last := w.got[r.URL.Path], w.last[r.URL.Path]
	if got[e.ID] == 0 && sequence < last[e.Subject] {
		w.late = append(w.late, r.URL.Path+" "+e.ID)
	}
	got[e.ID]++
	last[e.Subject] = max(last[e.Subject], sequence)
}

// Subscribe makes subscriptions to all events about users, of which some fail half the time.
func (w *Webhooks) Subscribe(t testing.TB, c *Client, works, failing int) {
	t.Helper()
	w.client = c
	for n := range works + failing {
		path := fmt.Sprintf("/works%d", n)
		if n < failing {
			path = fmt.Sprintf("/failing%d", n)
		}
		w.paths = append(w.paths, path)
		w.mu.Lock()
		w.got[path], w.last[path] = map[string]int{}, map[string]int64{}
		w.mu.Unlock()
		answer, err := c.Do(http.MethodPost, "/v1/event-subscriptions", fmt.Sprintf(
			`{"name":%q,"event_types":["user.*"],"delivery":{"type":"webhook","url":%q}}`, path, w.URL+path))
		require.NoError(t, err)
		var made struct{ ID string }
		require.NoError(t, json.Unmarshal(answer, &made))
		w.ids = append(w.ids, made.ID)
	}
}

// RequireAll waits until each subscription has got each event, and checks the order of each record's.
func (w *Webhooks) RequireAll(t testing.TB, told map[string]bool) {
	t.Helper()
	for i, path := range w.paths {
		w.requireAll(t, w.ids[i], path, told)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Empty(t, w.late, "in the order of each record")
	again := 0
	for _, path := range w.paths {
		for id := range told {
			assert.Contains(t, w.got[path], id)
			again += w.got[path][id] - 1
		}
	}
	t.Logf("%d events to %d subscriptions with %d requests; %d were accepted again",
		len(told), len(w.paths), w.requests, again)
}

func (w *Webhooks) requireAll(t testing.TB, id, path string, told map[string]bool) {
	t.Helper()
	defer func() {
		if !t.Failed() {
			return
		}
		w.mu.Lock()
		t.Logf("%s has %d of %d", path, len(w.got[path]), len(told))
		w.mu.Unlock()
		for _, of := range []string{"", "/events?page_size=20"} {
			answer, err := w.client.Do(http.MethodGet, "/v1/event-subscriptions/"+id+of, "")
			t.Logf("%s %v", answer, err)
		}
	}()
	wait.Reach(t, len(told), func() int { return w.events(path, told) }, "%s has not all %d", path, len(told))
}

// events is how many of some events a path has accepted.
func (w *Webhooks) events(path string, told map[string]bool) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range told {
		if w.got[path][id] > 0 {
			n++
		}
	}
	return n
}
