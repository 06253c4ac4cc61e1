package commands

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExitCodes answers with every problem of the platform to a read and to changes with and without a key.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status       int
		code         string
		read, change int
		advice       string // a part of what to do
	}{
		{400, "invalid_parameters", 5, 5, "body.email: must be an address"},
		{401, "unauthenticated", 4, 4, "idp login"},
		{403, "forbidden", 4, 4, "needs the scope users:"},
		{404, "not_found", 3, 3, "--tenant"},
		{405, "method_not_allowed", 5, 5, "may be older"},
		{409, "already_exists", 5, 5, "body.email"},
		{409, "has_children", 5, 5, "because"},
		{409, "in_use", 5, 5, "body.email"},
		{409, "invalid_state", 5, 5, "because"},
		{409, "request_in_progress", 5, 5, "a little later"},
		{412, "version_mismatch", 6, 6, "read the record again"},
		{413, "too_large", 5, 5, "Send less"},
		{415, "unsupported_media_type", 5, 5, "--content-type"},
		{422, "idempotency_key_reused", 5, 5, "leave --idempotency-key out"},
		{429, "rate_limited", 7, 7, "--wait"},
		{500, "internal", 7, 8, "request r-1"},
		{502, "outcome_unknown", 7, 8, "idp doctor"},
		{503, "unavailable", 7, 7, "--wait"},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-Id", "r-1")
				refuse(w, c.status, c.code)
			})
			read := p.faulty(c.read, "api", "get-user", "7")
			assert.Contains(t, read, c.advice)
			assert.Contains(t, read, strconv.Itoa(c.status)+" "+c.code)
			change := p.faulty(c.change, "api", "create-user", "--username", "a")
			if c.change != 8 {
				assert.Contains(t, change, c.advice)
			}
			p.faulty(c.change, "api", "update-user", "7", "--display-name", "a")
			p.faulty(c.change, "api", "delete-user", "7", "--yes")

			got := p.run("api", "get-user", "7", "--wait", "0", "-o", "json")
			var document map[string]any
			require.NoError(t, json.Unmarshal([]byte(got.err), &document))
			assert.Equal(t, c.code, document["code"], "with -o json the problem document comes as it is")
		})
	}
}

// faulty runs a command against a platform that does not do what it should, and returns what is said about it.
func (p *play) faulty(code int, args ...string) string {
	p.t.Helper()
	got := p.run(append([]string{"--timeout", "1m", "--wait", "0"}, args...)...)
	assert.Equal(p.t, code, got.code, "%v: %s", args, got.err)
	assert.Empty(p.t, got.out, "errors go to standard error")
	switch asked := p.asked(); {
	case code != 8:
	case len(asked) > 0 && asked[len(asked)-1].method == http.MethodPost:
		key := asked[len(asked)-1].header.Get("Idempotency-Key")
		assert.Contains(p.t, got.err, "--idempotency-key "+key, "the key finds out")
	default:
		assert.Contains(p.t, got.err, "Read the record")
	}
	return got.err
}

// TestFaultyProxy breaks connections and answers as proxies and captive portals do, to a read and to changes.
func TestFaultyProxy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		answer       func(http.ResponseWriter, *http.Request)
		read, change int
		says         string
	}{
		{"cut before the answer", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, 7, 8, "no answer"},
		{"cut within the answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"id":`)
		}, 7, 8, "unexpected EOF"},
		{"slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 7, 8, "longer than 100ms"},
		{"slow within the answer", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"id":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 7, 8, "longer than 100ms"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>Sign in to this network</html>")
		}, 7, 8, "not JSON"},
		{"truncated JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"7"`)
		}, 7, 8, "not JSON"},
		{"moved", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				panic(http.ErrAbortHandler) // a read follows
			}
			http.Redirect(w, r, "https://elsewhere.example"+r.URL.Path, http.StatusMovedPermanently)
		}, 7, 5, ""},
		{"502 of a proxy", bare(http.StatusBadGateway), 7, 8, "502"},
		{"503 of a proxy", bare(http.StatusServiceUnavailable), 7, 8, "503"},
		{"504 of a proxy", bare(http.StatusGatewayTimeout), 7, 8, "504"},
		{"403 of a proxy", bare(http.StatusForbidden), 4, 4, "the scope users:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, timeout := newPlay(t, c.answer), "1m"
			if strings.HasPrefix(c.name, "slow") {
				timeout = "100ms"
			}
			says := func(code int, args ...string) {
				assert.Contains(t, p.faulty(code, append(args, "--timeout", timeout)...), c.says)
			}
			says(c.read, "api", "get-user", "7")
			says(c.read, "users", "list", "--all")
			says(c.change, "api", "create-user", "--username", "a")
			says(c.change, "api", "update-user", "7", "--display-name", "a")
			says(c.change, "api", "delete-user", "7", "--yes")
		})
	}
}

// bare answers as a proxy does that knows no problem documents.
func bare(status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<h1>proxy</h1>", status) }
}

// nobody listens here; a port that was closed could be another test's by now.
const nobody = "http://127.0.0.1:1"

// TestNobodyThere has no server: nothing was sent, so nothing was changed.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{}.serve)
	p.env["IDPCLI_URL"] = nobody
	p.faulty(7, "api", "get-user", "7")
	assert.Contains(t, p.faulty(7, "api", "create-user", "--username", "a"), "Nothing was changed")
}
