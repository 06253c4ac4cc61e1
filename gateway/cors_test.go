package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const console = "https://console.example"

const askedHeaders = "authorization,content-type,if-match,last-event-id"

func preflight(g http.Handler, origin string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodOptions, "/v1/users/1", nil)
	r.Header.Set("Origin", origin)
	r.Header.Set("Access-Control-Request-Method", "PATCH")
	r.Header.Set("Access-Control-Request-Headers", askedHeaders)
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func TestCORS(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		origins []string
		origin  string
		allow   string // the response's Access-Control-Allow-Origin
	}{
		"off":         {nil, console, ""},
		"listed":      {[]string{console}, console, console},
		"not listed":  {[]string{console}, "https://evil.example", ""},
		"prefix only": {[]string{console}, console + ".evil.example", ""},
		"all":         {[]string{"*"}, "https://any.example", "*"},
		"null":        {[]string{console}, "null", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := ""
			g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, r *http.Request) {
				asked = r.Method
				w.Header().Set("ETag", `"1"`)
			})}, func(config *Config) { config.CORSOrigins = c.origins })

			w := get(g, "/v1/users/1", "Origin", c.origin)
			require.Equal(t, 200, w.Code)
			require.Equal(t, c.allow, w.Header().Get("Access-Control-Allow-Origin"))
			require.NotContains(t, w.Header(), "Access-Control-Allow-Credentials")
			if c.allow != "" {
				require.Contains(t, w.Header().Get("Access-Control-Expose-Headers"), "Idempotent-Replayed")
			}

			asked = ""
			w = preflight(g, c.origin)
			require.Equal(t, c.allow, w.Header().Get("Access-Control-Allow-Origin"))
			if c.origins == nil {
				require.Equal(t, "OPTIONS", asked, "without CORS, OPTIONS is passed on like any request")
				return
			}
			require.Empty(t, asked, "the gateway answers a preflight itself")
			if c.allow != "" {
				require.Equal(t, 204, w.Code)
				require.Equal(t, "PATCH", w.Header().Get("Access-Control-Allow-Methods"))
				require.Equal(t, askedHeaders, w.Header().Get("Access-Control-Allow-Headers"))
				require.Equal(t, "600", w.Header().Get("Access-Control-Max-Age"))
			}
		})
	}
}

// Pages must be able to read errors too, and a service's Vary is kept.
func TestCORSOfErrors(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{
		Users: remote(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Vary", "Accept") }),
	}, func(c *Config) { c.CORSOrigins = []string{console} })
	require.Equal(t, console, get(g, "/v1/kv", "Origin", console).Header().Get("Access-Control-Allow-Origin"))
	w := get(g, "/v1/users", "Origin", console)
	require.Equal(t, []string{console}, w.Header()["Access-Control-Allow-Origin"])
	require.Equal(t, []string{"Origin", "Accept"}, w.Header()["Vary"])
}

// The sign-in service knows the origins of its tenants' applications, and answers preflights itself.
func TestCORSOfSignIn(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{SignIn: local(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			w.Header().Set("Access-Control-Allow-Origin", "https://app.example")
		}
		w.Header().Set("Asked", r.Method)
	})}, func(c *Config) { c.CORSOrigins = []string{"*"} })
	for _, path := range []string{"/sign-in/acme/token", "/.well-known/oauth-authorization-server/sign-in/acme"} {
		r := httptest.NewRequest(http.MethodOptions, path, nil)
		r.Header.Set("Origin", "https://app.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		require.Equal(t, []string{"https://app.example"}, w.Header()["Access-Control-Allow-Origin"], path)
		require.Equal(t, "OPTIONS", w.Header().Get("Asked"), path)
		require.Equal(t, []string{"https://app.example"},
			get(g, path, "Origin", "https://app.example").Header()["Access-Control-Allow-Origin"], path)
	}
	require.Equal(t, "*", get(g, "/v1/sign-in/settings", "Origin", console).Header().Get("Access-Control-Allow-Origin"))
}
