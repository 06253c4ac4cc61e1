package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/drive"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// drill is a platform with writers of all kinds of records that refer to each other.
type drill struct {
	t            *testing.T
	client       *drive.Client
	node, app    string
	acknowledged atomic.Int64
	stop         atomic.Bool
	writers      sync.WaitGroup

	mu         sync.Mutex
	records    []written
	deleted    map[string]bool // users whose deletion was asked for
	unexpected error
	longest    time.Duration
}

// written is a record whose write was acknowledged.
type written struct {
	path, user string
	at         time.Time
}

const drillObjects = "/v1/kv/buckets/drill/objects"

func startDrill(t *testing.T, c *child, hooks *drive.Webhooks) *drill {
	d := &drill{t: t, client: c.client("acme"), deleted: map[string]bool{}}
	hooks.Subscribe(t, d.client, 2, 1)
	d.must("/v1/core-objects", `{"code":"company","name":"Acme"}`)
	d.node = d.must("/v1/tree-nodes", `{"object_code":"company","parent_id":"","name":"Division"}`)
	d.app = d.must("/v1/applications", `{"name":"Mail","category":"1"}`)
	d.must("/v1/resources", fmt.Sprintf(
		`{"application_id":%q,"type":"data","code":"inbox","name":"Inbox","actions":[{"code":"read"}]}`, d.app))
	return d
}

// must makes a record and returns its id.
func (d *drill) must(path, body string) string {
	d.t.Helper()
	id, err := d.make(path, body)
	require.NoError(d.t, err)
	return id
}

func (d *drill) make(path, body string) (string, error) {
	answer, err := d.client.Do(http.MethodPost, path, body)
	if err != nil {
		return "", err
	}
	var made struct{ ID string }
	return made.ID, json.Unmarshal(answer, &made)
}

// write starts writers until stop is set; they fail if any request does.
func (d *drill) write(random *rand.Rand, writers int) {
	for w := range writers {
		random := rand.New(rand.NewPCG(random.Uint64(), 0))
		d.writers.Go(func() {
			for n := 0; !d.stop.Load(); n++ {
				if err := d.person(random, fmt.Sprintf("person-%d-%d", w, n)); err != nil {
					d.mu.Lock()
					d.unexpected = errors.Join(d.unexpected, err)
					d.mu.Unlock()
					return
				}
			}
		})
	}
}

// person makes a user and some records that refer to it, and deletes every fifth user again.
func (d *drill) person(random *rand.Rand, name string) error {
	id, err := d.timed("/v1/users", fmt.Sprintf(`{"username":%q}`, name))
	if err != nil {
		return err
	}
	d.note(written{path: "/v1/users/" + id, user: id})
	steps := []func() error{
		func() error {
			_, err := d.timed("/v1/tree-users", fmt.Sprintf(`{"node_id":%q,"user_id":%q}`, d.node, id))
			return err
		},
		func() error {
			_, err := d.timed("/v1/batch/auth-unit-rules", fmt.Sprintf(
				`{"identities":[{"identity_type":"user","identity_id":%q}],"rules":[{"application_id":%q,`+
					`"type":"data","code":"inbox","actions":["read"]}]}`, id, d.app))
			return err
		},
		func() error {
			account, err := d.timed("/v1/applications/"+d.app+"/accounts",
				fmt.Sprintf(`{"user_id":%q,"account":%q}`, id, name))
			d.note(written{path: "/v1/applications/" + d.app + "/accounts/" + account, user: id})
			return err
		},
		func() error {
			_, err := d.timed(drillObjects, fmt.Sprintf(`{"key":%q,"value":{"user":%q}}`, name, id))
			d.note(written{path: drillObjects + "/" + name})
			return err
		},
		func() error {
			job, err := d.timed("/v1/jobs", fmt.Sprintf(`{"code":%q,"name":"Job","schedule":{"type":"cron",`+
				`"cron":"5 4 15 2 1 *"},"target":{"type":"webhook","url":"https://example.com/"}}`, name))
			d.note(written{path: "/v1/jobs/" + job})
			return err
		},
	}
	random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if random.IntN(5) > 0 {
		return nil
	}
	d.mu.Lock()
	d.deleted[id] = true
	d.mu.Unlock()
	_, err = d.client.Do(http.MethodDelete, "/v1/users/"+id, "")
	return err
}

