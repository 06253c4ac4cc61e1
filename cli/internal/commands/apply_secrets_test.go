package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSecrets keeps secrets out of all that diff and apply show and keep. Those that stand in files are refused.
func TestSecrets(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	const connection = "kind: Connection\nprovider_code: github\ndisplay_name: Our\nconfig_fields:\n" +
		"  ClientId: Iv1.8a61f9b3a7aba766\n  ClientSecret: "
	for _, c := range []struct{ text, want string }{
		{connection + "s3cret", ":6: config_fields.ClientSecret is a secret, which must not stand in a file"},
		{connection + "{from: s3cret}", ":6: config_fields.ClientSecret is a secret"},
		{strings.Replace(connection, "github", "git", 1) + "s3cret", ":2: there is no provider "},
	} {
		for _, command := range []string{"diff", "apply"} {
			for _, flag := range []string{"-v", "--curl", "-o=json", "--dry-run"} {
				got := p.run(command, "-f", p.file(c.text), flag)
				assert.Equal(t, 2, got.code, got.err)
				assert.Contains(t, got.out+got.err, c.want)
				assert.NotContains(t, got.out+got.err, "s3cret")
			}
		}
	}

	state := filepath.Join(t.TempDir(), "state.json")
	file := p.file(connection + "{from: env:GITHUB}")
	got := p.run("diff", "-f", file)
	require.Equal(t, 10, got.code, got.err)
	assert.Equal(t, "+ Connection github/Our  "+file+`:1
    config_fields.ClientId: Iv1.8a61f9b3a7aba766
    config_fields.ClientSecret: (secret from env:GITHUB)
    display_name: Our
    provider_code: github
1 to create, 0 to change, 0 to delete; 0 are as the files say
`, got.out)
	for _, args := range [][]string{
		{"diff", "-o", "json"}, {"apply", "--state", state, "--yes", "-v"}, {"diff", "--rotate", "-v"},
		{"diff", "--rotate", "-o", "json"}, {"apply", "--state", state, "--yes", "--rotate", "-v"},
	} {
		got = p.run(append(args, "-f", file)...)
		require.Contains(t, []int{0, 10}, got.code, got.err)
		assert.NotContains(t, got.out+got.err, "s3cret", args)
		assert.Contains(t, got.out+got.err, "env:GITHUB", args)
	}
	kept, err := os.ReadFile(state)
	require.NoError(t, err)
	assert.Contains(t, string(kept), "env:GITHUB")
	assert.NotContains(t, string(kept), "s3cret")
}
