//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/testkit/drive"
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

// creation is an operation that makes a record.
type creation struct {
	entity string // in events
	path   string
	body   string // with %q for the record's name
	query  string // of the record's own path, with %s for its name
}

// creations has one for each service but sign-in, whose records are made by people at its pages.
var creations = map[string]creation{
	gateway.Users:           {"user", "/v1/users", `{"username":%q}`, ""},
	gateway.Applications:    {"application", "/v1/applications", `{"name":%q}`, ""},
	gateway.Organization:    {"core_object", "/v1/core-objects", `{"code":%q,"name":"Tree"}`, "?code=%s"},
	gateway.IdentitySources: {"auth_method", "/v1/auth-methods", `{"code":%q,"name":"Password","type":"password"}`, ""},
	gateway.Permissions: {
		"resource", "/v1/resources",
		`{"application_id":"2001","type":"data","code":%q,"actions":[{"code":"read"}]}`, "?application_id=2001",
	},
	gateway.Events: {
		"event_subscription", "/v1/event-subscriptions",
		`{"name":%q,"event_types":["user.*"],"status":"0","delivery":{"type":"nats"}}`, "",
	},
	gateway.Automation: {
		"job", "/v1/jobs",
		`{"code":%q,"name":"Nightly","schedule":{"type":"manual"},"target":{"type":"nats","subject":"nightly"}}`, "",
	},
	gateway.Provisioning: {"scim_connection", "/v1/provisioning/connections", `{"name":%q}`, ""},
}

// creators are the services that have one.
var creators = slices.DeleteFunc(slices.Clone(services), func(name string) bool { return creations[name].path == "" })

// perTenant is how many records of each service a tenant gets at most: there are limits.
const perTenant = 100

// made is a record whose creation was acknowledged.
type made struct{ service, tenant, id, name string }

// path is where the record is.
func (m made) path() string {
	how := creations[m.service]
	return how.path + "/" + m.id + strings.ReplaceAll(how.query, "%s", m.name)
}

// event is the subject of the event of its creation, with its id.
func (m made) event() string {
	return "idp.events." + m.tenant + "." + creations[m.service].entity + ".created " + m.id
}

// create makes a record and returns its id.
func create(c drive.Client, service, tenant, name string) (id string, err error) {
	how := creations[service]
	c.Tenant = tenant
	answer, err := c.Do(http.MethodPost, how.path, fmt.Sprintf(how.body, name))
	if err != nil {
		return "", err
	}
	var record struct {
		ID string `json:"id"`
	}
	err = json.Unmarshal(answer, &record)
	return record.ID, err
}

// firstToken gets a token as the greeting says.
func firstToken(t testing.TB, p *platform) string {
	t.Helper()
	password, err := p.folder.read(administratorSecret)
	require.NoError(t, err)
	form := strings.NewReader("grant_type=client_credentials")
	r, err := http.NewRequest(http.MethodPost, p.url+"/v1/oauth2/token", form)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(administrator, url.QueryEscape(password))
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	var answer struct {
		Token string `json:"access_token"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.NotEmpty(t, answer.Token)
	return answer.Token
}

// client has connections of its own.
func (p *platform) client(token string) drive.Client {
	return drive.Client{URL: p.url, Token: token, HTTP: &http.Client{
		Transport: &http.Transport{}, Timeout: 30 * time.Second,
	}}
}

const writers = 8

// write makes records of all services in turn until ctx ends, and reports those that are acknowledged.
func write(ctx context.Context, c drive.Client, writer string, acknowledged chan<- made) {
	for n := 0; ctx.Err() == nil; n++ {
		service := creators[n%len(creators)]
		tenant := fmt.Sprintf("%s-%d", writer, n/(perTenant*len(creators)))
		name := fmt.Sprintf("n%d", n)
		id, err := create(c, service, tenant, name)
		if err != nil {
			// A killed process is ready again sooner if nothing else keeps the processors busy.
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		acknowledged <- made{service, tenant, id, name}
	}
}

// round kills a process while eight writers write. It continues until every creator has acknowledged requests that were
// sent after the kill, and returns all acknowledged records.
func round(t *testing.T, p *platform, token string, victim *process) (records []made) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	acknowledged := make(chan made)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			c := p.client(token)
			defer c.HTTP.CloseIdleConnections()
			write(ctx, c, fmt.Sprintf("%s-%d", victim.name, w), acknowledged)
		})
	}
	limit := time.After(2 * time.Minute)
	collect := func(enough func(since map[string]int) bool) {
		since := map[string]int{}
		for !enough(since) {
			select {
			case m := <-acknowledged:
				records = append(records, m)
				since[m.service]++
			case <-limit:
				require.FailNow(t, "too slow", "%s killed; acknowledged since: %v", victim.name, since)
			}
		}
	}
	each := func(since map[string]int) bool {
		return !slices.ContainsFunc(creators, func(name string) bool { return since[name] <= writers })
	}
	// Whatever happens, the writers end.
	defer func() {
		stop()
		go func() { all.Wait(); close(acknowledged) }()
		for m := range acknowledged {
			records = append(records, m)
		}
	}()
	collect(each)
	killed := victim.pid.Load()
	t.Log(victim.name, "is killed")
	require.NoError(t, syscall.Kill(int(killed), syscall.SIGKILL))
	collect(func(since map[string]int) bool { return victim.pid.Load() != killed && each(since) })
	return records
}

// TestKillNine kills processes under eight writers, one after the other: NATS and another one, or all in make verify.
// Each starts again, and every acknowledged record is there afterwards, with one event.
func TestKillNine(t *testing.T) {
	t.Parallel()
	p, err := start(t.Context(), settingsForTest(t), t.Output())
	require.NoError(t, err)
	defer p.stop()
	token := firstToken(t, p)
	missing := map[string]made{} // by event
	victims := slices.Concat(p.groups...)
	rand.Shuffle(len(victims)-1, func(i, j int) { victims[i+1], victims[j+1] = victims[j+1], victims[i+1] })
	for _, victim := range victims[:rounds.Of(2, len(victims))] {
		for _, m := range round(t, p, token, victim) {
			assert.NotContains(t, missing, m.event(), "an id is given once")
			missing[m.event()] = m
		}
	}
	t.Logf("%d creations acknowledged", len(missing))
	c := p.client(token)
	defer c.HTTP.CloseIdleConnections()
	for _, m := range missing {
		c.Tenant = m.tenant
		record, err := c.Do(http.MethodGet, m.path(), "")
		require.NoError(t, err)
		require.Contains(t, string(record), `"id":"`+m.id+`"`)
	}
	awaitEvents(t, p, missing)
}

// awaitEvents reads events, as a reader does, until all records have theirs. None may have two.
func awaitEvents(t *testing.T, p *platform, missing map[string]made) {
	t.Helper()
	seen := map[string]string{} // event → its id
	drive.EachEvent(t, p.folder.join(readersURL), func(e drive.Event) bool {
		m := e.NATS + " " + e.Subject
		if first, again := seen[m]; again && strings.Contains(m, ".created ") {
			assert.Equal(t, first, e.ID, "one event for a record")
		}
		seen[m] = e.ID
		delete(missing, m)
		return len(missing) == 0
	})
}
