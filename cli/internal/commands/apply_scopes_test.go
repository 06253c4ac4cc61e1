package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPlanWithReadScopes plans with read scopes alone: what the caller may not do is not tried, and the plan says which
// scope it needs. apply does nothing then.
func TestPlanWithReadScopes(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("readers")
	p.done("apply", "-f", p.file(access), "--yes")
	reader := p.done("api", "create-application", "--data", `{"name":"reader","category":"4","scopes":["users:read",`+
		`"applications:read","permissions:read","organization:read","organization:write","identity-sources:read",`+
		`"events:read"]}`,
		"--jq", ".client_id, .client_secret")
	id, secret, _ := strings.Cut(strings.TrimSpace(reader.out), "\n")
	p.env["IDPCLI_TOKEN"] = ""
	p.env["IDPCLI_CLIENT_ID"], p.env["IDPCLI_CLIENT_SECRET_FILE"] = id, p.file(secret)
	text := strings.Replace(access, "name: Sales", "name: 销售", 1)
	file := p.file(strings.Replace(text, "[read], id", "[write], id", 1))
	got := p.run("diff", "-f", file)
	require.Equal(t, 10, got.code, got.err+got.out)
	assert.Contains(t, got.out, "    actions: [read] → [write]\n    not tried: it needs the scope permissions:write\n")
	assert.Contains(t, got.out, "~ Node company/sales")
	assert.Contains(t, got.out, "access: ")
	assert.Contains(t, got.out, "0 to create, 2 to change, 0 to delete; 5 are as the files say; 1 not tried\n")
	got = p.run("apply", "-f", file, "--yes")
	assert.Equal(t, 4, got.code, got.err)
	assert.Contains(t, got.err, "1 of these steps need scopes that the caller lacks: permissions:write")
	assert.Equal(t, 10, p.run("diff", "-f", file).code)
}
