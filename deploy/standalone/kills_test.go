package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// The platform is killed again and again while what its services share is at work: the log of events, which a webhook
// and a function get; the queues of durable work, of runs of jobs and of the function; and changes across services, by
// SCIM. Of what was acknowledged nothing is lost, and no run that must not be repeated is. IDP_TEST_SEED says when the
// kills come.
func TestKillsBySeed(t *testing.T) {
	t.Parallel()
	seed := uint64(1)
	if text := os.Getenv("IDP_TEST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("IDP_TEST_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it must be repeatable
	k := &kills{t: t, heard: map[string]map[string]int{}, acknowledged: map[string]map[string]bool{}}
	k.receiver = httptest.NewServer(http.HandlerFunc(k.hear))
	t.Cleanup(k.receiver.Close)
	dir := t.TempDir()
	env := []string{
		"IDP_OUTBOUND_ALLOW_PRIVATE=true", "IDP_WEBHOOK_RETRY_DELAYS=1s,1s,1s,1s,1s",
		"IDP_PUBLIC_URL=http://127.0.0.1:8080", // otherwise it is another one after each start
	}
	k.c = startPlatform(t, dir, env...)
	k.setUp()
	for round := range rounds.Of(2, 100) {
		if round > 0 {
			k.c = startPlatform(t, dir, env...)
		}
		k.work(round, time.Duration(random.Int64N(int64(300*time.Millisecond))))
	}
	k.c = startPlatform(t, dir, env...)
	k.requireAll()
	k.c.stop()
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + dir}, "check")
	require.Equal(t, 0, code, notes)
}

// failures are answers that a client never gets, whatever happens to the platform.
var failures = regexp.MustCompile(`\b(400|401|403|500): `)

// kills is a platform that is killed, and what its clients and receivers know.
type kills struct {
	t        *testing.T
	c        *child
	admin    string
	scim     scimClient
	receiver *httptest.Server
	group    string
	jobs     map[string]string // ids by code

	mu           sync.Mutex
	heard        map[string]map[string]int  // how often a receiver has heard of an id
	acknowledged map[string]map[string]bool // ids by what was done
}

// hear is the receivers: /webhook gets events, /function ids of users, /once and /again runs of the jobs.
func (k *kills) hear(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the platform was killed
	}
	id := string(body)
	if r.URL.Path != "/function" {
		var got struct {
			Subject  string
			SubJobID string `json:"sub_job_id"`
		}
		if err := json.Unmarshal(body, &got); err != nil {
			k.t.Error(err)
		}
		id = got.Subject + got.SubJobID
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.heard[r.URL.Path] == nil {
		k.heard[r.URL.Path] = map[string]int{}
	}
	k.heard[r.URL.Path][id]++
}

func (k *kills) call(client *http.Client, method, path string, body, into any) error {
	return call(client, k.c, k.admin, method, path, body, into)
}

func (k *kills) setUp() {
	type object = map[string]any
	k.admin = k.c.token("--tenant", "acme")
	k.scim = connectSCIM(k.t, k.c, k.admin, `{"name":"Okta","object_code":"okta"}`)
	k.group = k.scim.want(k.t, 201, "POST", "/Groups", `{"displayName":"Everybody"}`)["id"].(string)
	post := func(path string, body object) (id string) {
		var made struct{ ID string }
		require.NoError(k.t, k.call(http.DefaultClient, http.MethodPost, path, body, &made))
		return made.ID
	}
	post("/v1/event-subscriptions", object{
		"name": "all", "event_types": []string{"user.created"},
		"delivery": object{"type": "webhook", "url": k.receiver.URL + "/webhook"},
	})
	post("/v1/functions", object{
		"code": "tell", "name": "Tell", "env": object{"HOOK": k.receiver.URL + "/function"},
		"source":        `async function main(e, {env}) { await fetch(env.HOOK, {method: "POST", body: e.subject}) }`,
		"triggers":      []object{{"event_types": []string{"user.created"}}},
		"allowed_hosts": []string{strings.TrimPrefix(k.receiver.URL, "http://")},
	})
	k.jobs = map[string]string{}
	for code, retries := range map[string]int{"once": 0, "again": 20} {
		k.jobs[code] = post("/v1/jobs", object{
			"code": code, "name": code, "schedule": object{"type": "manual"},
			"retry":  object{"max": retries, "backoff_seconds": 1},
			"target": object{"type": "webhook", "url": k.receiver.URL + "/" + code},
		})
	}
}

