package gateway

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// seen is a service or console that notes the last request that it got.
type seen struct {
	header http.Header
	uri    string
}

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.header, s.uri = r.Header.Clone(), r.RequestURI
	w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'")
	w.Header().Set("Set-Cookie", "__Host-idp_console=s; Secure; HttpOnly; SameSite=Strict; Path=/")
}

func TestConsoleIsReached(t *testing.T) {
	t.Parallel()
	for hop, upstream := range map[string]func(http.HandlerFunc) Upstream{
		"in process": local, "remote": func(h http.HandlerFunc) Upstream { return remote(t, h) },
	} {
		console := &seen{}
		g := newGateway(t, map[string]Upstream{Console: upstream(console.ServeHTTP)}, nil)
		for _, target := range []string{
			"/console", "/console/", "/console/acme/users?q=li&status=1", "/console/assets/main-3f9a.js",
			"/console/api/v1/kv/buckets/b/objects/a%2Fb%20c?x=1;y=2", "/console/%E6%9D%8E",
		} {
			w := get(g, target, "Cookie", "__Host-idp_console=s", "X-Forwarded-For", "1.2.3.4")
			require.Equal(t, 200, w.Code, "%s %s", hop, target)
			require.Equal(t, target, console.uri, hop)
			require.Equal(t, "__Host-idp_console=s", console.header.Get("Cookie"), hop)
			require.Equal(t, "192.0.2.1", console.header.Get("X-Forwarded-For"), hop)
			require.Equal(t, "default-src 'none'; script-src 'self'", w.Header().Get("Content-Security-Policy"))
			require.Contains(t, w.Header().Get("Set-Cookie"), "__Host-idp_console=s")
		}
		for _, target := range []string{"/console/../v1/users", "/console/api/%2e%2e/x"} {
			w := get(g, target)
			requireProblem(t, 400, "invalid_parameters", w.Code, w.Header(), w.Body)
		}
		for _, target := range []string{"/consoles", "/console%2Fapi"} {
			w := get(g, target)
			requireProblem(t, 404, "not_found", w.Code, w.Header(), w.Body)
		}
	}
	w := get(newGateway(t, nil, nil), "/console")
	doc := requireProblem(t, 503, "unavailable", w.Code, w.Header(), w.Body)
	require.Contains(t, doc.Detail, "console service is not deployed")
}

// Services get no cookies: a session that leaked to one of them would be good at the console.
func TestServicesGetNoCookies(t *testing.T) {
	t.Parallel()
	for hop, upstream := range map[string]func(http.HandlerFunc) Upstream{
		"in process": local, "remote": func(h http.HandlerFunc) Upstream { return remote(t, h) },
	} {
		service := &seen{}
		g := newGateway(t, map[string]Upstream{Users: upstream(service.ServeHTTP)}, nil)
		require.Equal(t, 200, get(g, "/v1/users", "Cookie", "__Host-idp_console=s", "Authorization", "Bearer t").Code)
		require.NotContains(t, service.header, "Cookie", hop)
		require.Equal(t, "Bearer t", service.header.Get("Authorization"), hop)
	}
}

// The console in process hands a request back to the gateway: the limits of the operation hold on the way in, and the
// client's address and its TLS are still known on the way back.
func TestConsoleCallsThroughTheGateway(t *testing.T) {
	t.Parallel()
	service := &seen{}
	var g http.Handler
	handBack := func(w http.ResponseWriter, r *http.Request) {
		back := r.Clone(r.Context())
		back.URL.Path = strings.TrimPrefix(r.URL.Path, consoleAPI)
		back.RequestURI = back.URL.RequestURI()
		back.Header.Set("Authorization", "Bearer session")
		g.ServeHTTP(w, back)
	}
	g = newGateway(t, map[string]Upstream{Console: local(handBack), Users: local(service.ServeHTTP)},
		func(c *Config) { c.MaxBodyBytes = 10 })
	post := func(target, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
		r.TLS = &tls.ConnectionState{}
		r.Header.Set("Cookie", "__Host-idp_console=s")
		r.Header.Set("X-Request-Id", "r-1")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w
	}
	w := post("/console/api/v1/users", "{}")
	require.Equal(t, 200, w.Code)
	require.Equal(t, []string{"r-1"}, w.Header()["X-Request-Id"])
	require.Equal(t, "/v1/users", service.uri)
	require.Equal(t, "Bearer session", service.header.Get("Authorization"))
	require.Equal(t, "192.0.2.1", service.header.Get("X-Forwarded-For"))
	require.Equal(t, "https", service.header.Get("X-Forwarded-Proto"))
	require.NotContains(t, service.header, "Cookie")

	require.Equal(t, 200, post("/console/api/v1/users/import", "more than ten bytes").Code, "a transfer")
	w = post("/console/api/v1/users", "more than ten bytes")
	requireProblem(t, 413, "too_large", w.Code, w.Header(), w.Body)
}

// A wrong token that the console hands on is counted once, where the service refuses it.
func TestConsoleFailuresCountOnce(t *testing.T) {
	t.Parallel()
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	g := newGateway(t, map[string]Upstream{Console: local(refuse)}, func(c *Config) {
		c.RateLimit.UnauthorizedPerMinute, c.RateLimit.UnauthorizedBurst = 1, 1
	})
	require.Equal(t, 401, get(g, "/console/api/v1/users").Code)
	require.Equal(t, 401, get(g, "/console/sign-in").Code, "the call above was not counted")
	require.Equal(t, 429, get(g, "/console/sign-in").Code)
}

func TestBrowsersAreSentToAPage(t *testing.T) {
	t.Parallel()
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	with := newGateway(t, map[string]Upstream{Console: local((&seen{}).ServeHTTP)}, nil)
	without := newGateway(t, nil, nil)
	for target, g := range map[string]http.Handler{"/console": with, "/docs": without} {
		w := get(g, "/", "Accept", browser)
		require.Equal(t, http.StatusFound, w.Code)
		require.Equal(t, target, w.Header().Get("Location"))
		require.Equal(t, "Accept", w.Header().Get("Vary"))
		for _, accept := range []string{"", "*/*", "application/json", "text/html;q=0"} {
			w := get(g, "/", "Accept", accept)
			requireProblem(t, 404, "not_found", w.Code, w.Header(), w.Body)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Accept", browser)
	w := httptest.NewRecorder()
	with.ServeHTTP(w, r)
	requireProblem(t, 405, "method_not_allowed", w.Code, w.Header(), w.Body)
}

func TestConsoleHasNoCORS(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{Console: local((&seen{}).ServeHTTP)}, func(c *Config) {
		c.CORSOrigins = []string{"*"}
	})
	for _, target := range []string{"/console", "/console/api/v1/users"} {
		require.NotContains(t, get(g, target, "Origin", "https://any.example").Header(), "Access-Control-Allow-Origin")
	}
	require.Equal(t, "*", get(g, "/v1/users", "Origin", "https://any.example").Header().
		Get("Access-Control-Allow-Origin"))
}
