package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// webhooks is a receiver of many subscriptions, each with a path of its own.
type webhooks struct {
	*httptest.Server
	mu   sync.Mutex
	got  map[string]map[string]int   // by path and event, how often it was accepted
	last map[string]map[string]int64 // by path and record, the newest sequence
	late []string                    // events that came for the first time after a later one of their record
}

// newWebhooks starts a receiver that refuses half of all requests to paths that begin with /failing.
func newWebhooks(t testing.TB) *webhooks {
	w := &webhooks{got: map[string]map[string]int{}, last: map[string]map[string]int64{}}
	w.Server = httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(w.Close)
	return w
}

func (w *webhooks) receive(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var e struct{ ID, Subject, Sequence string }
	if err != nil || json.Unmarshal(body, &e) != nil || strings.HasPrefix(r.URL.Path, "/failing") && rand.IntN(2) == 0 {
		rw.WriteHeader(http.StatusInternalServerError)
		return
	}
	sequence, _ := strconv.ParseInt(e.Sequence, 10, 64)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.got[r.URL.Path] == nil {
		w.got[r.URL.Path], w.last[r.URL.Path] = map[string]int{}, map[string]int64{}
	}
	if w.got[r.URL.Path][e.ID] == 0 && sequence < w.last[r.URL.Path][e.Subject] {
		w.late = append(w.late, r.URL.Path+" "+e.ID)
	}
	w.got[r.URL.Path][e.ID]++
	w.last[r.URL.Path][e.Subject] = max(w.last[r.URL.Path][e.Subject], sequence)
}

// events is how many different events a path has accepted.
func (w *webhooks) events(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.got[path])
}

const crashTries = "IDP_WEBHOOK_TRIES=200ms,500ms,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s"

// The platform is killed again and again while changes flow to 20 subscriptions, 5 of which fail half of the time:
// each gets every event, in the order of each record, and the audit log has every change once. IDP_CRASH_CHANGES makes
// it larger.
func TestKillNineLosesNoDelivery(t *testing.T) {
	t.Parallel()
	changes := 600
	if text := os.Getenv("IDP_CRASH_CHANGES"); text != "" {
		var err error
		changes, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	const subscriptions, kills = 20, 2
	hooks := newWebhooks(t)
	dir := t.TempDir()
	env := []string{"IDP_OUTBOUND_ALLOW_PRIVATE=true", crashTries}
	c := startPlatform(t, dir, env...)
	token := c.token("--tenant", "acme")
	var paths []string
	for n := range subscriptions {
		path := fmt.Sprintf("/works%d", n)
		if n < 5 {
			path = fmt.Sprintf("/failing%d", n)
		}
		paths = append(paths, path)
		_, err := c.call(http.MethodPost, "/v1/event-subscriptions", token, fmt.Sprintf(
			`{"name":%q,"event_types":["user.*"],"delivery":{"type":"webhook","url":%q}}`, path, hooks.URL+path))
		require.NoError(t, err)
	}
	acknowledged := 0
	for kill := range kills + 1 {
		if kill > 0 {
			c = startPlatform(t, dir, env...)
		}
		enough := func() {}
		if kill < kills {
			enough = c.kill // in the middle of other writers' requests
		}
		acknowledged += c.change(token, fmt.Sprint("round", kill), changes/(kills+1), enough)
	}

	told := feedOf(t, c, token)
	assert.GreaterOrEqual(t, len(told), acknowledged)
	for _, path := range paths {
		require.Eventually(t, func() bool { return hooks.events(path) >= len(told) }, time.Minute, 20*time.Millisecond,
			"%s has %d of %d", path, hooks.events(path), len(told))
	}
	hooks.mu.Lock()
	assert.Empty(t, hooks.late, "in the order of each record")
	for _, path := range paths {
		for id := range told {
			assert.Contains(t, hooks.got[path], id)
		}
	}
	hooks.mu.Unlock()
	audited := auditOf(t, c, token, len(told))
	for id := range told {
		assert.Equal(t, 1, audited[id], "the audit log has %s once", id)
	}
	assert.Len(t, audited, len(told))
	c.stop()
}

// call sends a request. An answer other than 200 is an error.
func (c *child) call(method, path, token, body string) ([]byte, error) {
	r, err := http.NewRequest(method, "http://"+c.Addr+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d: %s", method, path, resp.StatusCode, answer)
	}
	return answer, err
}

// change creates users and changes each four times, calls enough when so many changes are acknowledged, and returns how
// many were.
func (c *child) change(token, prefix string, changes int, enough func()) int {
	var done atomic.Int64
	var once sync.Once
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			for user := 0; int(done.Load()) < changes; user++ {
				answer, err := c.call(http.MethodPost, "/v1/users", token,
					fmt.Sprintf(`{"username":"%s-%d-%d"}`, prefix, n, user))
				if err != nil {
					return
				}
				done.Add(1)
				var made struct{ ID string }
				_ = json.Unmarshal(answer, &made)
				for change := range 4 {
					if _, err := c.call(http.MethodPatch, "/v1/users/"+made.ID, token,
						fmt.Sprintf(`{"display_name":"%d"}`, change)); err == nil {
						done.Add(1)
					}
				}
			}
			once.Do(enough)
		})
	}
	writers.Wait()
	return int(done.Load())
}

