package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/session"
)

// play is a command line with a platform of a test.
type play struct {
	t        testing.TB
	server   *httptest.Server
	config   string // the file with the contexts
	env      map[string]string
	input    string
	terminal bool // both standard input and output
	ctx      context.Context
	restart  func() // of a real platform

	mu   sync.Mutex
	list []asked // without those for tokens
}

type asked struct {
	method, target, body string
	header               http.Header
}

// ended is what a run of the program left.
type ended struct {
	code     int
	out, err string
}

// newPlay starts a platform. Its variables make the context, with a token.
func newPlay(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *play {
	t.Helper()
	p := &play{t: t, config: filepath.Join(t.TempDir(), "idp", "config.yaml"), ctx: t.Context()}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.mu.Lock()
		p.list = append(p.list, asked{r.Method, r.URL.RequestURI(), string(body), r.Header.Clone()})
		p.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.env = map[string]string{"IDPCLI_URL": p.server.URL, "IDPCLI_TOKEN": "t0", "IDPCLI_TENANT": "acme"}
	return p
}

// run runs the program.
func (p *play) run(args ...string) ended {
	p.t.Helper()
	p.mu.Lock()
	p.list = nil
	p.mu.Unlock()
	var out, notes bytes.Buffer
	input := strings.NewReader(p.input)
	code := Main(p.ctx, session.Terminal{
		In: input, Out: &out, Err: &notes, InIsTerminal: p.terminal, OutIsTerminal: p.terminal,
		Getenv: func(name string) string { return p.env[name] }, ConfigPath: p.config,
		CachePath:    filepath.Join(filepath.Dir(p.config), "cache"),
		ReadPassword: func() (string, error) { return "s3cret", nil },
	}, args)
	shown := func(text string) string { return strings.ReplaceAll(text, p.server.URL, "https://idp.example") }
	return ended{code, shown(out.String()), shown(notes.String())}
}

// asked returns the requests of the last run.
func (p *play) asked() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}

// last is the last request.
func (p *play) last() asked {
	p.t.Helper()
	asked := p.asked()
	require.NotEmpty(p.t, asked)
	return asked[len(asked)-1]
}

// answers are the bodies of a platform, by method and path.
type answers map[string]string

func (a answers) serve(w http.ResponseWriter, r *http.Request) {
	body, ok := a[r.Method+" "+r.URL.Path]
	if !ok {
		refuse(w, http.StatusNotFound, "not_found")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

// or answers what is not there as another platform does.
func (a answers) or(other http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := a[r.Method+" "+r.URL.Path]; ok {
			a.serve(w, r)
			return
		}
		other(w, r)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"status": status, "code": code, "detail": "because", "errors": []map[string]string{
			{"location": "body.email", "message": "must be an address"},
		},
	})
}

// terminalOnly is a terminal for trees of commands that do not run.
func (p *play) terminalOnly() session.Terminal {
	return session.Terminal{
		In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" },
	}
}
