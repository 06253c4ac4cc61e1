package commands

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// orders are changes of a set that the platform takes in one order alone.
var orders = []struct {
	name, before, after string
	want                []string // in the plan, in this order
}{
	{
		"an action is dropped from a resource, a set and rules",
		orderResource("read", "old") + orderUses("read, old", "read, old") +
			"---\n{kind: Rule, application: crm, type: data, code: a, actions: [old], identity: {type: everyone}}\n",
		orderResource("read") + orderUses("read", "read"),
		[]string{
			"~ ResourceSetMember crm:all/crm:data:a", "~ Rule user li.wei", "- Rule everyone",
			"~ Resource crm:data:a", "not tried: Rule everyone may use crm:data:a goes first",
		},
	},
	{
		"an action takes the place of another",
		orderResource("read", "old") + orderUses("old", "old"),
		orderResource("read", "new") + orderUses("new", "new"),
		[]string{
			"~ Resource crm:data:a", "actions: [read, old] → [read, new, old]", "for a while: a later step",
			"~ ResourceSetMember crm:all/crm:data:a", "not tried: Resource crm:data:a changes first",
			"~ Rule user li.wei", "~ Resource crm:data:a",
		},
	},
	{
		"a new rule names a new action",
		orderResource("read"),
		orderResource("read", "new") + orderUses("new", "new"),
		[]string{"~ Resource crm:data:a", "not tried: Resource crm:data:a changes first"},
	},
	{
		"a connection and its source are deleted",
		"{kind: Application, name: crm, sources: [github/Our]}\n---\n" + orderGitHub,
		"{kind: Application, name: crm}\n",
		[]string{"- Source crm/github/Our", "- Connection github/Our", "not tried: "},
	},
	{
		"a connection and the application that offers it are deleted",
		"{kind: Application, name: crm, sources: [github/Our]}\n---\n" + orderGitHub,
		"{kind: Application, name: hr}\n",
		[]string{"- Application crm", "- Connection github/Our"},
	},
	{
		"a pointer leads elsewhere, and its node is deleted",
		orderTree("{code: a, name: A}", "{code: b, name: B}", "{code: p, name: P, is_pointer: 1, pointer: t/a}"),
		orderTree("{code: b, name: B}", "{code: p, name: P, is_pointer: 1, pointer: t/b}"),
		[]string{"~ Node t/p", "- Node t/a", "not tried: Node t/p changes first"},
	},
	{
		"a child moves up, and its parent is deleted",
		orderTree("{code: a, name: A, nodes: [{code: b, name: B, nodes: [{code: c, name: C}]}]}"),
		orderTree("{code: c, name: C}"),
		[]string{"~ Node t/c", "- Node t/b", "- Node t/a"},
	},
	{
		"a child and its parent change places",
		orderTree("{code: a, name: A, nodes: [{code: b, name: B, nodes: [{code: c, name: C}]}]}"),
		orderTree("{code: c, name: C, nodes: [{code: b, name: B, nodes: [{code: a, name: A}]}]}"),
		[]string{"~ Node t/c", "~ Node t/b", "~ Node t/a"},
	},
	{
		"a node becomes a pointer to the one that pointed to it",
		orderTree("{code: a, name: A}", "{code: p, name: P, is_pointer: 1, pointer: t/a}"),
		orderTree("{code: a, name: A, is_pointer: 1, pointer: t/p}", "{code: p, name: P, is_pointer: 0, pointer: ''}"),
		[]string{"~ Node t/p", "~ Node t/a"},
	},
	{
		"applications exchange their names",
		"{kind: Application, name: one, descr: first}\n---\n{kind: Application, name: two, descr: second}\n" +
			"---\n{kind: Resource, application: one, type: data, code: a, actions: [{code: read}]}\n",
		"{kind: Application, name: one, was: two, descr: second}\n" +
			"---\n{kind: Application, name: Two, was: one, descr: first}\n" +
			"---\n{kind: Resource, application: Two, type: data, code: a, actions: [{code: read}]}\n",
		[]string{"name: two → idp-apply-", "for a while", "name: one → Two", "name: idp-apply-", " → one"},
	},
	{
		"nodes exchange their codes",
		orderTree("{code: a, name: A, nodes: [{code: c, name: C}]}", "{code: b, name: B}"),
		orderTree("{code: b, was: a, name: A, nodes: [{code: c, name: C}]}", "{code: a, was: b, name: B}"),
		[]string{"code: a → idp-apply-", "code: b → a", "code: idp-apply-"},
	},
	{
		"a name goes from one application to another, whose name goes to a third",
		"{kind: Application, name: a}\n---\n{kind: Application, name: b}\n---\n{kind: Application, name: c}\n",
		"{kind: Application, name: b, was: a}\n---\n{kind: Application, name: c, was: b}\n" +
			"---\n{kind: Application, name: d, was: c}\n",
		[]string{"name: c → d", "name: b → c", "name: a → b"},
	},
	{
		"a domain goes from one application to another",
		"{kind: Application, name: a}\n---\n{kind: Application, name: b, domain_sn: one}\n",
		"{kind: Application, name: a, domain_sn: One}\n---\n{kind: Application, name: b, domain_sn: ''}\n" +
			"---\n{kind: Application, name: c}\n",
		[]string{"~ Application b", "~ Application a", "not tried: Application b changes first"},
	},
	{
		"a domain goes to a new application, and its own is deleted",
		"{kind: Application, name: a, domain_sn: one}\n",
		"{kind: Application, name: b, domain_sn: one}\n",
		[]string{"- Application a", "+ Application b", "not tried: Application a goes first"},
	},
	{
		"applications exchange their domains",
		"{kind: Application, name: a, domain_sn: one}\n---\n{kind: Application, name: b, domain_sn: two}\n",
		"{kind: Application, name: a, domain_sn: two}\n---\n{kind: Application, name: b, domain_sn: one}\n",
		[]string{`domain_sn: one → ""`, "for a while", "domain_sn: two → one", `domain_sn: "" → two`},
	},
	{
		"a name and what refers to it are in another case",
		orderResource("read") + orderUses("read", "read"),
		strings.ReplaceAll(orderResource("read"), "name: crm", "name: CRM") +
			strings.Replace(orderUses("read", "read"), "application: crm", "application: Crm", 1) +
			"---\n{kind: Rule, application: crm, type: app, actions: ['*'], identity: {type: user, name: LI.WEI}}\n",
		[]string{"~ Application CRM", "name: crm → CRM", "+ Rule user li.wei may use CRM:app"},
	},
}

