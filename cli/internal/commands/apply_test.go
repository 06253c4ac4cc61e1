package commands

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// realPlay is a command line with the platform of the program IDP_TEST_PROGRAM. Without one the test is skipped.
func realPlay(t testing.TB) *play {
	t.Helper()
	program, folder := os.Getenv("IDP_TEST_PROGRAM"), t.TempDir()
	if program == "" {
		t.Skip("IDP_TEST_PROGRAM is not set: the path of idp-standalone")
	}
	env := append(os.Environ(), "IDP_DATA_DIR="+folder, "IDP_LISTEN=127.0.0.1:0", "IDP_ADMIN_LISTEN=off",
		"IDP_NATS_LISTEN=off")
	run, address := serve(t, program, env)
	command := exec.Command(program, "token", "--tenant", "acme")
	command.Env = env
	token, err := command.Output()
	require.NoError(t, err)
	p := &play{
		t: t, config: filepath.Join(t.TempDir(), "config.yaml"), ctx: t.Context(),
		server: httptest.NewServer(http.NotFoundHandler()), // only its URL is looked at
		restart: func() { // after a kill, at the same address
			_ = run.Process.Kill()
			_ = run.Wait()
			run, _ = serve(t, program, append(env, "IDP_LISTEN="+strings.TrimPrefix(address, "http://")))
		},
		env: map[string]string{
			"IDPCLI_URL": address, "IDPCLI_TOKEN": strings.TrimSpace(string(token)), "IDPCLI_TENANT": "acme",
			"GITHUB": "s3cret", "CONNECTION_GITHUB_OUR_CONFIG_FIELDS_CLIENTSECRET": "s3cret",
			"SUBSCRIPTION_HR_DELIVERY_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		},
	}
	got := p.run("api", "put-kv-bucket", "first", "--data", "{}", "--create-tenant") // so acme is there
	require.Equal(t, 0, got.code, got.err)
	return p
}

// serve starts the program, and says where it listens.
func serve(t testing.TB, program string, env []string) (run *exec.Cmd, address string) {
	t.Helper()
	run = exec.Command(program, "serve")
	run.Env = env
	stdout, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Wait()
	})
	for lines := bufio.NewScanner(stdout); address == "" && lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), "http://"); ok {
			host, _, _ := strings.Cut(rest, "/")
			address = "http://" + host
		}
	}
	require.NotEmpty(t, address)
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return run, address
}

// allKinds has every kind, every part, and each reference from one to another.
const allKinds = `kind: Application
name: crm
category: 4
scopes: [users:read]
free_ext_props: {big: 12345678901234567890, nested: {a: [1, {b: null}]}}
---
kind: Application
name: 报销
redirect_url: https://expenses.acme.test/cb
protocols:
- {type: cas, status: 1}
- {type: oidc, status: 0}
- {type: saml, protocol_prop: {acs_url: "https://expenses.acme.test/acs", sp_entity: expenses}}
sources: [github/Our]
---
{kind: Resource, application: crm, type: data, code: "invoice:a", is_global: 1, actions: [{code: read, description: r}]}
---
{kind: Resource, application: 报销, type: api, code: claims, uri: "/claims/{id}", actions: [{code: read}, {code: write}]}
---
kind: ResourceSet
application: 报销
code: all
members:
- {type: api, code: claims, actions: [read]}
- {type: data, code: "invoice:a", resource_application: crm}
---
kind: Tree
code: company
name: Acme
nodes:
- code: rd
  name: 研发
  nodes: [{code: platform, name: Platform, seq: 2}]
- {code: link, name: Link, is_pointer: 1, pointer: company/platform}
- {code: on, name: Dynamic, is_dynamic: 1, condition: 'user.status == "1"'}
---
{kind: Rule, application: 报销, type: api, code: claims, actions: [read], identity: {type: node, name: company/platform}}
---
kind: Rule
application: 报销
type: api
code: claims
actions: [write]
condition: 'context.hour > 8'
valid_from: 2026-01-31
identity: {type: node, name: company/platform}
---
{kind: Rule, application: 报销, type: res_set, code: all, actions: [read], identity: {type: user, name: li.wei}}
---
{kind: Rule, application: 报销, type: app, affect: deny, identity: {type: everyone}, actions: ["*"]}
---
{kind: Rule, application: crm, type: res, code: "inv*", actions: [read], identity: {type: core_object, name: company}}
---
{kind: Rule, application: crm, type: app, actions: ["*"], identity: {type: application, name: 报销}}
---
kind: Rule
application: 报销
resource_application: crm
type: data
code: invoice:a
actions: [read]
identity: {type: node, name: company/rd}
---
kind: Connection
provider_code: github
display_name: Our
config_fields: {ClientId: abc, ClientSecret: {from: env:GITHUB}}
---
kind: Subscription
name: HR
event_types: [user.*]
delivery: {type: webhook, url: "https://hr.acme.test/hook"}
`

