package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/drive"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// runs runs a sub-command in a process of its own.
func runs(t *testing.T, env []string, args ...string) (out, notes string, code int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), "IDP_TEST_CHILD=platform", "IDP_LISTEN=127.0.0.1:0", "IDP_ADMIN_LISTEN=off",
		"IDP_NATS_LISTEN=off"), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func TestOnePlatformAFolder(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	for _, command := range []string{"serve", "check"} {
		_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, command)
		assert.Equal(t, 1, code)
		assert.Contains(t, notes, "another platform runs on the data folder "+c.Dir)
	}
	c.stop()
	out, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "check")
	assert.Equal(t, 0, code, notes)
	assert.Contains(t, out, "store of users   ok")
	assert.Contains(t, out, "event stream     ok")
}

func TestFolderOfANewerProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "VERSION"), []byte("99\n"), 0o600))
	for _, command := range []string{"serve", "check", "token"} {
		_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + dir}, command)
		assert.Equal(t, 1, code)
		assert.Contains(t, notes, "was written by a newer program (layout 99; this one knows layouts up to 1)")
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "a refused folder must not be changed")
}

func TestFolderOfAnotherKey(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	c.stop()
	require.NoError(t, os.Remove(filepath.Join(c.Dir, "encryption.key")))
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "serve")
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "sealed under a key that is not configured")
}

func TestWrongCalls(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env, args []string
		notes     string
		code      int
	}{
		{nil, nil, "idp-standalone serve", 2},
		{nil, []string{"dance"}, `there is no command "dance"`, 2},
		{[]string{"IDP_LISTEN=no-address", "IDP_TENANT=Not OK"}, []string{"serve"}, "tenant must be", 1},
		{[]string{"IDP_LISTN=127.0.0.1:0"}, []string{"serve"}, "IDP_LISTN", 1},
		{
			[]string{"IDP_USERS_LOCKOUT_FAILURES=many", "IDP_LOG_LEVEL=loud"}, []string{"serve"},
			"IDP_USERS_LOCKOUT_FAILURES", 1,
		},
		{
			nil, []string{"serve", "--accept-loss", "people"},
			`there is no store "people"; the stores are nats, users, applications, organization, ` +
				`identity-sources, permissions, events, automation, sign-in, provisioning`, 1,
		},
		{nil, []string{"serve", "--no-such-flag"}, "no-such-flag", 1},
		{nil, []string{"token", "--scope", "users:read users:fly"}, `there is no scope "users:fly"`, 1},
		{nil, []string{"token"}, "no platform runs on the data folder", 1},
		{nil, []string{"keys"}, "the command is: keys rotate", 1},
		{[]string{"IDP_PUBLIC_URL=https://id.example.com/"}, []string{"serve"}, "public_url must be", 1},
		{[]string{"IDP_BOOTSTRAP_CLIENT_ID=admin"}, []string{"serve"}, "client_id and client_secret go together", 1},
		{
			[]string{"IDP_BOOTSTRAP_CLIENT_ID=admin", "IDP_BOOTSTRAP_CLIENT_SECRET=hunter2"}, []string{"serve"},
			"client_secret must have at least 32 characters", 1,
		},
		{nil, []string{"token", "--tenant", "Ümlaut"}, "--tenant must be", 1},
		{nil, []string{"token", "users:read"}, `no argument "users:read"`, 1},
	} {
		_, notes, code := runs(t, append([]string{"IDP_DATA_DIR=" + t.TempDir()}, test.env...), test.args...)
		assert.Contains(t, notes, test.notes)
		assert.Equal(t, test.code, code, test.notes)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	text := c.token("--tenant", "acme", "--scope", "users:read kv:read")
	claims := jwt.MapClaims{}
	_, _, err := jwt.NewParser().ParseUnverified(text, claims)
	require.NoError(t, err)
	assert.Equal(t, "acme", claims["tenant_id"])
	assert.Equal(t, "users:read kv:read", claims["scope"])
	assert.Equal(t, "http://"+c.Addr, claims["iss"])
	assert.InDelta(t, 3600, claims["exp"].(float64)-claims["iat"].(float64), 1)
	var list page
	fetch(t, c, text, "/v1/users", &list)

	dir := c.Dir
	for name, wanted := range map[string]os.FileMode{
		"encryption.key": 0o600, "administrator.json": 0o600, "nats.password": 0o600, "nats.url": 0o600,
		"api.url": 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, wanted, info.Mode().Perm(), name)
	}
	var admin struct {
		ClientID string `json:"client_id"`
	}
	kept, err := os.ReadFile(filepath.Join(dir, "administrator.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(kept, &admin))
	var application struct {
		Items []struct {
			ClientID string   `json:"client_id"`
			Scopes   []string `json:"scopes"`
		}
	}
	fetch(t, c, c.token(), "/v1/applications", &application)
	require.Len(t, application.Items, 1, "the administrator is an application like others")
	assert.Equal(t, admin.ClientID, application.Items[0].ClientID)
	assert.Equal(t, []string{"platform:admin"}, application.Items[0].Scopes)
	var version map[string]any
	text, _, _ = runs(t, nil, "version")
	require.NoError(t, json.Unmarshal([]byte(text), &version))
	assert.NotEmpty(t, version["go"])
}

// TestKillNine kills the platform three times while eight clients write. Everything that was acknowledged is there
// afterwards: one record and one event for each, and no id twice.
func TestKillNine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token := ""
	acknowledged := map[string]string{} // username → id
	for round := range 3 {
		c := startPlatform(t, dir)
		if token == "" {
			token = c.token("--tenant", "acme")
		}
		enough := newGate()
		results := make([]map[string]string, 8)
		var writers sync.WaitGroup
		for w := range results {
			results[w] = map[string]string{}
			writers.Go(func() {
				client := &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				for n := 0; ; n++ {
					name := fmt.Sprintf("r%d.w%d.n%d", round, w, n)
					id, err := create(client, c.Addr, token, name)
					if err != nil {
						return
					}
					results[w][name] = id
					if n == 100 {
						enough.close()
					}
				}
			})
		}
		enough.wait(t)
		c.kill()
		writers.Wait()
		for _, r := range results {
			maps.Copy(acknowledged, r)
		}
	}

	c := startPlatform(t, dir)
	stored := storedUsers(t, c, token)
	assert.Greater(t, len(acknowledged), 300)
	for name, id := range acknowledged {
		assert.Equal(t, id, stored[name], name)
	}
	assert.LessOrEqual(t, len(stored), len(acknowledged)+3*8,
		"only interrupted requests may add to the acknowledged ones")

	events := map[string]int{}
	eachEvent(t, c, len(stored), func(subject, record string) {
		assert.Equal(t, "idp.events.acme.user.created", subject)
		events[record]++
	})
	for name, id := range stored {
		assert.Equal(t, 1, events[id], name)
	}
	c.stop()
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + dir}, "check")
	assert.Equal(t, 0, code, notes)
}

