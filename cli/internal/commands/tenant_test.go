package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMistypedTenant lets no administrator reach a tenant by mistake: one without any record is not there, unless the
// command says that it is new.
func TestMistypedTenant(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	c := p.counted(t)
	for _, args := range [][]string{
		{"users", "list"}, {"users", "create", "wang.fang"}, {"apps", "create", "crm"}, {"export", "-f", t.TempDir()},
		{"diff", "-f", p.file(smallSet)}, {"apply", "-f", p.file(smallSet), "--yes", "--set", "a"},
	} {
		c.take()
		got := p.run(append(args, "--tenant", "acmee")...)
		assert.Equal(t, 3, got.code, "%s: %s", args, got.out)
		assert.Contains(t, got.err, `there is no tenant "acmee"; --create-tenant makes it`)
		counted := c.take()
		assert.Zero(t, counted.writes, args)
		assert.Zero(t, counted.tries, args)
	}
	got := p.run("doctor", "--tenant", "acmee")
	assert.Equal(t, 10, got.code)
	assert.Contains(t, got.out, "there is no tenant acmee")

	assert.Empty(t, p.done("users", "list", "--tenant", "acmee", "--create-tenant", "-o", "name").out)
	pointer := p.file("{kind: Tree, code: t, name: T, nodes: [{code: a, name: A, pointer: t/b}]}")
	p.run("diff", "-f", pointer, "--tenant", "acmee", "--create-tenant")
	assert.Equal(t, 3, p.run("users", "list", "--tenant", "acmee").code, "a look makes no tenant")
	got = p.run("apps", "create", "crm", "--tenant", "acmee", "--create-tenant")
	require.Equal(t, 0, got.code, got.err)
	assert.Equal(t, "crm\n", p.done("apps", "list", "--tenant", "acmee", "-o", "name").out)
	c.take()
	p.done("apps", "list", "--tenant", "acmee")
	assert.Equal(t, 1, c.take().reads, "what is there is remembered")

	p.done("functions", "create", "f", "-f", p.file("function main() {}"), "--tenant", "other", "--create-tenant")
	assert.Equal(t, "f\n", p.done("functions", "list", "--tenant", "other", "-o", "name").out)
}
