package commands

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTokensAreKept: the commands of a context share a token until it ends. Only its owner can read the file. A token
// that the platform refuses is replaced once.
func TestTokensAreKept(t *testing.T) {
	t.Parallel()
	given, good := atomic.Int64{}, atomic.Value{}
	good.Store("")
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/oauth2/token":
			fmt.Fprintf(w, `{"access_token":"t0ken%d","expires_in":3600}`, given.Add(1))
		case good.Load() != "" && r.Header.Get("Authorization") != "Bearer "+good.Load().(string):
			refuse(w, http.StatusUnauthorized, "unauthenticated")
		default:
			signing(w, r)
		}
	})
	p.env, p.input = nil, "s3cret\n"
	require.Equal(t, 0, p.run("login", p.server.URL, "--client-id", "crm", "--context", "a").code)
	require.EqualValues(t, 1, given.Load())
	get := func(want, tokens int, flags ...string) {
		t.Helper()
		before := given.Load()
		got := p.run(append([]string{"api", "get-user", "7"}, flags...)...)
		assert.Equal(t, want, got.code, got.err)
		assert.EqualValues(t, tokens, given.Load()-before)
	}
	get(0, 1)
	get(0, 0)
	assert.Equal(t, "Bearer t0ken2", p.last().header.Get("Authorization"))
	get(0, 1, "--tenant", "initech")
	get(0, 0)
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(p.config), "cache", "token-*.json"))
		require.NoError(t, err)
		return found
	}
	require.Len(t, files(), 2)
	for _, file := range files() {
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "s3cret")
	}
	kept, err := os.ReadFile(p.config)
	require.NoError(t, err)
	assert.NotContains(t, string(kept), "t0ken")

	good.Store("t0ken4") // the one that is kept was revoked
	get(0, 1)
	get(0, 0)
	good.Store("none") // and so is each new one
	get(4, 1)

	good.Store("")
	get(0, 0)
	for _, file := range files() { // what has ended, or is damaged, is not used
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		year := strings.Index(string(text), `"until":"20`) + len(`"until":"`)
		require.NoError(t, os.WriteFile(file, []byte(string(text[:year])+"19"+string(text[year+2:])), 0o600))
	}
	get(0, 1)
	for _, file := range files() {
		require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	}
	get(0, 1)

	require.Equal(t, 0, p.run("context", "rename", "a", "b").code)
	assert.Empty(t, files())
	get(0, 1)
	require.Equal(t, 0, p.run("context", "delete", "b", "--yes").code)
	assert.Empty(t, files(), "with the context its tokens are forgotten")
}
