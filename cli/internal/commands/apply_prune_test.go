package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPruneOfMore prunes records with which others go that somebody else has made: each is in the plan, counts, and
// wants --cascade; and who loses access by it is told.
func TestPruneOfMore(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("more")
	p.done("users", "create", "wang.fang")
	set := []string{"--set", "crm", "--prune"}
	apply := func(text string, more ...string) ended {
		return p.run(append(append([]string{"apply", "-f", p.file(text), "--yes"}, set...), more...)...)
	}
	require.Equal(t, 0, apply(smallSet+"---\n{kind: ResourceSet, application: crm, code: all}\n").code)
	p.done("grants", "add", "--to", "user:wang.fang", "crm:offer", "read")
	p.done("grants", "add", "--to", "node:company/platform", "crm:invoice", "read")
	p.done("api", "add-resource-set-members", p.idOf("list-resource-sets", "all"), "--data",
		`{"members":[{"resource_id":"`+p.idOf("list-resources", "offer")+`"}]}`)
	p.done("accounts", "create", "crm", "liwei", "--user", "li.wei")
	p.done("members", "add", "company/platform", "li.wei")

	const other = "{kind: Tree, code: t, name: T}"
	got := apply(other, "--all")
	assert.Equal(t, 2, got.code, got.err)
	for _, line := range []string{
		"- Rule user wang.fang may use crm:data:offer\n    goes with Resource crm:data:offer, and is not of the set\n",
		"- Rule node company/platform may use crm:data:invoice\n    goes with Resource crm:data:invoice, and is not",
		"- ResourceSetMember crm:all/crm:data:offer\n    goes with ",
		"- Account crm/liwei\n    goes with Application crm, and is not of the set\n",
		"- Membership company/platform li.wei\n    goes with Node company/platform, and is not of the set\n",
		"- ResourceSet crm:all\n    goes with Application crm\n",
		"access (incomplete): nobody gains, 2 people lose\n",
		"    not compared: Membership company/platform li.wei: only ", "\n1 to create, 0 to change, 13 to delete;",
	} {
		assert.Contains(t, got.out, line)
	}
	assert.Contains(t, got.err, "13 records would be deleted, and --max-deletes is 10; 5 of them are not of the set: "+
		"--cascade")
	got = apply(other, "--cascade")
	assert.Equal(t, 2, got.code, got.err)
	assert.Contains(t, got.out, "- Application crm\n", "the plan is shown before the refusal")
	assert.NotContains(t, got.err, "--cascade")
	got = apply(other, "--max-deletes", "13")
	assert.Equal(t, 2, got.code, got.err)
	assert.NotContains(t, got.err, "13 records")
	p.done("grants", "list", "--app", "crm")
	got = apply(other, "--max-deletes", "13", "--cascade")
	require.Equal(t, 0, got.code, got.err+got.out)
	assert.Equal(t, "t\n", p.done("api", "list-core-objects", "--jq", ".[].code").out)
	assert.Empty(t, p.done("api", "list-applications", "--jq", ".items[].name").out)
	got = apply(other)
	assert.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.out, "no difference")
}

// idOf is the id of the record of crm that has a code.
func (p *play) idOf(list, code string) string {
	p.t.Helper()
	of := p.done("api", "list-applications", "--jq", `.items[] | select(.name == "crm").id`).out
	id := p.done("api", list, "--application-id", of[:len(of)-1], "--code", code, "--jq", ".items[0].id").out
	return id[:len(id)-1]
}

// TestStillNamed keeps a record that files still name, although they no longer have it themselves.
func TestStillNamed(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("named")
	set := []string{"--set", "crm", "--prune", "--yes"}
	whole := many(3, 12, 6)
	got := p.run(append([]string{"apply", "-f", p.file(whole)}, set...)...)
	require.Equal(t, 0, got.code, got.err+got.out)
	_, rest, _ := strings.Cut(whole, "---\n")
	file := p.file(rest)
	got = p.run(append([]string{"apply", "-f", file}, set...)...)
	assert.Equal(t, 2, got.code, got.out)
	assert.Contains(t, got.err, "Application crm is no longer in them, and would be deleted, but is still named by\n"+
		"    "+file+":1: Resource crm:data:r0\n")
	assert.Contains(t, got.err, "\n    13 more\n")

	// The tree is no longer there, but has a node that somebody else has made.
	p.done("nodes", "create", "company/own", "--under", "company/n0", "--name", "Own")
	short, _, _ := strings.Cut(whole, "---\nkind: Tree")
	got = p.run(append([]string{"apply", "-f", p.file(short)}, set...)...)
	assert.Equal(t, 2, got.code, got.out)
	assert.Contains(t, got.err, "Node company/n0 is no longer in them, and would be deleted, but is still named by\n"+
		"    Node company/own, which is neither the set's nor in the files\n")
	assert.Equal(t, 0, p.run(append([]string{"diff", "-f", p.file(whole)}, set[:2]...)...).code, "all is there")
}

// TestRulesAlike edits and removes one of several rules about the same: the others are what they were, and the set does
// not take one for another.
func TestRulesAlike(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("alike")
	const app = "{kind: Application, name: crm}\n---\n{kind: Resource, application: crm, type: data, code: a, " +
		"actions: [{code: r}, {code: w}, {code: x}]}\n"
	rules := func(actions ...string) string {
		out := app
		for _, action := range actions {
			out += "---\n{kind: Rule, application: crm, type: data, code: a, identity: {type: user, name: li.wei}, " +
				action + "}\n"
		}
		return out
	}
	const r, w, x = "actions: [r]", "actions: [w]", "actions: [x]"
	const conditional = r + ", condition: 'context.a == 1'"
	for _, c := range []struct{ text, want string }{
		{rules(r, w), "4 to create, 0 to change, 0 to delete"},
		{rules(conditional, w), "0 to create, 1 to change, 0 to delete"}, // the first is edited
		{rules(w), "0 to create, 0 to change, 1 to delete"},              // and removed
		{rules(x, r, w), "2 to create, 0 to change, 0 to delete"},
		{rules(w, r), "0 to create, 0 to change, 1 to delete"},
		{rules(r, w), "no difference"},
		{rules(r), "0 to create, 0 to change, 1 to delete"},
	} {
		got := p.run("apply", "-f", p.file(c.text), "--set", "crm", "--prune", "--yes")
		require.Equal(t, 0, got.code, got.err+got.out)
		assert.Contains(t, got.out, c.want)
		got = p.run("diff", "-f", p.file(c.text), "--set", "crm", "--prune")
		require.Equal(t, 0, got.code, got.err+got.out)
	}
}
