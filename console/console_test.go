package console_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/console"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// platform is a gateway that knows one client, and notes what it is asked.
type platform struct {
	seen    *http.Request
	body    string
	revoked []string
}

// token is a JWT whose payload is {"tenant_id":"acme"}.
const token = "e30.eyJ0ZW5hbnRfaWQiOiJhY21lIn0.c2ln"

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/oauth2/token":
		id, password, _ := r.BasicAuth()
		if id != "admin" || password != "s%2Fcret" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"`+token+`","expires_in":3600,"scope":"users:read"}`)
	case "/v1/oauth2/revoke":
		_ = r.ParseForm()
		p.revoked = append(p.revoked, r.Form.Get("token"))
	default:
		p.seen, p.body = r.Clone(r.Context()), readAll(r)
		w.Header().Set("Etag", `"7"`)
		_, _ = io.WriteString(w, `{"items":[]}`)
	}
}

// browser is a person's browser: it keeps cookies.
type browser struct {
	t       *testing.T
	console http.Handler
	now     time.Time
	cookies map[string]*http.Cookie
	host    string
}

func built() fstest.MapFS {
	var script bytes.Buffer
	w := gzip.NewWriter(&script)
	_, _ = w.Write([]byte("export {}"))
	_ = w.Close()
	return fstest.MapFS{
		"manifest.json": {Data: []byte(
			`{"styles":["styles-B.css"],"icon":"i.svg","languages":{
				"en":{"script":"main-A.js","preload":["chunk-C.js"],
					"screens":{"start":["start-D.js"],"users":["users-E.js","chunk-F.js"]}},
				"zh":{"script":"main-Z.js","preload":[],"screens":{}}}}`)},
		"assets/main-A.js.gz": {Data: script.Bytes()}, "assets/i.svg": {Data: []byte("<svg/>")},
	}
}

func open(t *testing.T, p http.Handler, change func(*console.Config, *console.Deps)) *browser {
	t.Helper()
	b := &browser{
		t: t, now: time.Unix(1_800_000_000, 0), cookies: map[string]*http.Cookie{}, host: "127.0.0.1:8080",
	}
	config := console.DefaultConfig()
	deps := console.Deps{
		Log: slog.New(slog.DiscardHandler), Gateway: p, Files: built(), Now: func() time.Time { return b.now },
	}
	if change != nil {
		change(&config, &deps)
	}
	c, err := console.New(config, deps)
	require.NoError(t, err)
	b.console = c
	return b
}

func (b *browser) do(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+b.host+path, strings.NewReader(body))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	b.console.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		b.cookies[c.Name] = c
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return w
}

const sessionPath = "/console/~/session"

func (b *browser) signIn() {
	w := b.do(http.MethodPost, sessionPath, `{"client_id":"admin","client_secret":"s/cret"}`)
	require.Equal(b.t, 200, w.Code, w.Body)
}

func requireProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	var doc problem.Document
	require.Equal(t, status, w.Code, w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
	require.Equal(t, code, doc.Code)
}

func TestSignInCallsAndSignOut(t *testing.T) {
	t.Parallel()
	p := &platform{}
	b := open(t, p, nil)
	requireProblem(t, b.do("GET", "/console/api/v1/users", ""), 401, "unauthenticated")
	b.signIn()
	require.Contains(t, b.cookies, "idp_console", "a plain name on loopback http")
	require.NotContains(t, b.cookies["idp_console"].Value, "e30", "the token is sealed")
	require.True(t, b.cookies["idp_console"].HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, b.cookies["idp_console"].SameSite)

	w := b.do("GET", "/console/api/v1/users/a%2Fb?keyword=%E6%9D%8E&x;y", "", "X-Payload-Origin", "console/users",
		"X-Tenant-Id", "globex")
	require.Equal(t, 200, w.Code)
	require.Equal(t, `"7"`, w.Header().Get("Etag"))
	require.Equal(t, "/v1/users/a%2Fb?keyword=%E6%9D%8E&x;y", p.seen.RequestURI)
	require.Equal(t, "Bearer "+token, p.seen.Header.Get("Authorization"))
	require.Equal(t, "console/users", p.seen.Header.Get("X-Payload-Origin"))
	require.Equal(t, "globex", p.seen.Header.Get("X-Tenant-Id"))
	require.NotContains(t, p.seen.Header, "Cookie")
	b.do("POST", "/console/api/v1/users", "{}", "X-Payload-Origin", "somebody else")
	require.Equal(t, "console", p.seen.Header.Get("X-Payload-Origin"))
	b.do("GET", "/console/api/v1/users", "", "Authorization", "Bearer other")
	require.Equal(t, "Bearer "+token, p.seen.Header.Get("Authorization"))

	require.JSONEq(t, `{"signed_in":true,"actor":"client:admin","client_id":"admin","tenant_id":"acme",
		"scope":"users:read","time_signed_in":"2027-01-15T08:00:00Z","time_expires":"2027-01-15T09:00:00Z",
		"client_sign_in":true,"secure":true}`, b.do("GET", sessionPath, "").Body.String())
	require.Equal(t, 200, b.do("DELETE", sessionPath, "").Code)
	require.Equal(t, []string{token}, p.revoked)
	require.Empty(t, b.cookies)
	requireProblem(t, b.do("GET", "/console/api/v1/users", ""), 401, "unauthenticated")
}

func TestPagePreloadsItsScreen(t *testing.T) {
	t.Parallel()
	b := open(t, &platform{}, nil)
	require.NotContains(t, b.do("GET", "/console/acme/users", "").Body.String(), "users-E.js", "nobody is signed in")
	b.signIn()
	for path, file := range map[string]string{
		"/console": "start-D.js", "/console/acme": "start-D.js", "/console/acme/": "start-D.js",
		"/console/acme/users": "chunk-F.js", "/console/=api/users/import": "users-E.js",
	} {
		require.Contains(t, b.do("GET", path, "").Body.String(),
			`<link rel="modulepreload" href="/console/~/assets/`+file+`">`, path)
	}
	require.NotContains(t, b.do("GET", "/console/acme/nothing", "").Body.String(), "-D.js")
}

func TestOnlyOperationsAreHandedOn(t *testing.T) {
	t.Parallel()
	p := &platform{}
	b := open(t, p, nil)
	b.signIn()
	for _, path := range []string{
		"/console/api/healthz", "/console/api/v1", "/console/api/openapi.json", "/console/api//v1/users",
		"/console/api/console/api/v1/users", "/console/api/%76%31/users", "/console/~/nothing", "/console%2Fapi/v1/users",
		"/console/~/assets/none.js", "/consoles",
	} {
		requireProblem(t, b.do("GET", path, ""), 404, "not_found")
		require.Nil(t, p.seen, path)
	}
	requireProblem(t, b.do("POST", "/console/acme/users", ""), 405, "method_not_allowed")
	requireProblem(t, b.do("PATCH", sessionPath, ""), 405, "method_not_allowed")
	requireProblem(t, b.do("GET", "/console/~/links", ""), 405, "method_not_allowed")
}

func TestSignInIsRefused(t *testing.T) {
	t.Parallel()
	b := open(t, &platform{}, nil)
	requireProblem(t, b.do("POST", sessionPath, `{"client_id":"admin","client_secret":"no"}`), 401, "unauthenticated")
	requireProblem(t, b.do("POST", sessionPath, `{"client_id":"admin"}`), 400, "invalid_parameters")
	requireProblem(t, b.do("POST", sessionPath, `nonsense`), 400, "invalid_parameters")
	requireProblem(t, b.do("POST", sessionPath, `{"code":"none"}`), 401, "unauthenticated")
	requireProblem(t, b.do("POST", sessionPath, strings.Repeat("x", 20<<10)), 400, "invalid_parameters")
	require.Empty(t, b.cookies)
	b.host = "idp.example"
	requireProblem(t, b.do("POST", sessionPath, `{"client_id":"admin","client_secret":"s/cret"}`), 409, "invalid_state")

	off := open(t, &platform{}, func(c *console.Config, _ *console.Deps) { c.ClientSignIn = false })
	requireProblem(t, off.do("POST", sessionPath, `{"client_id":"admin","client_secret":"s/cret"}`), 403, "forbidden")
	away := open(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "{}")
	}), nil)
	requireProblem(t, away.do("POST", sessionPath, `{"client_id":"a","client_secret":"b"}`), 503, "unavailable")
}

func TestOtherSitesCannotChangeAnything(t *testing.T) {
	t.Parallel()
	p := &platform{}
	b := open(t, p, nil)
	b.signIn()
	for _, path := range []string{"/console/api/v1/users", sessionPath} {
		requireProblem(t, b.do("POST", path, "{}", "Sec-Fetch-Site", "cross-site"), 403, "forbidden")
		requireProblem(t, b.do("DELETE", path, "", "Sec-Fetch-Site", "same-site"), 403, "forbidden")
		requireProblem(t, b.do("POST", path, "{}", "Sec-Fetch-Site", "", "Origin", "https://evil.example"),
			403, "forbidden")
	}
	require.Nil(t, p.seen)
	w := b.do("POST", "/console/api/v1/users", "{}", "Sec-Fetch-Site", "", "Origin", "https://id.example",
		"X-Forwarded-Host", "id.example", "X-Forwarded-Proto", "http")
	require.Equal(t, 401, w.Code, "the host is that of the balancer, whose cookies have other names")
}

func TestOneTimeLinks(t *testing.T) {
	t.Parallel()
	b := open(t, &platform{}, nil)
	link := func() string {
		w := b.do("POST", "/console/~/links", "", "Authorization", "Basic YWRtaW46cyUyRmNyZXQ=", "Sec-Fetch-Site", "")
		require.Equal(t, 200, w.Code, w.Body)
		var answer struct{ Path string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
		code, ok := strings.CutPrefix(answer.Path, "/console/sign-in#")
		require.True(t, ok)
		return code
	}
	code := link()
	require.Equal(t, 200, b.do("POST", sessionPath, `{"code":"`+code+`"}`).Code)
	require.Equal(t, 200, b.do("GET", "/console/api/v1/users", "").Code)
	requireProblem(t, b.do("POST", sessionPath, `{"code":"`+code+`"}`), 401, "unauthenticated")
	code = link()
	b.now = b.now.Add(2 * time.Minute)
	requireProblem(t, b.do("POST", sessionPath, `{"code":"`+code+`"}`), 401, "unauthenticated")
	requireProblem(t, b.do("POST", "/console/~/links", "", "Authorization", "Basic YTpi"), 401, "unauthenticated")
	requireProblem(t, b.do("POST", "/console/~/links", ""), 401, "unauthenticated")
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	status := func(b *browser) int { return b.do("GET", "/console/api/v1/users", "").Code }
	b := open(t, &platform{}, nil)
	b.signIn()
	b.now = b.now.Add(29 * time.Minute)
	require.Equal(t, 200, status(b), "the session is used, and written again")
	b.now = b.now.Add(29 * time.Minute)
	require.Equal(t, 200, status(b))
	b.now = b.now.Add(3 * time.Minute)
	require.Equal(t, 401, status(b), "the token has ended")
	b.signIn()
	b.now = b.now.Add(31 * time.Minute)
	require.Equal(t, 401, status(b), "nobody was there")
	b.signIn()
	for range 2 {
		b.now = b.now.Add(14 * time.Minute)
		require.Equal(t, 200, b.do("GET", "/console/api/v1/users", "", "X-Console-Background", "1").Code)
	}
	b.now = b.now.Add(3 * time.Minute)
	require.Equal(t, 401, status(b), "only the page was there")

	old, fresh := secret.NewKey().Reveal(), secret.NewKey().Reveal()
	with := func(keys string) func(*console.Config, *console.Deps) {
		return func(c *console.Config, _ *console.Deps) { c.Keys = secret.New(keys) }
	}
	before := open(t, &platform{}, with(old))
	before.signIn()
	for keys, want := range map[string]int{fresh + "," + old: 200, fresh: 401} {
		after := open(t, &platform{}, with(keys))
		after.cookies = before.cookies
		require.Equal(t, want, status(after))
	}
	for name, cookie := range before.cookies {
		altered := *cookie
		altered.Value = cookie.Value[:len(cookie.Value)-1] + "!"
		before.cookies[name] = &altered
	}
	require.Equal(t, 401, status(before))
}

// An issuer's token can have 8 KiB: more than a cookie holds.
func TestLongTokensTakeSeveralCookies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", 2000)
	var seen string
	b := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"access_token":"`+long+`","expires_in":3600}`)
	}), nil)
	b.host = "idp.example"
	w := b.do("POST", sessionPath, `{"client_id":"a","client_secret":"b"}`, "X-Forwarded-Proto", "https")
	require.Equal(t, 200, w.Code, w.Body)
	require.Len(t, b.cookies, 3)
	for name, cookie := range b.cookies {
		require.True(t, strings.HasPrefix(name, "__Host-idp_console"), name)
		require.True(t, cookie.Secure)
		require.Less(t, len(cookie.Raw), 4096)
	}
	require.Equal(t, 200, b.do("GET", "/console/api/v1/users", "", "X-Forwarded-Proto", "https").Code)
	require.Equal(t, "Bearer "+long, seen)
	delete(b.cookies, "__Host-idp_console_1")
	require.Equal(t, 401, b.do("GET", "/console/api/v1/users", "", "X-Forwarded-Proto", "https").Code)
}

