package commands

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/session"
)

// TestWrongUsage: what is wrong is told by its name, as a problem document where -o json asks for one, even if the flag
// before it is wrong.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	p := newPlay(t, signing)
	p.input = "s3cret\n"
	for _, c := range []struct{ command, url, want string }{
		{"users list", "idp.example", "must begin with https://"},
		{"users list", "localhost:8080", "must begin with https://"},
		{"users list", "ftp://idp.example", "must begin with https://"},
		{"login idp.example --client-id crm", "", "must begin with https://"},
		{"users list --bogus", "", "unknown flag: --bogus"},
		{"users list --wait 5", "", "missing unit"},
		{"users list --wait -1s", "", "must not be negative"},
		{"users list --timeout -1s", "", "must not be negative"},
		{"users lst", "", `no command \"lst\"`},
	} {
		p.env["IDPCLI_URL"] = p.server.URL
		if c.url != "" {
			p.env["IDPCLI_URL"] = c.url
		}
		for _, form := range []string{"-o json", "--output=jsonl"} {
			got := p.run(strings.Fields(c.command + " " + form)...)
			assert.Equal(t, 2, got.code, c.command+got.err)
			assert.True(t, strings.HasPrefix(got.err, `{"code":"idp","detail":"`), got.err)
			assert.Contains(t, got.err, c.want)
			assert.Empty(t, p.asked())
		}
		got := p.run(strings.Fields(c.command)...)
		assert.True(t, strings.HasPrefix(got.err, "idp: "), got.err)
	}
}

// TestWaitsForAPlatformThatIsAway: a platform that drops connections is asked as long as --wait says, however often
// that is, also where a token is asked for.
func TestWaitsForAPlatformThatIsAway(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(signing)}
	go func() { _ = server.Serve(&away{listener, 5}) }()
	t.Cleanup(func() { _ = server.Close() })
	p := newPlay(t, signing)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s3cret"), 0o600))
	p.env = map[string]string{
		"IDPCLI_URL": "http://" + listener.Addr().String(), "IDPCLI_CLIENT_ID": "crm",
		"IDPCLI_CLIENT_SECRET_FILE": secret,
	}
	got := p.run("api", "get-user", "7", "--wait", "10m")
	assert.Equal(t, 0, got.code, got.err)
}

// away drops the first connections.
type away struct {
	net.Listener
	drops int
}

func (a *away) Accept() (net.Conn, error) {
	for ; a.drops > 0; a.drops-- {
		connection, err := a.Listener.Accept()
		if err != nil {
			return nil, err
		}
		_ = connection.Close()
	}
	return a.Listener.Accept()
}

// TestInterruptedQuestion: Ctrl-C ends a command that waits for an answer, or for a password.
func TestInterruptedQuestion(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"login", "URL"}, {"login", "URL", "--client-id", "crm"}} {
		p := newPlay(t, signing)
		input, never := io.Pipe()
		t.Cleanup(func() { _ = never.Close() })
		ctx, interrupt := context.WithCancel(t.Context())
		asked := &until{text: ": ", then: interrupt}
		args[1] = p.server.URL
		code := Main(ctx, session.Terminal{
			In: input, Out: io.Discard, Err: asked, InIsTerminal: true, Getenv: func(string) string { return "" },
			ConfigPath: p.config, ReadPassword: func() (string, error) {
				_, err := io.ReadAll(input)
				return "", err
			},
		}, args)
		assert.Equal(t, 130, code)
	}
}

// until does something once a text was written.
type until struct {
	text string
	then func()
}

func (u *until) Write(text []byte) (int, error) {
	if strings.Contains(string(text), u.text) {
		u.then()
	}
	return len(text), nil
}
