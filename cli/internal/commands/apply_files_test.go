package commands

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFiles reads what -f names: several files, folders with links to others and to themselves, standard input.
func TestFiles(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":[]}`)
	})
	root := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		text := "{kind: Subscription, name: " + filepath.Base(name) + ", event_types: ['*'], delivery: {type: nats}}"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	link := func(to, name string) {
		require.NoError(t, os.Symlink(filepath.Join(root, to), filepath.Join(root, name)))
	}
	one, two := write("one.txt"), write("two")
	write("config/a.yaml")
	write("config/not.txt")
	write("config/below/b.yml")
	write("config/.hidden/c.yaml")
	write("elsewhere/d.yaml")
	write("elsewhere/.e.yaml")
	link("elsewhere", "config/link")
	link("config", "config/below/up")
	link("elsewhere/.e.yaml", "config/e.yaml")
	link("config", "linked")
	p.input = "{kind: Subscription, name: in, event_types: ['*'], delivery: {type: nats}}"
	names := func(args ...string) string {
		t.Helper()
		got := p.run(append([]string{"diff", "--jq", `[.steps[].key] | join(" ")`}, args...)...)
		require.Equal(t, 10, got.code, got.err)
		return strings.TrimSpace(got.out)
	}
	config := filepath.Join(root, "config")
	assert.Equal(t, "one.txt two in", names("-f", one, "-f", two, "-f", "-"))
	assert.Equal(t, "a.yaml b.yml .e.yaml d.yaml", names("-f", config))
	assert.Equal(t, "a.yaml b.yml .e.yaml d.yaml", names("-f", filepath.Join(root, "linked")))
	assert.Equal(t, "d.yaml a.yaml b.yml .e.yaml",
		names("-f", filepath.Join(root, "elsewhere"), "-f", config, "-f", config))

	link("gone", "config/x")
	for _, args := range [][]string{
		{"-f", config}, {"-f", filepath.Join(root, "gone")}, {"-f", one, "-f", t.TempDir()}, {"-f", "-", "-f", "-"},
	} {
		got := p.run(append([]string{"diff"}, args...)...)
		assert.Equal(t, 2, got.code, "%s: %s", args, got.out)
	}
	p.input = "\nkind: Hat"
	assert.Contains(t, p.run("diff", "-f", "-").err, `standard input:2: there is no kind "Hat"`)
}
