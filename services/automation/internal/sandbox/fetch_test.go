package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/outbound"
)

// site is a server that functions fetch from.
func site(t *testing.T) (at *url.URL) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "body": string(body), "mine": r.Header.Get("X-Mine"),
			"origin": r.Header.Get("X-Payload-Origin"),
		})
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	return at
}

func TestFetch(t *testing.T) {
	t.Parallel()
	const noURL = `"the URL must be absolute, with https or http, and without a user"`
	at, p := site(t), newPool(t)
	for name, row := range map[string]struct{ source, output string }{
		"a request": {`const r = await fetch(site + "/echo", {method: "post", body: "汉",
				headers: {"X-Mine": 7, "X-Payload-Origin": "forged"}})
			return [r.status, r.ok, r.headers.get("x-answer"), r.headers.get("none"), await r.json()]`,
			`[201,true,"yes",null,{"method":"POST","body":"汉","mine":"7","origin":"function"}]`},
		"text":     {`return (await fetch(site + "/echo")).text().then(t => t.length > 2)`, `true`},
		"not JSON": {`return (await fetch(site + "/none")).json().catch(e => e.name)`, `"SyntaxError"`},
		"another host": {`return fetch("https://example.com").catch(e => e.message)`,
			`"the host is not on the list of allowed hosts"`},
		"no URL": {`return fetch("/echo").catch(e => e.message)`, noURL},
		"a file": {`return fetch("file:///etc/passwd").catch(e => e.message)`, noURL},
		"a method": {`return fetch(site, {method: "CONNECT"}).catch(e => e.message)`,
			`"the method must be one of GET, HEAD, POST, PUT, PATCH, DELETE"`},
		"a large body": {`return fetch(site, {method: "POST", body: "x".repeat(300000)}).catch(e => e.message)`,
			`"the request is too large"`},
		"many headers": {`const headers = {}; for (let i = 0; i < 60; i++) headers["x" + i] = "1"
			return fetch(site, {headers}).catch(e => e.message)`, `"the request has too many headers"`},
		"too often": {`let last; for (let i = 0; i < 30; i++) last = await fetch(site + "/none").catch(e => e.message)
			return last`, `"a call can fetch 20 times"`},
		"too much": {`let last; for (let i = 0; i < 6; i++)
				last = await fetch(site + "/large").then(() => 1, e => e.message)
			return last`, `"the responses of a call have more than 4194304 bytes"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := js(`async function main(site) {` + row.source + `}`)
			c.Input = json.RawMessage(`"` + at.String() + `"`)
			c.Hosts, c.Header = []string{at.Host}, map[string]string{"X-Payload-Origin": "function"}
			r := run(t, p, c)
			require.Equal(t, Succeeded, r.Outcome, "%+v", r.Fault)
			require.JSONEq(t, row.output, string(r.Output))
		})
	}
}

// A function reaches neither private addresses nor hosts that the pool does not allow, whatever its own list has.
func TestFetchIsRefused(t *testing.T) {
	t.Parallel()
	at := site(t)
	source := fmt.Sprintf(`function main() { return fetch(%q).then(() => "reached", e => e.message) }`,
		at.String()+"/echo")
	c := js(source)
	c.Hosts = []string{at.Host}
	require.Equal(t, `"reached"`, string(run(t, newPool(t), c).Output))

	guarded := newPool(t, func(c *Config) { c.Client = outbound.New(outbound.Config{}) })
	require.Contains(t, string(run(t, guarded, c).Output), "the address is private")
	listed := newPool(t, func(c *Config) { c.Hosts = []string{"example.com"} })
	require.Equal(t, `"the host is not on the list of allowed hosts"`, string(run(t, listed, c).Output))
	c.NoFetch = "not now"
	require.Equal(t, `"not now"`, string(run(t, newPool(t), c).Output))
}

// Waiting for a response counts as time of the call, and ends with the call.
func TestFetchTimesOut(t *testing.T) {
	t.Parallel()
	at := site(t)
	c := js(fmt.Sprintf(`function main() { return fetch(%q) }`, at.String()+"/slow"))
	c.Hosts, c.Timeout = []string{at.Host}, 50*time.Millisecond
	require.Equal(t, TimedOut, run(t, newPool(t), c).Outcome)
}

func TestAllowedHosts(t *testing.T) {
	t.Parallel()
	hosts := []string{"api.example.com", "*.acme.test", "local.test:8080"}
	for at, want := range map[string]bool{
		"https://api.example.com/x": true, "https://API.EXAMPLE.COM": true, "https://api.example.com:443": true,
		"http://api.example.com": true, "https://api.example.com:8443": false, "https://example.com": false,
		"https://x.api.example.com": false, "https://a.acme.test": true, "https://a.b.acme.test": true,
		"https://acme.test": false, "https://evilacme.test": false, "http://local.test:8080": true,
		"http://local.test": false, "https://api.example.com.evil.test": false, "https://api.example.com.": false,
	} {
		parsed, err := url.Parse(at)
		require.NoError(t, err)
		require.Equal(t, want, allowed(hosts, parsed), at)
	}
}