// timed is make, and notes how long it took.
func (d *drill) timed(path, body string) (string, error) {
	began := time.Now()
	id, err := d.make(path, body)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.longest = max(d.longest, time.Since(began))
	return id, err
}

func (d *drill) note(w written) {
	w.at = time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.records = append(d.records, w)
	d.acknowledged.Add(1)
}

// exists reads a record.
func (d *drill) exists(path string) bool {
	d.t.Helper()
	_, err := d.client.Do(http.MethodGet, path, "")
	if err != nil && strings.Contains(err.Error(), ": 404: ") {
		return false
	}
	require.NoError(d.t, err)
	return true
}

// requireKept checks that everything is there that was acknowledged before a time.
func (d *drill) requireKept(before time.Time) (kept, later int) {
	d.t.Helper()
	for _, r := range d.records {
		there := d.exists(r.path)
		switch {
		case r.at.After(before):
			if there {
				later++
			}
		case !d.deleted[r.user]:
			require.True(d.t, there, "%s was acknowledged before the backup", r.path)
			kept++
		}
	}
	return kept, later
}

// requireWhole checks that all memberships, accounts and grants are of users that exist. Those of a user that was
// deleted just before the backup go as soon as its event comes.
func (d *drill) requireWhole() {
	d.t.Helper()
	const granted = "/v1/auth-check/identities?object_type=data&object_code=inbox&action=read&application_id="
	for path, member := range map[string]string{
		"/v1/tree-nodes/" + d.node + "/users":     "user_id",
		"/v1/applications/" + d.app + "/accounts": "user_id",
		granted + d.app: "identity_id",
	} {
		seen := 0
		for _, item := range d.all(path) {
			user, ok := item[member].(string)
			require.True(d.t, ok, "%s: %v", path, item)
			seen++
			if d.exists("/v1/users/" + user) {
				continue
			}
			wait.Until(d.t, func() bool {
				for _, item := range d.all(path) {
					if item[member] == user {
						return false
					}
				}
				return true
			}, "%s has the user %s, who does not exist", path, user)
		}
		assert.Positive(d.t, seen, path)
	}
}

// all reads all pages of a list.
func (d *drill) all(path string) (items []map[string]any) {
	d.t.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	for next := ""; ; {
		answer, err := d.client.Do(http.MethodGet, path+separator+"page_size=200&page_token="+next, "")
		require.NoError(d.t, err)
		var page struct {
			Items []map[string]any
			Next  string `json:"next_page_token"`
		}
		require.NoError(d.t, json.Unmarshal(answer, &page))
		items = append(items, page.Items...)
		if next = page.Next; next == "" {
			return items
		}
	}
}

// feedEvent is an event of the feed.
type feedEvent struct{ ID, Type, Subject, Sequence string }

// feed reads all events until no more come, and the cursor behind them.
func (d *drill) feed(after string) (events []feedEvent, next string) {
	d.t.Helper()
	for quiet := 0; quiet < 5; time.Sleep(100 * time.Millisecond) {
		answer, err := d.client.Do(http.MethodGet, "/v1/events?limit=1000&after="+after, "")
		require.NoError(d.t, err)
		var page struct {
			Items []feedEvent
			Next  string
		}
		require.NoError(d.t, json.Unmarshal(answer, &page))
		events, after = append(events, page.Items...), page.Next
		if quiet++; len(page.Items) > 0 {
			quiet = 0
		}
	}
	return events, after
}