func TestPageAndFiles(t *testing.T) {
	t.Parallel()
	b := open(t, &platform{}, func(c *console.Config, _ *console.Deps) { c.Banner = `"Staging" <b>` })
	for _, path := range []string{"/console", "/console/", "/console/acme/users?q=li", "/console/sign-in"} {
		w := b.do("GET", path, "")
		require.Equal(t, 200, w.Code)
		require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "+
			"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "+
			"require-trusted-types-for 'script'; trusted-types 'none'", w.Header().Get("Content-Security-Policy"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Contains(t, w.Body.String(), `src="/console/~/assets/main-A.js"`)
		require.Contains(t, w.Body.String(), `Staging`)
		require.NotContains(t, w.Body.String(), `<b>`)
	}
	for _, c := range []struct{ cookie, accept, script, language string }{
		{"", "", "main-A.js", "en"},
		{"", "de, en;q=0.8", "main-A.js", "en"},
		{"", "en-GB, zh-Hans-CN;q=0.5", "main-Z.js", "zh"},
		{"zh", "en", "main-Z.js", "zh"},
		{"en", "zh", "main-A.js", "en"},
		{"xx", "zh", "main-Z.js", "zh"},
	} {
		b.cookies["idp_console_lang"] = &http.Cookie{Name: "idp_console_lang", Value: c.cookie}
		page := b.do("GET", "/console/", "", "Accept-Language", c.accept).Body.String()
		require.Contains(t, page, `src="/console/~/assets/`+c.script+`"`, "%+v", c)
		require.Contains(t, page, `<html lang="`+c.language+`">`, "%+v", c)
	}
	w := b.do("GET", "/console/~/assets/main-A.js", "", "Accept-Encoding", "br, gzip")
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	require.Contains(t, w.Header().Get("Cache-Control"), "immutable")
	require.Contains(t, w.Header().Get("Content-Type"), "javascript")
	w = b.do("GET", "/console/~/assets/main-A.js", "", "Accept-Encoding", "gzip;q=0")
	require.Equal(t, "export {}", w.Body.String())
	require.Empty(t, b.do("HEAD", "/console/~/assets/main-A.js", "").Body.String())

	unbuilt := open(t, &platform{}, func(_ *console.Config, d *console.Deps) { d.Files = fstest.MapFS{} })
	require.Contains(t, unbuilt.do("GET", "/console", "").Body.String(), "make build")
	require.JSONEq(t, `{"openapi":"3.1.0","info":{"title":"console","version":"1.0.0"},"paths":{}}`,
		b.do("GET", "/openapi.json", "").Body.String())
}

// A console in a process of its own passes streams on as they come, and tells the gateway the client's address.
func TestRemoteGateway(t *testing.T) {
	t.Parallel()
	key := forwarded.NewKey(secret.New("a secret of gateway and console"))
	more := make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/oauth2/token" {
			(&platform{}).ServeHTTP(w, r)
			return
		}
		client := forwarded.Trust{Gateway: key}.Client(r)
		_, _ = io.WriteString(w, client.String()+"\n")
		w.(http.Flusher).Flush()
		<-more
		_, _ = io.WriteString(w, "end")
	}))
	t.Cleanup(gateway.Close)
	base, err := url.Parse(gateway.URL)
	require.NoError(t, err)
	b := open(t, nil, func(_ *console.Config, d *console.Deps) {
		d.Gateway = console.Remote(base, slog.New(slog.DiscardHandler))
		d.Trust = forwarded.Trust{Gateway: key}
	})
	b.signIn()
	server := httptest.NewServer(b.console)
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/console/api/v1/events", nil)
	require.NoError(t, err)
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	response, err := server.Client().Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	head := make([]byte, len("127.0.0.1\n"))
	_, err = io.ReadFull(response.Body, head)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1\n", string(head), "before the answer has ended")
	close(more)
	rest, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, "end", string(rest))
	http.DefaultClient.CloseIdleConnections()
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, config := range []console.Config{
		{Console: "maybe"}, {Console: "on", Banner: strings.Repeat("x", 61)},
		{Console: "on", Keys: secret.New("short")},
		{Console: "on", OIDC: console.OIDC{ClientID: "c"}},
		{Console: "on", OIDC: console.OIDC{Issuer: "https://i.example"}},
		{Console: "on", OIDC: console.OIDC{Issuer: "http://i.example", ClientID: "c"}},
		{Console: "on", OIDC: console.OIDC{Issuer: "https://i.example?a=b", ClientID: "c"}},
		{Console: "on", OIDC: console.OIDC{Issuer: "https://li@i.example", ClientID: "c"}},
		{Console: "on", OIDC: console.OIDC{Issuer: "i.example", ClientID: "c"}},
		{Console: "on", OIDC: console.OIDC{Issuer: "https://i.example", ClientID: "c", Scopes: []string{"a b"}}},
		{Console: "on", OIDC: console.OIDC{Issuer: "https://i.example", ClientID: "c",
			Params: map[string]string{"redirect_uri": "https://evil.example"}}},
		{Console: "on", OIDC: console.OIDC{Issuer: "https://i.example", ClientID: "c", Label: strings.Repeat("x", 41)}},
	} {
		_, err := console.New(config, console.Deps{Files: fstest.MapFS{}})
		require.Error(t, err)
	}
	require.True(t, console.Config{Console: "off"}.Off())
}
