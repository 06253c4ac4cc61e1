package commands

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/operations"
)

// TestManual writes the manual, and looks for the description and the example of every command.
func TestManual(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{}.serve)
	folder := filepath.Join(t.TempDir(), "man1")
	got := p.run("man", folder)
	require.Equal(t, 0, got.code, got.err)
	pages, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("%d pages in %s\n", len(pages), folder), got.out)

	root, _ := Root(p.terminalOnly(), operations.CompiledIn())
	var look func(*cobra.Command)
	look = func(command *cobra.Command) {
		file := strings.ReplaceAll(command.CommandPath(), " ", "-") + ".1"
		text, err := os.ReadFile(filepath.Join(folder, file))
		require.NoError(t, err)
		page := plainText(string(text))
		assert.Contains(t, page, ".SH DESCRIPTION", file)
		assert.Contains(t, page, command.Short, file)
		for line := range strings.SplitSeq(command.Long+"\n"+command.Example, "\n") {
			assert.Contains(t, page, strings.TrimSpace(strings.ReplaceAll(line, "`", "")), file)
		}
		for _, inner := range command.Commands() {
			look(inner)
		}
	}
	look(root)
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("groff is not installed: the pages are not set")
	}
	set, err := exec.Command("groff", "-man", "-ww", "-Kutf8", "-Tutf8",
		filepath.Join(folder, "idp-events-watch.1")).CombinedOutput()
	require.NoError(t, err, string(set))
	assert.NotContains(t, string(set), "warning")

	require.NoError(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o600))
	assert.Equal(t, 2, p.run("man", filepath.Join(folder, "file")).code, "a file is no folder")
}

// plainText undoes what roff writes for -, . and ' in texts.
func plainText(page string) string {
	return strings.NewReplacer(
		`\-`, "-", `\&`, "", `\(aq`, "'", `\\`, `\`, `\fB`, "", `\fR`, "", `\fP`, "",
	).Replace(page)
}

// TestCompletionScripts lets each shell that is installed parse its script.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for shell, check := range map[string][]string{
		"bash": {"bash", "-n"}, "zsh": {"zsh", "-n"}, "fish": {"fish", "--no-execute"},
		"powershell": {"pwsh", "-NoProfile", "-File"},
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			got := newPlay(t, answers{}.serve).run("completion", shell)
			require.Equal(t, 0, got.code, got.err)
			require.Contains(t, got.out, "__complete")
			if _, err := exec.LookPath(check[0]); err != nil {
				t.Skipf("%s is not installed: its script is not parsed", check[0])
			}
			file := filepath.Join(t.TempDir(), "idp.ps1")
			require.NoError(t, os.WriteFile(file, []byte(got.out), 0o600))
			out, err := exec.Command(check[0], append(check[1:], file)...).CombinedOutput()
			assert.NoError(t, err, string(out))
		})
	}
}