func (p *play) file(text string) string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "all.yaml")
	require.NoError(p.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// inTenant is the same command line in another tenant, which has the user whom rules name.
func (p *play) inTenant(name string) {
	p.t.Helper()
	p.env["IDPCLI_TENANT"] = name
	got := p.run("users", "create", "li.wei", "--create-tenant")
	require.Equal(p.t, 0, got.code, got.err)
}

// TestApplyExport makes all kinds from a file, exports them, and applies the export: here it changes nothing, and in
// an empty tenant it makes the same.
func TestApplyExport(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	file, secrets := p.file(allKinds), filepath.Join(t.TempDir(), "secrets")
	got := p.run("diff", "-f", file)
	require.Equal(t, 10, got.code, got.err+got.out)
	got = p.run("apply", "-f", file)
	assert.Equal(t, 2, got.code, "without a terminal it wants --yes")
	got = p.run("apply", "-f", file, "--yes", "--secrets-to", secrets)
	require.Equal(t, 0, got.code, got.err+got.out)
	kept, err := os.ReadFile(secrets)
	require.NoError(t, err)
	assert.Equal(t, 3, bytes.Count(kept, []byte("\n")), "two applications and the subscription")
	info, err := os.Stat(secrets)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	got = p.run("diff", "-f", file)
	require.Equal(t, 0, got.code, got.err+got.out)

	folder, again := t.TempDir(), t.TempDir()
	got = p.run("export", "-f", folder)
	require.Equal(t, 0, got.code, got.err)
	got = p.run("apply", "-f", folder)
	require.Equal(t, 0, got.code, got.err+got.out)
	assert.Contains(t, got.out, "no difference")
	p.inTenant("empty")
	got = p.run("apply", "-f", folder, "-y")
	require.Equal(t, 0, got.code, got.err+got.out)
	require.Equal(t, 0, p.run("export", "-f", again).code)
	assert.Equal(t, contents(t, folder), contents(t, again))
}

// contents are the files of a folder by their paths in it.
func contents(t testing.TB, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, folder)] = string(text)
		return err
	}))
	return out
}

