package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestUnmanaged lists rules that somebody has made by hand, on request.
func TestUnmanaged(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("unmanaged")
	p.done("apply", "-f", p.file(access), "--set", "a", "--yes")
	p.done("users", "create", "wang.fang")
	p.done("grants", "add", "--to", "wang.fang", "crm:invoice", "read")
	p.done("apps", "create", "other")
	p.done("resources", "create", "other:x", "--actions", "read")
	p.done("grants", "add", "--to", "wang.fang", "other:x", "read")
	file := p.file(access)
	got := p.run("diff", "-f", file, "--set", "a")
	assert.Equal(t, 0, got.code, got.err)
	assert.NotContains(t, got.out, "wang.fang")
	got = p.run("diff", "-f", file, "--set", "a", "--unmanaged")
	assert.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.out, "? Rule user wang.fang may use crm:data:invoice [read]\n"+
		"    made by hand: idp grants revoke ")
	assert.Contains(t, got.out, "; 1 rule was made by hand\n")
	assert.NotContains(t, got.out, "other")
	got = p.run("diff", "-f", file, "--unmanaged", "--jq", ".unmanaged[] | .kind, .key, .actions[]")
	assert.Equal(t, "Rule\nuser wang.fang may use crm:data:invoice\nread\n", got.out)
	got = p.run("diff", "-f", p.file("{kind: Application, name: crm}"), "--unmanaged", "--jq", ".unmanaged | length")
	assert.Equal(t, "3\n", got.out, "the files need no rule for it")
}
