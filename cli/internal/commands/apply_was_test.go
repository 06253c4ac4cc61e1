package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWas renames an application and a node in place: they keep their ids, and what refers to them stays.
func TestWas(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("was")
	const before = smallSet + "---\n{kind: Rule, application: crm, type: data, code: invoice, actions: [read], " +
		"identity: {type: node, name: company/rd}}\n"
	p.done("apply", "-f", p.file(before), "--set", "s", "--yes")
	ids := func() string {
		return p.done("api", "list-applications", "--jq", ".items[].id").out +
			p.done("api", "list-tree-nodes", "--object-code", "company", "--recursive=true", "--jq", ".items[].id").out
	}
	was := ids()
	after := strings.NewReplacer("name: crm", "name: sales\nwas: crm", "application: crm", "application: sales",
		"code: rd", "code: dev, was: rd", "company/rd", "company/dev").Replace(before)
	file := p.file(after)
	for _, c := range []struct{ text, want string }{
		{after + "---\n{kind: Application, name: crm}\n", ":3: was names the same record as "},
		{after + "---\n{kind: Application, name: x, was: crm}\n", ": was names the same record as "},
	} {
		got := p.run("diff", "-f", p.file(c.text))
		assert.Equal(t, 2, got.code, got.out)
		assert.Contains(t, got.err, c.want)
	}
	got := p.run("apply", "-f", file, "--set", "s", "--prune", "--yes")
	require.Equal(t, 0, got.code, got.err+got.out)
	assert.Contains(t, got.out, "    name: crm → sales\n")
	assert.Contains(t, got.out, "    code: rd → dev\n")
	assert.Contains(t, got.out, "0 to create, 2 to change, 0 to delete; ")
	assert.Equal(t, was, ids())
	for _, again := range []string{after, strings.NewReplacer("\nwas: crm", "", ", was: rd", "").Replace(after)} {
		got = p.run("apply", "-f", p.file(again), "--set", "s", "--prune", "--yes")
		require.Equal(t, 0, got.code, got.err+got.out)
		assert.Contains(t, got.out, "no difference")
	}
	// In a tenant without them they are made.
	p.inTenant("new")
	got = p.run("apply", "-f", file, "--yes")
	require.Equal(t, 0, got.code, got.err+got.out)
	assert.Equal(t, "sales\n", p.done("api", "list-applications", "--jq", ".items[].name").out)
}