// TestApplyStopped ends the platform for the command after each write in turn: the answer is lost, and so is all that
// follows. The same command goes on, and the end is the same as without any fault.
func TestApplyStopped(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	target, err := url.Parse(p.env["IDPCLI_URL"])
	require.NoError(t, err)
	left := atomic.Int64{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !changes(r):
			proxy.ServeHTTP(w, r)
			return
		case left.Add(-1) > 0:
			proxy.ServeHTTP(w, r)
			return
		case left.Load() == 0: // it is done, but nobody hears
			proxy.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	file := p.file(allKinds)
	p.env["IDPCLI_URL"] = server.URL
	until := func(writes func(run int) int64, command ...string) {
		for run, code := 0, -1; code != 0; run++ {
			require.Less(t, run, 100)
			left.Store(writes(run))
			got := p.run(append(command, "--yes", "--wait", "0")...)
			if code = got.code; code != 0 {
				require.Contains(t, []int{8, 9}, code, got.err+got.out)
			}
		}
		left.Store(1 << 30)
	}
	exported := func() map[string]string {
		folder := t.TempDir()
		require.Equal(t, 0, p.run("export", "-f", folder).code)
		return contents(t, folder)
	}
	until(func(int) int64 { return 2 }, "apply", "-f", file)
	got := p.run("diff", "-f", file)
	require.Equal(t, 0, got.code, got.out+got.err)
	stopped := exported()
	p.inTenant("whole")
	require.Equal(t, 0, p.run("apply", "-f", file, "--yes").code)
	assert.Equal(t, exported(), stopped)

	// A set writes its lock and its state, too: each run has one write more than the one before. All records are then
	// the set's, also those whose answers were lost.
	p.inTenant("set")
	empty := exported()
	more := func(run int) int64 { return int64(run + 1) }
	until(more, "apply", "-f", file, "--set", "all", "--unlock")
	assert.Equal(t, stopped, exported())
	none := p.file("{kind: Connection, provider_code: idp_native_db, config_fields: {}}")
	until(more, "apply", "-f", none, "--set", "all", "--unlock", "--prune", "--max-deletes", "100")
	assert.Equal(t, empty, exported())
}

func TestWrongConfiguration(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := `{"items":[]}`
		if r.URL.Path == "/v1/idp/providers" {
			answer = `[{"provider_code":"oidc","config_schema":{"properties":{"Key":{"writeOnly":true},"Id":{}}}}]`
		}
		_, _ = io.WriteString(w, answer)
	})
	for _, c := range []struct{ text, want string }{
		{
			"kind: Connection\nprovider_code: oidc\nconfig_fields:\n  Id: a\n  Key: s3cret",
			"all.yaml:5: config_fields.Key is a secret",
		},
		{"kind: Connection\nprovider_code: odic\nconfig_fields: {Key: b}", `all.yaml:2: there is no provider "odic"`},
		{"kind: Resource\napplication: crm\ntype: data\ncode: a", "all.yaml:1: there is no Application crm"},
		{"kind: Hat", `there is no kind "Hat"`},
	} {
		got := p.run("diff", "-f", p.file(c.text))
		assert.Equal(t, 2, got.code, got.err)
		assert.Contains(t, got.err, c.want)
		assert.NotContains(t, got.err, "s3cret")
	}
	assert.Equal(t, 2, p.run("diff").code)
	assert.Equal(t, 2, p.run("apply", "-f", t.TempDir()).code, "a folder without files")
	assert.Equal(t, 2, p.run("export", "-f", t.TempDir(), "--kind", "Hat").code)
	got := p.run("apply", "--schema")
	require.Equal(t, 0, got.code)
	assert.Contains(t, got.out, `"ResourceSetMember"`)
}

const smallSet = `kind: Application
name: crm
category: 4
---
{kind: Resource, application: crm, type: data, code: invoice, name: Invoice, actions: [{code: read}]}
---
{kind: Resource, application: crm, type: data, code: offer, actions: [{code: read}]}
---
{kind: Rule, application: crm, type: data, code: offer, actions: [read], identity: {type: user, name: li.wei}}
---
{kind: Tree, code: company, name: Acme, nodes: [{code: rd, name: RD, nodes: [{code: platform, name: Platform}]}]}
`

