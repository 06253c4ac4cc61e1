package commands

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const access = `kind: Application
name: crm
---
{kind: Resource, application: crm, type: data, code: invoice, actions: [{code: read}, {code: write}]}
---
{kind: Tree, code: company, name: Acme, nodes: [{code: rd, name: RD}, {code: sales, name: Sales}]}
---
{kind: Rule, application: crm, type: data, code: invoice, actions: [read], identity: {type: user, name: li.wei}}
---
{kind: Rule, application: crm, type: data, code: invoice, actions: [write], identity: {type: node, name: company/sales}}
`

// accessHead begins what diff and apply say about access.
const accessHead = "access: "

// TestAccessImpact tells who gains and who loses access by rules that are made, changed and deleted, and by a move.
func TestAccessImpact(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	set := []string{"--set", "access", "--prune"}
	got := p.run(append([]string{"apply", "-f", p.file(access), "--yes"}, set...)...)
	require.Equal(t, 0, got.code, got.err+got.out)
	assert.Contains(t, got.out, "access: nothing can be compared yet\n    not compared: Rule user li.wei may use "+
		"crm:data:invoice: Application crm is not there yet\n")
	find := func(args ...string) string { return strings.TrimSpace(p.run(append([]string{"api"}, args...)...).out) }
	person := find("list-users", "--jq", `.items[] | select(.username == "li.wei").id`)
	place := find("list-tree-nodes", "--object-code", "company", "--recursive=true", "--jq",
		`.items[] | select(.code == "rd").id`)
	got = p.run("api", "add-tree-user", "--user-id", person, "--node-id", place)
	require.Equal(t, 0, got.code, got.err)

	const other = `, actions: [read], identity: {type: user, name: li.wei}}`
	for _, c := range []struct{ from, to, want string }{
		{other, `, actions: [write], identity: {type: user, name: li.wei}}`, "1 person gains, 1 person loses\n" +
			"    loses  li.wei  crm:data:invoice  read\n    gains  li.wei  crm:data:invoice  write\n"},
		{"---\n{kind: Rule, application: crm, type: data, code: invoice" + other + "\n", "",
			"nobody gains, 1 person loses\n    loses  li.wei  crm:data:invoice  read\n"},
		{"{type: node, name: company/sales}", "{type: node, name: company/rd}", "1 person gains, nobody loses\n" +
			"    gains  li.wei  crm:data:invoice  write\n"},
		{"[{code: rd, name: RD}, {code: sales, name: Sales}]",
			"[{code: sales, name: Sales, nodes: [{code: rd, name: RD}]}]",
			"1 person gains, nobody loses\n    gains  li.wei  crm:data:invoice  write\n"},
	} {
		require.Contains(t, access, c.from)
		file := p.file(strings.Replace(access, c.from, c.to, 1))
		got = p.run(append([]string{"diff", "-f", file}, set...)...)
		assert.Equal(t, 10, got.code, got.err+got.out)
		assert.Contains(t, got.out, accessHead+c.want, c.to)
		got = p.run(append([]string{"diff", "-f", file, "--jq", ".impact.identities_gaining"}, set...)...)
		gaining := "1\n"
		if strings.HasPrefix(c.want, "nobody") {
			gaining = "0\n"
		}
		assert.Equal(t, gaining, got.out)
	}
	got = p.run("diff", "-f", p.file(access))
	assert.Equal(t, 0, got.code, got.err)
	assert.NotContains(t, got.out, "access")

	ofRD := strings.Replace(access, "company/sales", "company/rd", 1)
	got = p.run(append([]string{"apply", "-f", p.file(ofRD), "--yes"}, set...)...)
	require.Equal(t, 0, got.code, got.err+got.out)
	disabled := strings.Replace(ofRD, "name: RD}", `name: RD, status: "0"}`, 1)
	got = p.run(append([]string{"apply", "-f", p.file(disabled), "--yes"}, set...)...)
	require.Equal(t, 0, got.code, got.err+got.out)
	assert.Contains(t, got.out, accessHead+"nobody gains, 1 person loses\n    loses  li.wei  crm:data:invoice  write\n")
	enabled := strings.Replace(disabled, `status: "0"`, `status: "1"`, 1)
	got = p.run(append([]string{"apply", "-f", p.file(enabled), "--yes"}, set...)...)
	require.Equal(t, 0, got.code, got.err+got.out)
	assert.Contains(t, got.out, accessHead+"1 person gains, nobody loses\n    gains  li.wei  crm:data:invoice  write\n")
	got = p.run(append([]string{"apply", "-f", p.file(access), "--yes"}, set...)...)
	require.Equal(t, 0, got.code, got.err+got.out)

	p.refuseImpact()
	got = p.run("diff", "-f", p.file(strings.Replace(access, other, strings.Replace(other, "read", "write", 1), 1)))
	assert.Equal(t, 10, got.code, got.err)
	assert.Contains(t, got.out, "access: not known: it needs the scope permissions:read\n")
}

// TestAccessOfManyRules asks about more rules than a batch takes: a person of one of fifty nodes gains a fiftieth.
func TestAccessOfManyRules(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("many-rules")
	require.Equal(t, 0, p.run("apply", "-f", p.file(many(50, 20, 0)), "--yes").code)
	require.Equal(t, 0, p.run("members", "add", "company/n0", "li.wei").code)
	got := p.run("diff", "-f", p.file(many(50, 20, 1500)))
	require.Equal(t, 10, got.code, got.err)
	assert.Contains(t, got.out, "\n+ 1490 more Rules; --all shows every step\n\naccess: 1 person gains, nobody loses\n"+
		"    gains  li.wei  crm:data:r0   a0\n")
	assert.Contains(t, got.out, "\n    and 10 more\n\n1500 to create, ")
}

// refuseImpact makes the platform refuse the question about access.
func (p *play) refuseImpact() {
	p.t.Helper()
	target, err := url.Parse(p.env["IDPCLI_URL"])
	require.NoError(p.t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/auth-impact" {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"status":403,"code":"forbidden","detail":"the scope is missing"}`))
	}))
	p.t.Cleanup(server.Close)
	p.env["IDPCLI_URL"] = server.URL
}