// storedUsers returns the ids of all users by username. Each may be there only once.
func storedUsers(t *testing.T, c *child, token string) map[string]string {
	t.Helper()
	stored := map[string]string{}
	ids := map[string]bool{}
	for next, first := "", true; first || next != ""; first = false {
		var p struct {
			Items []struct {
				ID       string `json:"id"`
				Username string `json:"username"`
			} `json:"items"`
			Next string `json:"next_page_token"`
		}
		fetch(t, c, token, "/v1/users?page_size=200&page_token="+next, &p)
		for _, u := range p.Items {
			assert.NotContains(t, stored, u.Username)
			assert.NotContains(t, ids, u.ID)
			stored[u.Username], ids[u.ID] = u.ID, true
		}
		next = p.Next
	}
	return stored
}

func create(client *http.Client, addr, token, username string) (id string, err error) {
	body := fmt.Sprintf(`{"username":%q,"display_name":"李伟"}`, username)
	r, err := http.NewRequest(http.MethodPost, "http://"+addr+"/v1/users", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	var user struct {
		ID string `json:"id"`
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%d: %s", response.StatusCode, answer)
	}
	err = json.Unmarshal(answer, &user)
	return user.ID, err
}

// eachEvent reads n events.
func eachEvent(t *testing.T, c *child, n int, see func(subject, record string)) {
	t.Helper()
	if n > 0 {
		eachEventUntil(t, c, func(subject, record string) bool {
			see(subject, record)
			n--
			return n == 0
		})
	}
}

// eachEventUntil reads events of the tenant acme until last returns true.
func eachEventUntil(t *testing.T, c *child, last func(subject, record string) bool) {
	t.Helper()
	drive.EachEvent(t, filepath.Join(c.Dir, "nats.url"), func(e drive.Event) bool {
		return strings.HasPrefix(e.NATS, "idp.events.acme.") && last(e.NATS, e.Subject)
	})
}

// TestSubscriber checks what a subscriber such as "nats sub" can do, and what it must not be able to do.
func TestSubscriber(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	url, err := os.ReadFile(filepath.Join(c.Dir, "nats.url"))
	require.NoError(t, err)
	refused := make(chan error, 1)
	nc, err := nats.Connect(strings.TrimSpace(string(url)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	require.NoError(t, err)
	defer nc.Close()
	events, err := nc.SubscribeSync("idp.events.acme.user.created")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	_, err = create(http.DefaultClient, c.Addr, c.token("--tenant", "globex"), "not.mine")
	require.NoError(t, err)
	id, err := create(http.DefaultClient, c.Addr, c.token("--tenant", "acme"), "li.wei")
	require.NoError(t, err)
	m, err := events.NextMsg(wait.Long)
	require.NoError(t, err)
	assert.Equal(t, "idp.events.acme.user.created", m.Subject)
	assert.Contains(t, string(m.Data), `"subject":"`+id+`"`)
	assert.Equal(t, m.Header.Get("Nats-Msg-Id"), between(string(m.Data), `"id":"`, `"`))

	require.NoError(t, nc.Publish("idp.events.acme.user.created", []byte("forged")))
	require.NoError(t, nc.Flush())
	require.ErrorContains(t, <-refused, "Permissions Violation")
	_, err = nats.Connect(strings.Replace(string(url), "events:", "events:x", 1))
	require.ErrorIs(t, err, nats.ErrAuthorization)
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

func TestStopLosesNothing(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	token := c.token("--tenant", "acme")
	pipe, feed := io.Pipe()
	begun := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(begun) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Addr+"/v1/users/import", pipe)
	require.NoError(t, err)
	r.Header.Set("Expect", "100-continue") // the platform answers it when it begins to read
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/x-ndjson")
	answered := make(chan string, 1)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answered <- string(body)
	}()
	lines := people(0, 1000)
	half := bytes.Index(lines[len(lines)/2:], []byte("\n")) + len(lines)/2
	_, err = feed.Write(lines[:half])
	require.NoError(t, err)
	wait.Receive(t, begun)
	stopped := make(chan struct{})
	go func() { c.stop(); close(stopped) }()
	_, err = feed.Write(lines[half:])
	require.NoError(t, err)
	require.NoError(t, feed.Close())
	assert.Equal(t, 1000, strings.Count(<-answered, `"status":"created"`))
	<-stopped

	again := startPlatform(t, c.Dir)
	var p page
	fetch(t, again, token, "/v1/users", &p)
	assert.Equal(t, 1000, p.Total)
	eachEvent(t, again, 1000, func(string, string) {})
}