// TestSet applies a named set, whose state is in the platform or in a file.
func TestSet(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	for tenant, flags := range map[string][]string{
		"acme": {"--set", "crm"}, "beta": {"--state", filepath.Join(t.TempDir(), "state.json")},
	} {
		p.inTenant(tenant)
		apply := func(file string, more ...string) ended {
			return p.run(append(append([]string{"apply", "-f", file, "--yes"}, flags...), more...)...)
		}
		file := p.file(smallSet)
		got := p.run("api", "create-application", "--name", "other")
		require.Equal(t, 0, got.code, got.err)
		require.Equal(t, 0, apply(file).code)
		got = apply(file)
		require.Equal(t, 0, got.code, got.err)
		assert.Contains(t, got.out, "no difference")

		// What somebody else has changed stops the apply, unless the files want the same, or it is taken over.
		id := strings.TrimSpace(p.run("api", "list-applications", "--name", "crm", "--jq", ".items[0].id").out)
		find := []string{"api", "list-resources", "--application-id", id, "--code", "invoice", "--jq"}
		invoice := strings.TrimSpace(p.run(append(find, ".items[0].id")...).out)
		require.Equal(t, 0, p.run("api", "update-resource", invoice, "--name", "Bill").code)
		got = apply(file)
		assert.Equal(t, 6, got.code, got.err)
		assert.Contains(t, got.out, "drift: name was Invoice when the set was applied")
		assert.Equal(t, "Bill\n", p.run(append(find, ".items[0].name")...).out)
		assert.Equal(t, 0, apply(p.file(strings.Replace(smallSet, "name: Invoice", "name: Bill", 1))).code)
		assert.Equal(t, 0, apply(file).code, "a change of the file is no drift")
		require.Equal(t, 0, p.run("api", "delete-resource", invoice, "--yes").code)
		got = apply(file)
		assert.Equal(t, 6, got.code, got.err)
		got = apply(file, "--take-over")
		assert.Equal(t, 0, got.code, got.err+got.out)

		// Only what the set made is deleted.
		got = p.run("api", "create-resource", "--application-id", id, "--type", "data", "--code", "own")
		require.Equal(t, 0, got.code, got.err)
		less := p.file(strings.Join(strings.Split(smallSet, "---")[:2], "---"))
		got = apply(less)
		assert.Equal(t, 0, got.code, got.err)
		assert.Contains(t, got.out, "5 that the set made are not in the files")
		got = apply(less, "--prune", "--max-deletes", "4")
		assert.Equal(t, 2, got.code, got.err)
		got = apply(less, "--prune")
		require.Equal(t, 0, got.code, got.err+got.out)
		codes := p.run("api", "list-resources", "--application-id", id, "--jq", "[.items[].code] | sort | join(\" \")")
		assert.Equal(t, "invoice own\n", codes.out)
		assert.Equal(t, "[]\n", p.run("api", "list-core-objects", "--jq", "map(.code)").out)
		got = apply(less, "--prune")
		assert.Equal(t, 0, got.code, got.err)
		assert.Contains(t, got.out, "no difference")

		// An application that the set found is not the set's.
		none := p.file("{kind: Application, name: other, descr: ours}")
		got = apply(none, "--prune")
		assert.Equal(t, 2, got.code, got.err)
		assert.Contains(t, got.out, "- Resource crm:data:own\n    goes with Application crm, and is not of the set\n")
		require.Equal(t, 0, apply(none, "--prune", "--cascade").code)
		names := []string{"api", "list-applications", "--jq", "[.items[].name] | sort | join(\" \")"}
		assert.Equal(t, "other\n", p.run(names...).out)
		require.Equal(t, 0, apply(p.file("{kind: Tree, code: t, name: T}"), "--prune").code)
		assert.Equal(t, "other\n", p.run(names...).out)
	}
}

// TestLock tells a second apply of the same set that it must wait.
func TestLock(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	file := p.file(smallSet)
	require.Equal(t, 0, p.run("apply", "-f", file, "--yes", "--set", "crm").code)
	got := p.run("api", "put-kv-object", "idp-apply", "lock.crm", "--data", `{"value":{},"ttl_seconds":600}`)
	require.Equal(t, 0, got.code, got.err)
	got = p.run("apply", "-f", file, "--yes", "--set", "crm")
	assert.Equal(t, 7, got.code, got.err)
	assert.Contains(t, got.err, "--unlock")
	assert.Equal(t, 0, p.run("apply", "-f", file, "--yes", "--set", "crm", "--unlock").code)
	assert.Equal(t, 0, p.run("apply", "-f", file, "--yes", "--set", "crm").code, "and lets go of it")
}
