package commands

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/operations"
)

// TestHelp checks that every command says what it does, with an example that it understands.
func TestHelp(t *testing.T) {
	t.Parallel()
	root, _ := Root(newPlay(t, answers{}.serve).terminalOnly(), operations.CompiledIn())
	count := 0
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		for _, inner := range command.Commands() {
			visit(inner)
		}
		assert.NotEmpty(t, command.Short, command.CommandPath())
		if !command.Runnable() || command.HasSubCommands() && command.Example == "" || command.Name() == "help" {
			return
		}
		count++
		require.NotEmpty(t, command.Example, command.CommandPath())
		for line := range strings.SplitSeq(command.Example, "\n") {
			words := wordsOf(line)
			require.Equal(t, "idp", words[0], "%s: %s", command.CommandPath(), line)
			found, rest, err := root.Find(words[1:])
			require.NoError(t, err, line)
			assert.NoError(t, found.ParseFlags(rest), line)
		}
	}
	for _, command := range root.Commands() {
		if command.Name() != "completion" { // cobra's own
			visit(command)
		}
	}
	assert.Greater(t, count, 250)
}

// wordsOf splits a line of an example as a shell does, without variables.
func wordsOf(line string) []string {
	var words []string
	for i, part := range strings.Split(strings.TrimSpace(line), "'") {
		if i%2 == 1 {
			words[len(words)-1] += part
			continue
		}
		if i > 0 && part != "" && part[0] != ' ' {
			words[len(words)-1] += part
			continue
		}
		words = append(words, strings.Fields(part)...)
		if strings.HasSuffix(part, " ") {
			words = append(words, "")
		}
	}
	return words
}

func TestUsage(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{}.serve)
	for _, args := range [][]string{
		{"nonsense"}, {"users", "nonsense"}, {"users", "get"}, {"users", "get", "a", "b"},
		{"users", "list", "--nonsense"},
		{"users", "list", "-o", "nonsense"}, {"users", "list", "-o", "template={{"}, {"users", "list", "--jq", "]"},
		{"users", "list", "--dry-run"}, {"users", "list", "--if-version", "1"}, {"login", "a", "b"}, {"context", "use"},
		{"api", "create-user", "--if-version", "3"}, {"api", "update-user", "7", "--idempotency-key", "k"},
		{"events", "watch", "--since", "soon"}, {"events", "watch", "--entity", "user"},
	} {
		got := p.run(args...)
		assert.Equal(t, 2, got.code, "%v: %s%s", args, got.out, got.err)
		assert.NotEmpty(t, got.err)
		assert.Empty(t, p.asked(), "%v", args)
	}
	assert.Equal(t, 0, p.run("users").code, "a noun alone shows its commands")
	assert.Contains(t, p.run("--help").out, "Records:")
}

func TestNotSignedIn(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{}.serve)
	p.env = nil
	got := p.run("users", "list")
	assert.Equal(t, 4, got.code)
	assert.Contains(t, got.err, "idp login URL")
	p.env = map[string]string{"IDPCLI_URL": p.server.URL}
	assert.Equal(t, 4, p.run("users", "list").code)
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := newPlay(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	p.ctx = ctx
	assert.Equal(t, 130, p.run("users", "list").code)
}

func TestDeletesAsk(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{"DELETE /v1/users/7": `{"id":"7"}`, "GET /v1/users/7": `{"id":"7"}`}.serve)
	got := p.run("api", "delete-user", "7")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "--yes is needed")
	assert.Empty(t, p.asked())
	assert.Equal(t, 0, p.run("api", "delete-user", "7", "--yes").code)
	assert.Equal(t, 0, p.run("api", "delete-user", "7", "--dry-run").code, "a dry run needs no yes")
	assert.Equal(t, "/v1/users/7?dry_run=true", p.last().target)

	p.terminal, p.input = true, "n\n"
	got = p.run("api", "delete-user", "7")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "Delete 7? [y/N]")
	assert.Empty(t, p.asked())
	p.input = "y\n"
	assert.Equal(t, 0, p.run("api", "delete-user", "7").code)
}

func TestVerboseHasNoSecrets(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{"POST /v1/users/7/change-password": `{}`}.serve)
	got := p.run("api", "change-password", "7", "--new-password", "geheim", "-v")
	require.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.err, "> POST https://idp.example/v1/users/7/change-password")
	assert.NotContains(t, got.err+got.out, "geheim")
	assert.NotContains(t, got.err+got.out, "t0")
}

func TestCurl(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{}.serve)
	got := p.run("api", "update-user", "7", "--display-name", "O'Li", "--if-version", "3", "--dry-run", "--curl")
	require.Equal(t, 0, got.code, got.err)
	assert.Equal(t, `curl -X PATCH 'https://idp.example/v1/users/7?dry_run=true' -H "Authorization: Bearer $IDPCLI_TOKEN" `+
		`-H 'Content-Type: application/json' -H 'X-Tenant-Id: acme' -H 'If-Match: "3"' `+
		`--data-binary '{"display_name":"O'\''Li"}'`+"\n", got.out)
	assert.Empty(t, p.asked())
}

func TestDownload(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		if strings.HasSuffix(r.URL.Path, "export") {
			w.Header().Set("Content-Type", "text/csv")
		}
		_, _ = io.WriteString(w, "bytes\x00")
	})
	assert.Equal(t, "bytes\x00", p.run("api", "get-avatar", "7").out)
	p.terminal = true
	assert.Equal(t, 2, p.run("api", "get-avatar", "7").code, "no image goes to a terminal")
	got := p.run("api", "export-users", "--format", "csv")
	assert.Equal(t, `bytes\u0000`, got.out, "nothing steers the terminal")
}