// work has clients write, and kills the platform some time after each of them has had an answer.
func (k *kills) work(round int, after time.Duration) {
	var answered, writers sync.WaitGroup
	writer := func(what string, do func(client *http.Client, n int) (id string, err error)) {
		answered.Add(1)
		writers.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for n := 0; ; n++ {
				id, err := do(client, n)
				if n == 0 {
					answered.Done()
				}
				if err != nil {
					if failures.MatchString(err.Error()) {
						logs, _ := os.ReadFile(k.c.logs)
						k.t.Errorf("round %d: %s: %v\n%s", round, what, err, logs)
					}
					return
				}
				k.mu.Lock()
				if k.acknowledged[what] == nil {
					k.acknowledged[what] = map[string]bool{}
				}
				k.acknowledged[what][id] = true
				k.mu.Unlock()
			}
		})
	}
	writer("users", func(client *http.Client, n int) (string, error) {
		return create(client, k.c.Addr, k.admin, fmt.Sprintf("r%d.n%d", round, n))
	})
	for code, job := range k.jobs {
		writer(code, func(client *http.Client, _ int) (string, error) {
			var run struct{ ID string }
			err := k.call(client, http.MethodPost, "/v1/jobs/"+job+"/trigger", map[string]any{}, &run)
			return run.ID, err
		})
	}
	writer("members", func(client *http.Client, n int) (string, error) {
		s := scimClient{k.c, k.scim.token, client}
		status, user, err := s.do("POST", "/Users", fmt.Sprintf(`{"userName":"s%d.n%d","externalId":"s%d.n%d"}`,
			round, n, round, n))
		if err != nil || status != http.StatusCreated {
			return "", fmt.Errorf("%d: %v: %w", status, user, err)
		}
		id, _ := user["id"].(string)
		status, _, err = s.do("PATCH", "/Groups/"+k.group,
			`{"Operations":[{"op":"add","path":"members","value":[{"value":"`+id+`"}]}]}`)
		if err == nil && status != http.StatusOK && status != http.StatusNoContent {
			err = fmt.Errorf("the status of the group's change is %d", status)
		}
		return id, err
	})
	answered.Wait()
	time.Sleep(after) // the moment of the kill
	k.c.kill()
	writers.Wait()
}

// times is how often a receiver has heard of an id.
func (k *kills) times(receiver, id string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heard[receiver][id]
}

// requireAll waits until everything that was acknowledged is done.
func (k *kills) requireAll() {
	k.t.Helper()
	for what, ids := range k.acknowledged {
		require.NotEmpty(k.t, ids, what)
		k.t.Logf("acknowledged %s: %d", what, len(ids))
	}
	for _, receiver := range []string{"/webhook", "/function"} {
		for _, what := range []string{"users", "members"} {
			for id := range k.acknowledged[what] {
				wait.Until(k.t, func() bool { return k.times(receiver, id) > 0 }, receiver+" has not heard of "+id)
			}
		}
	}
	for code := range k.jobs {
		k.requireRuns(code)
	}
	k.requireMembers()
}

// requireRuns waits until all runs of a job have ended. Of those that have, the job keeps 100.
func (k *kills) requireRuns(code string) {
	k.t.Helper()
	for id := range k.acknowledged[code] {
		var run struct{ State, Error string }
		wait.Until(k.t, func() bool {
			err := k.call(http.DefaultClient, http.MethodGet, path.Join("/v1/jobs", k.jobs[code], "sub-jobs", id), nil,
				&run)
			return err != nil || slices.Contains([]string{"succeeded", "failed"}, run.State)
		}, "the run "+id+" has not ended")
		if code == "once" {
			assert.LessOrEqual(k.t, k.times("/once", id), 1, "the run was repeated")
			continue
		}
		assert.NotEqual(k.t, "failed", run.State, run.Error)
		assert.Positive(k.t, k.times("/again", id))
	}
}

// requireMembers compares the members of the group by SCIM and in the organization.
func (k *kills) requireMembers() {
	k.t.Helper()
	for id := range k.acknowledged["members"] {
		var memberships []struct {
			NodeID string `json:"node_id"`
		}
		path := "/v1/tree-users?user_id=" + id
		require.NoError(k.t, k.call(http.DefaultClient, http.MethodGet, path, nil, &memberships))
		require.Len(k.t, memberships, 1)
		require.Equal(k.t, k.group, memberships[0].NodeID)
	}
	var all struct{ Total int }
	require.NoError(k.t, k.call(http.DefaultClient, http.MethodGet, "/v1/tree-nodes/"+k.group+"/users?page_size=1", nil,
		&all))
	s := scimClient{k.c, k.scim.token, k.scim.http}
	group := s.want(k.t, 200, "GET", "/Groups/"+k.group, "")
	require.Len(k.t, group["members"], all.Total)
}