const orderGitHub = "{kind: Connection, provider_code: github, display_name: Our, " +
	"config_fields: {ClientId: abc, ClientSecret: {from: env:GITHUB}}}\n"

func orderResource(actions ...string) string {
	return "{kind: Application, name: crm}\n---\n{kind: Resource, application: crm, type: data, code: a, " +
		"actions: [{code: " + strings.Join(actions, "}, {code: ") + "}]}\n"
}

func orderUses(ofMember, ofRule string) string {
	return fmt.Sprintf("---\n{kind: ResourceSet, application: crm, code: all, "+
		"members: [{type: data, code: a, actions: [%s]}]}\n---\n{kind: Rule, application: crm, type: data, code: a, "+
		"actions: [%s], identity: {type: user, name: li.wei}}\n", ofMember, ofRule)
}

func orderTree(nodes ...string) string {
	return "{kind: Tree, code: t, name: T, nodes: [" + strings.Join(nodes, ", ") + "]}\n"
}

// TestApplyOrder: the plan is tried, its steps come in the order that the platform takes, and the end is as the files
// say. Then the same files change nothing.
func TestApplyOrder(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	for i, c := range orders {
		p.inTenant(fmt.Sprintf("order%d", i))
		flags := []string{"--set", "all", "--prune", "--yes"}
		p.done(append([]string{"apply", "-f", p.file(c.before)}, flags...)...)
		file := p.file(c.after)
		got := p.run("diff", "-f", file, "--set", "all", "--prune")
		assert.Equal(t, 10, got.code, "%s: %s%s", c.name, got.err, got.out)
		rest := got.out
		for _, line := range c.want {
			_, after, found := strings.Cut(rest, line)
			rest = after
			if !assert.True(t, found, "%s: %q is not in its place in the plan: %s", c.name, line, got.out) {
				break
			}
		}
		got = p.run(append([]string{"apply", "-f", file}, flags...)...)
		assert.Equal(t, 0, got.code, "%s: %s%s", c.name, got.err, got.out)
		for range 2 {
			if got.code != 0 {
				break
			}
			got = p.run("diff", "-f", file, "--set", "all", "--prune")
			assert.Equal(t, 0, got.code, "%s, again: %s%s", c.name, got.err, got.out)
		}
	}
}

