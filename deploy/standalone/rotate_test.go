package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
)

func ownKeys(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "encryption.key"))
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), ",")
}

// A start with the new key alone opens all that was sealed before: the services refuse to start otherwise.
func TestRotateTheFoldersKey(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	token := c.token("--tenant", "acme")
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "check", "--rotate-keys")
	assert.Equal(t, 1, code)
	assert.Contains(t, notes, "another platform runs")
	c.stop()

	old := ownKeys(t, c.Dir)
	out, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "check", "--rotate-keys")
	require.Zero(t, code, out+notes)
	assert.Contains(t, notes, "secrets are sealed again under the first encryption key")
	assert.Contains(t, out, "store of applications ok")
	rotated := ownKeys(t, c.Dir)
	require.Len(t, rotated, 1)
	require.NotEqual(t, old, rotated)
	assert.NotContains(t, out+notes, strings.SplitN(rotated[0], ":", 2)[1])
	c = startPlatform(t, c.Dir)
	assert.Equal(t, http.StatusOK, status(t, c, token, "/v1/users"), "the signing keys are the same")
	c.stop()

	// A rotation was interrupted after it had made its key: the next one completes it and makes no other key.
	made := secret.NewKey().Reveal()
	both := made + "," + rotated[0] + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "encryption.key"), []byte(both), 0o600))
	_, notes, code = runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "check", "--rotate-keys")
	require.Zero(t, code, notes)
	require.Equal(t, []string{made}, ownKeys(t, c.Dir))
	c = startPlatform(t, c.Dir)
	assert.Equal(t, http.StatusOK, status(t, c, token, "/v1/users"))
}

func TestRotateConfiguredKeys(t *testing.T) {
	t.Parallel()
	a, b := "IDP_ENCRYPTION_KEYS="+secret.NewKey().Reveal(), "IDP_ENCRYPTION_KEYS="+secret.NewKey().Reveal()
	both := b + "," + strings.TrimPrefix(a, "IDP_ENCRYPTION_KEYS=")
	c := startPlatform(t, t.TempDir(), a)
	token := c.token("--tenant", "acme")
	c.stop()
	_, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir, b}, "check", "--rotate-keys")
	assert.Equal(t, 1, code, "the old key is needed once more")
	assert.Contains(t, notes, "key that is not configured")
	_, notes, code = runs(t, []string{"IDP_DATA_DIR=" + c.Dir, both}, "check", "--rotate-keys")
	require.Zero(t, code, notes)
	assert.NoFileExists(t, filepath.Join(c.Dir, "encryption.key"))
	c = startPlatform(t, c.Dir, b)
	assert.Equal(t, http.StatusOK, status(t, c, token, "/v1/users"))
}
