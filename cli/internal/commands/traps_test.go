package commands

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A sign-in tries what it is given, and no token of a variable, which may be another platform's. What protected a
// context still does, and the context of another tenant is not overwritten.
func TestLoginTriesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	p := newPlay(t, signing)
	p.env, p.input = map[string]string{"IDPCLI_TOKEN": "of another platform"}, "crm\ns3cret\n"
	require.Equal(t, 0, p.run("login", p.server.URL, "--protected").code)
	for _, asked := range p.asked() {
		assert.NotContains(t, asked.header.Get("Authorization"), "of another platform")
	}
	p.env = nil
	require.Equal(t, 0, p.run("login", p.server.URL).code)
	assert.Equal(t, 2, p.run("api", "delete-user", "7", "--yes").code, "it is protected still")

	config, err := os.ReadFile(p.config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.config, bytes.Replace(config, []byte("globex"), []byte("initech"), 1), 0o600))
	got := p.run("login", p.server.URL)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "of tenant initech: --context NAME keeps both")
}

// An empty variable of a script makes no change without a condition, or in another tenant.
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{}.serve)
	for _, flag := range []string{"--if-version", "--tenant", "--context"} {
		got := p.run("api", "update-user", "7", "--display-name", "a", flag, "")
		assert.Equal(t, 2, got.code)
		assert.Contains(t, got.err, flag+" is empty")
		assert.Empty(t, p.asked())
	}
}

func TestDryRunShowsNoPassword(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{
		"GET /v1/users": `{"items":[{"id":"7","username":"li.wei"}],"total":1}`, "GET /v1/users/7": `{"id":"7"}`,
		"POST /v1/batch/users-exist":      `{"items":[{"exists":true,"user_id":"7"}]}`,
		"POST /v1/users/7/password":       `{}`,
		"POST /v1/users/7/reset-password": `{}`,
	}.serve)
	p.input = "old one\nhunter2hunter2\n"
	for _, command := range [][]string{{"change-password", "7"}, {"reset-password", "7", "--choose"}} {
		got := p.run(append(append([]string{"credentials"}, command...), "--dry-run")...)
		assert.NotContains(t, got.out+got.err, "hunter2")
		assert.NotContains(t, got.out+got.err, "old one")
	}
}

// A program learns the key of a change whose outcome is unknown, and which scope is missing.
func TestFaultsForPrograms(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusBadGateway, "outcome_unknown")
	})
	got := p.run("api", "create-user", "--username", "a", "--wait", "0", "-o", "json")
	require.Equal(t, 8, got.code, got.err)
	var document map[string]any
	lines := strings.Split(strings.TrimSpace(got.err), "\n") // the first says where the change goes
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &document))
	assert.Equal(t, "outcome_unknown", document["code"])
	assert.Equal(t, p.last().header.Get("Idempotency-Key"), document["idempotency_key"])
}

// The file that is imported is not that of the failures: that would empty it.
func TestFailedIsNotTheSource(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{}.serve)
	path := filepath.Join(t.TempDir(), "people.csv")
	const content = "username\nli.wei\n"
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	got := p.run("users", "import", path, "--failed", path)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "it is the file that is imported")
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, content, string(left))
}

// What others have stored cannot steer the terminal.
func TestStoredTextOnATerminal(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{
		"GET /v1/kv/buckets/b":           `{"name":"b"}`,
		"GET /v1/kv/buckets/b/objects/k": `{"key":"k","content_type":"text/plain","value":"a\u001b]0;x\u0007b"}`,
	}.serve)
	got := p.run("kv", "get", "b", "k")
	assert.Equal(t, "a\x1b]0;x\x07b", got.out, got.err)
	p.terminal = true
	assert.NotContains(t, p.run("kv", "get", "b", "k").out, "\x1b")
}