// requireTold checks that each user has the events of its changes, once each, and that each event's user exists or was
// deleted. It returns the ids of the events about users.
func (d *drill) requireTold() map[string]bool {
	d.t.Helper()
	events, _ := d.feed("")
	ids, told := map[string]bool{}, map[string]bool{}
	created, gone, sequences := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, e := range events {
		require.False(d.t, ids[e.ID], "the event %s %s of %s is in the feed twice", e.ID, e.Type, e.Subject)
		ids[e.ID] = true
		if !strings.HasPrefix(e.Type, "idp.user.") {
			continue
		}
		require.False(d.t, sequences[e.Subject+" "+e.Sequence], "%s of %s is told twice", e.Sequence, e.Subject)
		sequences[e.Subject+" "+e.Sequence] = true
		told[e.ID] = true
		created[e.Subject] = created[e.Subject] || e.Type == "idp.user.created"
		gone[e.Subject] = gone[e.Subject] || e.Type == "idp.user.deleted"
	}
	users := map[string]bool{}
	for _, u := range d.all("/v1/users") {
		users[u["id"].(string)] = true
		require.True(d.t, created[u["id"].(string)], "no event of the user %v", u["id"])
	}
	for id := range created {
		require.Equal(d.t, !gone[id], users[id], "the user %s after its events", id)
	}
	return told
}

// A backup of a platform that is written to, restored into another folder, has everything that was acknowledged before
// it, every reference's record, and every change's event once. IDP_TEST_DRILLS says how often; each has another seed.
func TestRestoreDrill(t *testing.T) {
	t.Parallel()
	drills := 1
	if n, err := strconv.Atoi(os.Getenv("IDP_TEST_DRILLS")); err == nil {
		drills = n
	}
	for seed := range drills {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { restoreDrill(t, uint64(seed)) })
	}
}

func restoreDrill(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	env := []string{"IDP_OUTBOUND_ALLOW_PRIVATE=true", "IDP_WEBHOOK_RETRY_DELAYS=" + drive.RetryDelays}
	hooks := drive.NewWebhooks(t)
	c := startPlatform(t, t.TempDir(), env...)
	d := startDrill(t, c, hooks)
	_, known := d.feed("")
	d.write(random, 4)
	enough := 50 + random.Int64N(200)
	wait.Until(t, func() bool { return d.acknowledged.Load() >= enough })
	dir := filepath.Join(t.TempDir(), "backup")
	began := time.Now()
	said, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "backup", dir)
	took := time.Since(began)
	require.Zero(t, code, notes)
	wait.Until(t, func() bool { return d.acknowledged.Load() >= enough+100 })
	d.stop.Store(true)
	d.writers.Wait()
	require.NoError(t, d.unexpected, "no request fails while a backup is made")
	_, lost := d.feed(known)
	c.kill()

	restored := t.TempDir()
	_, notes, code = runs(t, []string{"IDP_DATA_DIR=" + restored}, "restore", dir)
	require.Zero(t, code, notes)
	out, code := checks(t, restored)
	require.Zero(t, code, out)
	c = startPlatform(t, restored, env...)
	d.client = c.client("acme")
	kept, later := d.requireKept(began)
	told := d.requireTold()
	d.requireWhole()
	d.client.RequireAudited(t, told)
	hooks.RequireAll(t, told)

	_, err := d.client.Do(http.MethodGet, "/v1/events?after="+known, "")
	require.NoError(t, err, "a cursor from before the backup is valid")
	_, err = d.client.Do(http.MethodGet, "/v1/events?after="+lost, "")
	require.ErrorContains(t, err, ": 409: ", "the events before this cursor are lost")
	id, err := d.make("/v1/users", `{"username":"after"}`)
	require.NoError(t, err)
	number, err := strconv.ParseInt(id, 10, 64)
	require.NoError(t, err)
	require.Greater(t, number, int64(1)<<44, "no id is given out twice")
	_, err = d.client.Do(http.MethodGet, "/v1/events?after="+lost, "")
	require.ErrorContains(t, err, ": 409: ")
	c.stop()
	t.Logf("seed %d: %d of %d records before the backup, %d while it was made (%v, slowest write %v): %s", seed, kept,
		len(d.records), later, took.Round(time.Millisecond), d.longest.Round(time.Millisecond), said)
}
