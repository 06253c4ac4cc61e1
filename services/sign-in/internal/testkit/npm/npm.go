// Package npm runs unmodified clients from npm in tests.
package npm

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Install copies a folder with a package.json and its lock file, installs what they name there, and returns the copy.
// It skips the test where Node.js or the registry is missing.
func Install(t testing.TB, from string) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs ", tool)
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-progress")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm ci: %v\n%s", err, out)
	}
	return dir
}