// feedOf reads the ids of all events about users, once nothing waits to be published.
func feedOf(t testing.TB, c *child, token string) map[string]bool {
	t.Helper()
	told := map[string]bool{}
	after := ""
	for quiet := 0; quiet < 3; { // an empty page may only mean that the relay has not come so far
		var page struct {
			Items []struct{ ID string }
			Next  string
			More  bool
		}
		fetch(t, c, token, "/v1/events?types=user.*&limit=1000&after="+after, &page)
		for _, e := range page.Items {
			told[e.ID] = true
		}
		if after = page.Next; len(page.Items) > 0 || page.More {
			quiet = 0
			continue
		}
		quiet++
		time.Sleep(200 * time.Millisecond)
	}
	return told
}

// auditOf reads how many entries of the audit log each event about a user has.
func auditOf(t testing.TB, c *child, token string, atLeast int) map[string]int {
	t.Helper()
	var entries map[string]int
	require.Eventually(t, func() bool {
		text, err := c.call(http.MethodGet, "/v1/audit-logs/export?entity=user", token, "")
		if err != nil {
			return false
		}
		entries = map[string]int{}
		for line := range strings.Lines(string(text)) {
			var entry struct {
				EventID string `json:"event_id"`
			}
			if json.Unmarshal([]byte(line), &entry) != nil {
				return false
			}
			entries[entry.EventID]++
		}
		return len(entries) >= atLeast
	}, 30*time.Second, 100*time.Millisecond)
	return entries
}

// The NATS user of a subscription reads its events with its durable consumer, and nothing else.
func TestUserOfASubscription(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	token := c.token("--tenant", "acme")
	var users []natsUser
	for _, name := range []string{"one", "two"} {
		answer, err := c.call(http.MethodPost, "/v1/event-subscriptions", token,
			fmt.Sprintf(`{"name":%q,"event_types":["user.*"],"delivery":{"type":"nats"}}`, name))
		require.NoError(t, err)
		var made natsUser
		require.NoError(t, json.Unmarshal(answer, &made))
		users = append(users, made)
	}
	_, err := c.call(http.MethodPost, "/v1/users", token, `{"username":"li.wei"}`)
	require.NoError(t, err)
	url, err := os.ReadFile(filepath.Join(c.Dir, "nats.url"))
	require.NoError(t, err)
	_, address, _ := strings.Cut(strings.TrimSpace(string(url)), "@")
	for i, user := range users {
		_, err := nats.Connect("nats://"+address, nats.UserInfo(user.Delivery.User, "wrong"))
		require.ErrorIs(t, err, nats.ErrAuthorization)
		refused := make(chan error, 1)
		nc, err := nats.Connect("nats://"+address, nats.UserInfo(user.Delivery.User, user.Delivery.Secret),
			nats.CustomInboxPrefix("_INBOX."+user.ID),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		require.NoError(t, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		consumer, err := js.Consumer(t.Context(), "IDP_SUBSCRIPTIONS", "s-"+user.ID)
		require.NoError(t, err)
		m, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
		require.NoError(t, err)
		assert.Equal(t, user.Delivery.Subject, m.Subject())
		assert.Contains(t, string(m.Data()), "idp.user.created")
		require.NoError(t, m.DoubleAck(t.Context()))

		other := users[1-i]
		_, err = nc.SubscribeSync(other.Delivery.Subject)
		require.NoError(t, err)
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation)
		require.NoError(t, nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.IDP_SUBSCRIPTIONS.s-"+other.ID,
			"_INBOX."+user.ID+".x", nil))
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation)
	}
	c.stop()
}

// natsUser is a subscription over NATS with what its user needs.
type natsUser struct {
	ID       string
	Delivery struct{ Subject, User, Secret string }
}
