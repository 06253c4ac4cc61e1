package main

import (
	"encoding/json"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/console/issuertest"
)

// The link that the program prints signs in to the console, once, and the session reaches the API.
func TestConsole(t *testing.T) {
	t.Parallel()
	c := startPlatform(t, t.TempDir())
	out, notes, code := runs(t, []string{"IDP_DATA_DIR=" + c.Dir}, "console")
	require.Zero(t, code, notes)
	base := "http://" + c.Addr
	secret, ok := strings.CutPrefix(strings.TrimSpace(out), base+"/console/sign-in#")
	require.True(t, ok, out)

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	status := func(method, path, body string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		require.NoError(t, err)
		response, err := browser.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	body, err := json.Marshal(map[string]string{"code": secret})
	require.NoError(t, err)
	require.Equal(t, 200, status("GET", "/console/acme/users", ""))
	require.Equal(t, 401, status("GET", "/console/api/v1/users", ""))
	require.Equal(t, 200, status("POST", "/console/~/session", string(body)))
	require.Equal(t, 200, status("GET", "/console/api/v1/users", ""))
	require.Equal(t, 401, status("POST", "/console/~/session", string(body)), "the link is good once")
	require.Equal(t, 200, status("DELETE", "/console/~/session", ""))
	require.Equal(t, 401, status("GET", "/console/api/v1/users", ""))

	_, notes, code = runs(t, []string{"IDP_DATA_DIR=" + t.TempDir()}, "console")
	require.Equal(t, 1, code)
	require.Contains(t, notes, "no platform runs on the data folder")
}

// People sign in at an issuer whose tokens the real services trust, and only as far as the settings let them.
func TestConsoleAtAnIssuer(t *testing.T) {
	t.Parallel()
	i, err := issuertest.Start()
	require.NoError(t, err)
	t.Cleanup(i.Close)
	scope, ended := "users:read platform:admin", true
	i.Access = func(claims map[string]any) {
		claims["scope"], claims["org"] = scope, "acme"
		if ended {
			claims["exp"] = claims["iat"]
			ended = false
		}
	}
	c := startPlatform(t, t.TempDir(),
		"IDP_AUTH_OIDC=issuer="+i.URL+";jwks="+i.URL+"/keys;audience=idplatform;tenant_claim=org;scopes=users:read",
		"IDP_CONSOLE_OIDC_ISSUER="+i.URL, "IDP_CONSOLE_OIDC_CLIENT_ID="+issuertest.ClientID,
		"IDP_CONSOLE_OIDC_CLIENT_SECRET="+issuertest.ClientSecret)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, path string) (status int, body, url string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.Addr+path, nil)
		require.NoError(t, err)
		response, err := browser.Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(text), response.Request.URL.RequestURI()
	}
	status := func(method, path string) int {
		status, _, _ := ask(method, path)
		return status
	}
	_, _, url := ask("GET", "/console/~/oidc?return=/console/acme/users?q=li")
	require.Equal(t, "/console/acme/users?q=li", url, "past the issuer, and back")
	require.Equal(t, 401, status("GET", "/console/api/v1/users"), "the token had ended when it came")
	require.Equal(t, 200, status("POST", "/console/~/renewal"))
	require.Equal(t, 200, status("GET", "/console/api/v1/users"))
	require.Equal(t, 403, status("GET", "/console/api/v1/applications"), "beyond the scopes of the setting")
	_, whoami, _ := ask("GET", "/console/api/v1/oauth2/whoami")
	require.Contains(t, whoami, `"actor":"`+i.URL+`#may"`)
	require.Contains(t, whoami, `"tenant_id":"acme","scopes":["users:read"]`)

	_, body, _ := ask("DELETE", "/console/~/session")
	require.Contains(t, body, `"sign_out_url":"`+i.URL+`/end?`)
	require.Contains(t, body, "id_token_hint=", "the services do not take the ID token")
	require.Len(t, i.Revoked(), 2)
	require.Equal(t, 401, status("GET", "/console/api/v1/users"))

	scope = "profile"
	_, page, url := ask("GET", "/console/~/oidc")
	require.True(t, strings.HasPrefix(url, "/console/~/oidc/callback?"), "nobody is signed in")
	require.Contains(t, page, "token_no_scopes")
	i.Access = func(claims map[string]any) { claims["org"] = "Not a Tenant" }
	_, page, _ = ask("GET", "/console/~/oidc")
	require.Contains(t, page, "token_untrusted")
	require.Equal(t, 401, status("GET", "/console/api/v1/users"))
}