// TestApplyOrderStopped stops each of these applies after each of its changes in turn: the platform has done the last
// one, but the answer is lost. The same command goes on to the same end, and finds no drift.
func TestApplyOrderStopped(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	target, err := url.Parse(p.env["IDPCLI_URL"])
	require.NoError(t, err)
	left := atomic.Int64{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !changes(r) || strings.Contains(r.URL.Path, "/lock.") || left.Add(-1) > 0:
			proxy.ServeHTTP(w, r)
			return
		case left.Load() == 0:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	p.env["IDPCLI_URL"] = server.URL
	flags := []string{"--set", "all", "--prune", "--yes", "--wait", "0"}
	for i, c := range orders {
		for nth, code := int64(1), -1; code != 0; nth++ {
			require.Less(t, nth, int64(20))
			left.Store(1 << 30)
			p.inTenant(fmt.Sprintf("stopped%d-%d", i, nth))
			p.done(append([]string{"apply", "-f", p.file(c.before)}, flags...)...)
			file := p.file(c.after)
			left.Store(nth)
			first := p.run(append([]string{"apply", "-f", file}, flags...)...)
			code = first.code
			left.Store(1 << 30)
			got := p.run(append([]string{"apply", "-f", file}, flags...)...)
			require.Equal(t, 0, got.code, "%s, stopped at change %d: %s%s\n%s%s", c.name, nth, first.err, first.out,
				got.err, got.out)
			got = p.run("diff", "-f", file, "--set", "all", "--prune")
			require.Equal(t, 0, got.code, "%s, stopped at change %d: %s%s", c.name, nth, got.err, got.out)
		}
	}
}

// TestExchangeWithoutSet: an exchange of names needs a set. Both names exist before and after it, and only the set's
// state tells whether it is done. A step that the platform refuses for another reason is a fault, and does not wait.
func TestExchangeWithoutSet(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	p.done("apply", "-f", p.file("{kind: Application, name: a}\n---\n{kind: Application, name: b}\n"), "--yes")
	file := p.file("{kind: Application, name: a, was: b}\n---\nkind: Application\nname: b\nwas: a\n")
	for _, flags := range [][]string{nil, {"--set", "new"}} {
		got := p.run(append([]string{"apply", "-f", file, "--yes"}, flags...)...)
		assert.Equal(t, 2, got.code, got.out)
		assert.Contains(t, got.err, file+":5: Application b: names are exchanged, and only a set (--set)")
	}

	p.inTenant("more")
	p.done("apply", "-f", p.file(orderResource("read", "old")+orderUses("old", "old")), "--yes")
	p.done("grants", "add", "--to", "everyone", "crm:a", "old")
	got := p.run("apply", "-f", p.file(orderResource("read")+orderUses("read", "read")), "--yes")
	assert.Equal(t, 5, got.code, got.err+got.out)
	assert.Contains(t, got.out, "! ")
	assert.Contains(t, got.out, "auth_rules")
}
