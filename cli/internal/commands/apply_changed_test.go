package commands

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const twoResources = `{kind: Application, name: crm}
---
{kind: Resource, application: crm, type: data, code: a, name: One, actions: [{code: read}]}
---
{kind: Resource, application: crm, type: data, code: b, name: One, actions: [{code: read}]}
`

// TestChangedMeanwhile lets somebody else change a record between two steps of an apply: it stops, and tells what is
// done.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	require.Equal(t, 0, p.run("apply", "-f", p.file(twoResources), "--yes").code)
	application := strings.TrimSpace(p.run("api", "list-applications", "--jq", ".items[0].id").out)
	names := func() string {
		return p.run("api", "list-resources", "--application-id", application, "--jq",
			"[.items[] | .code + \" \" + .name] | sort | join(\", \")").out
	}
	other := strings.TrimSpace(p.run("api", "list-resources", "--application-id", application, "--code", "b", "--jq",
		".items[0].id").out)
	target, err := url.Parse(p.env["IDPCLI_URL"])
	require.NoError(t, err)
	proxy, once, direct := httputil.NewSingleHostReverseProxy(target), sync.Once{}, p.env["IDPCLI_URL"]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, r)
		if r.Method != http.MethodPatch || !changes(r) {
			return
		}
		once.Do(func() {
			request, err := http.NewRequest(http.MethodPatch, direct+"/v1/resources/"+other,
				strings.NewReader(`{"name":"Other"}`))
			assert.NoError(t, err)
			request.Header = http.Header{
				"Authorization": r.Header["Authorization"], "X-Tenant-Id": r.Header["X-Tenant-Id"],
				"Content-Type": {"application/json"},
			}
			answer, err := http.DefaultClient.Do(request)
			assert.NoError(t, err)
			assert.NoError(t, answer.Body.Close())
			assert.Equal(t, http.StatusOK, answer.StatusCode)
		})
	}))
	t.Cleanup(server.Close)
	p.env["IDPCLI_URL"] = server.URL
	file := p.file(strings.ReplaceAll(twoResources, "One", "Two"))
	got := p.run("apply", "-f", file, "--yes")
	assert.Equal(t, 6, got.code, got.err+got.out)
	assert.Contains(t, got.err, "Resource crm:data:b has changed since the plan\n"+
		"  1 of 2 steps are done, and stay; plan again\n")
	assert.Equal(t, "a Two, b Other\n", names())
	got = p.run("apply", "-f", file, "--yes")
	assert.Equal(t, 0, got.code, got.err+got.out)
	assert.Equal(t, "a Two, b Two\n", names())
}

// TestBegunByNobody: a killed apply has remembered a record that it was about to make, and somebody else makes one of
// that name. The set does not delete it unless it is as the set would have made it.
func TestBegunByNobody(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	file, state := p.file("{kind: Application, name: crm}"), filepath.Join(t.TempDir(), "state.json")
	apply := []string{"apply", "-f", file, "--state", state, "--prune", "--yes"}
	p.done(apply...)
	text, err := os.ReadFile(state)
	require.NoError(t, err)
	var kept map[string]any
	require.NoError(t, json.Unmarshal(text, &kept))
	records := kept["records"].([]any)
	kept["records"] = append(records, map[string]any{
		"kind": "Resource", "key": "crm:data:invoice", "made": true, "begun": true, "idempotency_key": "k",
		"values": map[string]any{"application": "crm", "type": "data", "code": "invoice", "name": "Ours"},
	})
	text, err = json.Marshal(kept)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(state, text, 0o600))

	p.done("resources", "create", "crm:invoice", "--name", "Theirs")
	got := p.run(apply...)
	assert.Equal(t, 6, got.code, got.err)
	assert.Contains(t, got.out, "drift: name was Ours when the set was applied")
	p.done("resources", "update", "crm:invoice", "--name", "Ours")
	p.done(apply...)
	assert.Equal(t, 3, p.run("resources", "get", "crm:invoice").code)
}

// TestInterruptedApply interrupts an apply between two steps: it tells what is done.
func TestInterruptedApply(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	target, err := url.Parse(p.env["IDPCLI_URL"])
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if changes(r) && r.URL.Path == "/v1/batch/resources" {
			interrupt()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	direct := p.env["IDPCLI_URL"]
	p.env["IDPCLI_URL"], p.ctx = server.URL, ctx
	file := p.file(twoResources)
	got := p.run("apply", "-f", file, "--yes")
	assert.Equal(t, 130, got.code, got.err+got.out)
	assert.Contains(t, got.err, "1 of 3 steps are done; the same command goes on")
	p.env["IDPCLI_URL"], p.ctx = direct, t.Context()
	got = p.run("apply", "-f", file, "--yes")
	assert.Equal(t, 0, got.code, got.err+got.out)
}