// People sign in to the console with their accounts of the platform itself: its sign-in service is an issuer that the
// services trust, and rules on scopes say what they may do.
func TestConsoleAtThePlatformItself(t *testing.T) {
	t.Parallel()
	dir, addr := t.TempDir(), freeAddress(t)
	base, issuer := "http://"+addr, "http://"+addr+"/sign-in/acme"
	c := startPlatform(t, dir, "IDP_LISTEN="+addr)
	admin := c.client("acme")
	send := func(method, path string, body map[string]any) map[string]any {
		t.Helper()
		text, err := json.Marshal(body)
		require.NoError(t, err)
		answer, err := admin.Do(method, path, string(text))
		require.NoError(t, err)
		var made map[string]any
		require.NoError(t, json.Unmarshal(answer, &made))
		return made
	}
	user := send("POST", "/v1/users", map[string]any{"username": "ann.lee", "password": "a-long-way-home"})["id"]
	scopes := []string{"users:read", "users:write", "applications:read"}
	app := send("POST", "/v1/applications", map[string]any{
		"name": "Console", "category": "1", "redirect_url": base + "/console/~/oidc/callback", "scopes": scopes,
	})
	for _, scope := range scopes {
		send("POST", "/v1/resources", map[string]any{"application_id": app["id"], "type": "api", "code": scope,
			"actions": []any{map[string]any{"code": "use"}}})
	}
	rule := func(kind, code string) map[string]any {
		return map[string]any{"application_id": app["id"], "type": kind, "code": code, "actions": []string{"use"}}
	}
	grants := map[string]any{
		"identities": []any{map[string]any{"identity_type": "user", "identity_id": user}},
		"rules":      []any{map[string]any{"application_id": app["id"], "type": "app"}, rule("api", "users:read")},
	}
	send("POST", "/v1/batch/auth-unit-rules", grants)
	c.stop()

	c = startPlatform(t, dir, "IDP_LISTEN="+addr,
		"IDP_AUTH_OIDC=issuer="+issuer+";jwks="+issuer+"/jwks;audience="+base+
			";tenant=acme;scopes=users:read users:write",
		"IDP_CONSOLE_OIDC_ISSUER="+issuer, "IDP_CONSOLE_OIDC_CLIENT_ID="+app["client_id"].(string),
		"IDP_CONSOLE_OIDC_CLIENT_SECRET="+app["client_secret"].(string), "IDP_CONSOLE_OIDC_PARAMS=resource="+base)
	admin = c.client("acme")
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, path string, form url.Values) (status int, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(form.Encode()))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := browser.Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(text)
	}
	_, page := ask("GET", "/console/~/oidc?return=/console/acme/users", nil)
	sealed := regexp.MustCompile(`name="request" value="([^"]+)"`).FindStringSubmatch(page)
	require.NotNil(t, sealed, page)
	_, page = ask("POST", "/sign-in/acme/flow", url.Values{"action": {"sign-in"}, "login_name": {"ann.lee"},
		"password": {"a-long-way-home"}, "request": {html.UnescapeString(sealed[1])}})
	onward := regexp.MustCompile(`href="` + regexp.QuoteMeta(base) + `([^"]+)"`).FindStringSubmatch(page)
	require.NotNil(t, onward, page)
	status, page := ask("GET", html.UnescapeString(onward[1]), nil)
	require.Equal(t, 200, status)
	require.NotContains(t, page, "token_")
	_, whoami := ask("GET", "/console/api/v1/oauth2/whoami", nil)
	require.Contains(t, whoami, `"actor":"`+issuer+"#"+user.(string)+`"`)
	require.Contains(t, whoami, `"tenant_id":"acme","scopes":["users:read"]`)
	status, _ = ask("GET", "/console/api/v1/users", nil)
	require.Equal(t, 200, status)
	status, _ = ask("GET", "/console/api/v1/applications", nil)
	require.Equal(t, 403, status, "without a rule")

	grants["rules"] = []any{rule("api", "users:write"), rule("api", "applications:read")}
	send("POST", "/v1/batch/auth-unit-rules", grants)
	ask("GET", "/console/~/oidc", nil) // she is signed in already
	_, whoami = ask("GET", "/console/api/v1/oauth2/whoami", nil)
	require.Contains(t, whoami, `"scopes":["users:read","users:write"]`, "as far as the services trust the issuer")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
