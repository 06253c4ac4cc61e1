package console_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/console"
	"github.com/idplatform/idplatform/console/issuertest"
	"github.com/idplatform/idplatform/pkg/auth"
)

func TestSignInAtAnIssuer(t *testing.T) {
	t.Parallel()
	b, i, p := withIssuer(t, nil)
	back := b.walk(oidcPath + "?return=" + url.QueryEscape("/console/acme/users?q=李&open=a%2Fb"))
	asked := i.Asked()
	require.Equal(t, "openid offline_access", asked.Get("scope"))
	require.Equal(t, "idplatform", asked.Get("audience"))
	require.Equal(t, "28800", asked.Get("max_age"))
	require.Empty(t, asked.Get("prompt"))
	require.Equal(t, "http://127.0.0.1:8080/console/~/oidc/callback", asked.Get("redirect_uri"))
	require.Len(t, b.cookies, 1)
	for name, cookie := range b.cookies {
		require.True(t, strings.HasPrefix(name, "idp_console_flow_"))
		require.Equal(t, http.SameSiteLaxMode, cookie.SameSite)
		require.True(t, cookie.HttpOnly)
		require.Equal(t, 600, cookie.MaxAge)
		require.NotContains(t, cookie.Value, asked.Get("nonce"))
	}
	w := b.comeBack(back)
	require.Equal(t, 303, w.Code, w.Body)
	require.Equal(t, "/console/acme/users?q=%e6%9d%8e&open=a%2Fb", w.Header().Get("Location"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "no-referrer", w.Header().Get("Referrer-Policy"))
	require.Len(t, b.cookies, 1)
	require.Equal(t, http.SameSiteStrictMode, b.cookies["idp_console"].SameSite)

	require.Equal(t, 200, b.status("GET", "/console/api/v1/users"))
	require.Equal(t, 3, len(strings.Split(p.seen.Header.Get("Authorization"), ".")), "the issuer's token, as it is")
	require.JSONEq(t, `{"signed_in":true,"actor":"`+i.URL+`#may","name":"may@example.com","tenant_id":"acme",
		"scope":"users:read","time_signed_in":"2027-01-15T08:00:00Z","time_expires":"2027-01-15T16:00:00Z",
		"client_sign_in":true,"oidc":"Acme","secure":true}`, b.do("GET", sessionPath, "").Body.String())

	w = b.do("DELETE", sessionPath, "")
	require.Len(t, i.Revoked(), 2, "both tokens")
	var about struct {
		SignOut string `json:"sign_out_url"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &about))
	end, err := url.Parse(about.SignOut)
	require.NoError(t, err)
	require.Equal(t, i.URL+"/end", end.Scheme+"://"+end.Host+end.Path)
	require.Equal(t, "http://127.0.0.1:8080/console/sign-in", end.Query().Get("post_logout_redirect_uri"))
	require.NotEmpty(t, end.Query().Get("id_token_hint"))
	require.Empty(t, b.cookies)
	require.Empty(t, p.revoked, "the platform has nothing to revoke")
	require.Equal(t, 401, b.status("GET", "/console/api/v1/users"))
}

// With __Host- names nobody else on the domain can set the flow, or the session.
func TestCookiesOfAFlowOverHTTPS(t *testing.T) {
	t.Parallel()
	b, i, _ := withIssuer(t, nil)
	b.host = "idp.example"
	require.Equal(t, "not_secure", told(t, b.do("GET", oidcPath, "")).Code)
	w := b.do("GET", oidcPath, "", "X-Forwarded-Proto", "https")
	require.Equal(t, 303, w.Code)
	require.Len(t, b.cookies, 1)
	for name, cookie := range b.cookies {
		require.True(t, strings.HasPrefix(name, "__Host-idp_console_flow_"))
		require.True(t, cookie.Secure)
		require.Equal(t, "/", cookie.Path)
	}
	target, err := url.Parse(w.Header().Get("Location"))
	require.NoError(t, err)
	require.Equal(t, "https://idp.example/console/~/oidc/callback", target.Query().Get("redirect_uri"))
	require.Nil(t, i.Asked())
}

// Whatever is in a link, the way back stays on the console.
func TestReturnStaysBelowTheConsole(t *testing.T) {
	t.Parallel()
	b, _, _ := withIssuer(t, nil)
	for path, want := range map[string]string{
		"/console/acme/tree/1?open=2": "/console/acme/tree/1?open=2", "/console/a%2Fb": "/console/a%2Fb",
		"/console": "/console", "": "/console", "https://evil.example/console/": "/console",
		"//evil.example/console/": "/console", "/console/../docs": "/console", "/console/%2e%2e/docs": "/console",
		`/console/\evil`: "/console", "/consoles": "/console", "javascript:alert(1)": "/console", "console/x": "/console",
		"/console/~/oidc": "/console", "/console/api/v1/users": "/console", "/\\evil.example": "/console",
		"/console/x\r\nSet-Cookie: a=b": "/console", "/console/" + strings.Repeat("x", 2000): "/console",
		"/console/x#fragment": "/console/x", "//evil@h/console/": "/console",
		"/console//evil.example": "/console/evil.example",
	} {
		w := b.comeBack(b.walk(oidcPath + "?return=" + url.QueryEscape(path)))
		require.Equal(t, 303, w.Code, path)
		require.Equal(t, want, w.Header().Get("Location"), path)
	}
}

func TestSignInsAtTheIssuerThatFail(t *testing.T) {
	t.Parallel()
	stranger := map[string]*http.Cookie{}
	for want, attempt := range map[string]func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder{
		"flow_unknown: another browser's": func(b *browser, _ *issuertest.Issuer) *httptest.ResponseRecorder {
			back := b.walk(oidcPath)
			b.cookies = stranger
			return b.comeBack(back)
		},
		"flow_unknown: another state": func(b *browser, _ *issuertest.Issuer) *httptest.ResponseRecorder {
			back := b.walk(oidcPath)
			q := back.Query()
			q.Set("state", q.Get("state")[:8]+"x")
			back.RawQuery = q.Encode()
			return b.comeBack(back)
		},
		"flow_unknown: no state": func(b *browser, _ *issuertest.Issuer) *httptest.ResponseRecorder {
			b.walk(oidcPath)
			return b.comeBack(&url.URL{Path: callbackPath, RawQuery: "code=code1"})
		},
		"flow_unknown: twice": func(b *browser, _ *issuertest.Issuer) *httptest.ResponseRecorder {
			back := b.walk(oidcPath)
			require.Equal(b.t, 303, b.comeBack(back).Code)
			require.Equal(b.t, 200, b.do("DELETE", sessionPath, "").Code)
			return b.comeBack(back)
		},
		"flow_unknown: too late": func(b *browser, _ *issuertest.Issuer) *httptest.ResponseRecorder {
			back := b.walk(oidcPath)
			b.now = b.now.Add(10 * time.Minute)
			return b.comeBack(back)
		},
		"issuer_refused: a code of another flow": func(b *browser, _ *issuertest.Issuer) *httptest.ResponseRecorder {
			other, back := b.walk(oidcPath).Query(), b.walk(oidcPath)
			q := back.Query()
			q.Set("code", other.Get("code"))
			back.RawQuery = q.Encode()
			return b.comeBack(back)
		},
		"issuer_refused: an error": func(b *browser, _ *issuertest.Issuer) *httptest.ResponseRecorder {
			back := b.walk(oidcPath)
			back.RawQuery = "error=access_denied&state=" + back.Query().Get("state")
			return b.comeBack(back)
		},
		"issuer_away: at the begin": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.Away = true
			return b.do("GET", oidcPath, "")
		},
		"issuer_away: at the end": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			back := b.walk(oidcPath)
			i.Away = true
			return b.comeBack(back)
		},
		"answer_invalid: another issuer": func(b *browser, _ *issuertest.Issuer) *httptest.ResponseRecorder {
			back := b.walk(oidcPath)
			q := back.Query()
			q.Set("iss", "https://evil.example")
			back.RawQuery = q.Encode()
			return b.comeBack(back)
		},
		"answer_invalid: another nonce": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.ID = func(claims map[string]any) { claims["nonce"] = "n" }
			return b.comeBack(b.walk(oidcPath))
		},
		"answer_invalid: no nonce": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.ID = func(claims map[string]any) { delete(claims, "nonce") }
			return b.comeBack(b.walk(oidcPath))
		},
		"answer_invalid: for another client": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.ID = func(claims map[string]any) { claims["aud"] = "other" }
			return b.comeBack(b.walk(oidcPath))
		},
		"answer_invalid: expired": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.ID = func(claims map[string]any) { claims["exp"] = b.now.Unix() - 1 }
			return b.comeBack(b.walk(oidcPath))
		},
		"answer_invalid: of another access token": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.ID = func(claims map[string]any) { claims["at_hash"] = "AAAA" }
			return b.comeBack(b.walk(oidcPath))
		},
		"not_fresh: signed in long ago": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.ID = func(claims map[string]any) { claims["auth_time"] = b.now.Unix() - 600 }
			return b.comeBack(b.walk(oidcPath + "?fresh"))
		},
		"not_fresh: does not say": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.ID = func(claims map[string]any) { delete(claims, "auth_time") }
			return b.comeBack(b.walk(oidcPath + "?fresh"))
		},
		"token_untrusted: for others": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.Access = func(claims map[string]any) { claims["aud"] = "others" }
			return b.comeBack(b.walk(oidcPath))
		},
		"token_untrusted: opaque": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.Opaque = true
			return b.comeBack(b.walk(oidcPath))
		},
		"token_too_large: over 8 KiB": func(b *browser, i *issuertest.Issuer) *httptest.ResponseRecorder {
			i.Access = func(claims map[string]any) { claims["groups"] = strings.Repeat("g", 7<<10) }
			return b.comeBack(b.walk(oidcPath))
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			b, i, _ := withIssuer(t, nil)
			w := attempt(b, i)
			code, _, _ := strings.Cut(want, ":")
			require.Equal(t, code, told(t, w).Code)
			require.NotContains(t, b.cookies, "idp_console")
			require.Equal(t, 401, b.status("GET", "/console/api/v1/users"))
			b.signIn() // the other way still works
		})
	}
}

func TestATokenWithoutScopesNamesItsClaims(t *testing.T) {
	t.Parallel()
	b, i, _ := withIssuer(t, nil)
	i.Access = func(claims map[string]any) {
		claims["scope"], claims["roles"], claims["<b>"] = "profile", []string{"private"}, "hidden"
	}
	w := b.comeBack(b.walk(oidcPath + "?return=/console/acme/users"))
	require.NotContains(t, w.Body.String(), "private")
	require.NotContains(t, w.Body.String(), "<b>")
	f := told(t, w)
	require.Equal(t, "token_no_scopes", f.Code)
	require.Equal(t, "/console/acme/users", f.Return)
	require.Equal(t, []string{"<b>", "aud", "exp", "iat", "iss", "jti", "roles", "scope", "sub"}, f.Claims)
	require.Len(t, i.Revoked(), 2, "nobody has the tokens")
}

func TestAPlatformThatIsAwayAtTheSignIn(t *testing.T) {
	t.Parallel()
	b, _, p := withIssuer(t, nil)
	back := b.walk(oidcPath)
	p.away = true
	require.Equal(t, "platform_away", told(t, b.comeBack(back)).Code)
}

// Other sites cannot begin a sign-in, and a browser that began many keeps few cookies of them.
func TestBeginsAreBounded(t *testing.T) {
	t.Parallel()
	b, i, _ := withIssuer(t, nil)
	for _, site := range []string{"cross-site", "same-site"} {
		w := b.do("GET", oidcPath, "", "Sec-Fetch-Site", site)
		require.Equal(t, "/console/sign-in", w.Header().Get("Location"))
		require.Empty(t, b.cookies)
	}
	requireProblem(t, b.do("POST", oidcPath, ""), 405, "method_not_allowed")
	requireProblem(t, b.do("HEAD", callbackPath, ""), 405, "method_not_allowed")
	for range 10 {
		b.do("GET", oidcPath, "")
		require.LessOrEqual(t, len(b.cookies), 4)
	}
	require.Nil(t, i.Asked())
	none := open(t, &platform{}, nil)
	for _, path := range []string{oidcPath, callbackPath} {
		requireProblem(t, none.do("GET", path, ""), 404, "not_found")
	}
}

// Two tabs that sign in at once do not disturb each other.
func TestTwoFlowsAtOnce(t *testing.T) {
	t.Parallel()
	b, _, _ := withIssuer(t, nil)
	first, second := b.walk(oidcPath+"?return=/console/a/users"), b.walk(oidcPath+"?return=/console/b/users")
	require.Equal(t, "/console/a/users", b.comeBack(first).Header().Get("Location"))
	require.Equal(t, "/console/b/users", b.comeBack(second).Header().Get("Location"))
}

// The largest tokens that services accept fit, with a large refresh token and ID token.
func TestLargeTokensOfAnIssuer(t *testing.T) {
	t.Parallel()
	b, i, p := withIssuer(t, nil)
	i.Access = func(claims map[string]any) {
		claims["scope"], claims["groups"] = "users:read", strings.Repeat("g", 5800)
	}
	i.ID = func(claims map[string]any) { claims["picture"] = strings.Repeat("p", 2600) }
	b.signInAtIssuer()
	require.Equal(t, 200, b.status("GET", "/console/api/v1/users"))
	sent := p.seen.Header.Get("Authorization")
	require.Greater(t, len(sent), 7900)
	require.LessOrEqual(t, len(sent), len("Bearer ")+auth.MaxTokenSize)
	require.Len(t, b.cookies, 5)
	for _, cookie := range b.cookies {
		require.Less(t, len(cookie.Raw), 4096)
	}
}

// While the issuer is away, what it told about itself stays, and it is not asked at every request.
func TestDiscoveryIsRetried(t *testing.T) {
	t.Parallel()
	b, i, _ := withIssuer(t, nil)
	i.Away = true
	require.Equal(t, "issuer_away", told(t, b.do("GET", oidcPath, "")).Code)
	i.Away = false
	require.Equal(t, "issuer_away", told(t, b.do("GET", oidcPath, "")).Code, "it is not asked again at once")
	b.now = b.now.Add(5 * time.Second)
	require.Equal(t, 303, b.status("GET", oidcPath))
	i.Away = true
	b.now = b.now.Add(2 * time.Hour)
	require.Equal(t, 303, b.status("GET", oidcPath))
}

// An ID token that the services would take as an access token is not put into a URL.
func TestIDTokensThatAreCredentialsAreNotShown(t *testing.T) {
	t.Parallel()
	b, i, _ := withIssuer(t, nil)
	i.Access = func(claims map[string]any) { claims["scope"], claims["aud"] = "users:read", "idplatform" }
	i.ID = func(claims map[string]any) { claims["aud"] = "idplatform" }
	back := b.walk(oidcPath)
	require.Equal(t, "answer_invalid", told(t, b.comeBack(back)).Code, "it is not for the console")
	taking := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"actor":"a","tenant_id":"acme","scopes":["users:read"],
			"time_expires":"2027-01-15T08:05:00.000Z"}`)
	})
	b, _, _ = withIssuer(t, func(_ *console.Config, d *console.Deps) { d.Gateway = taking })
	b.signInAtIssuer()
	w := b.do("DELETE", sessionPath, "")
	require.Contains(t, w.Body.String(), "sign_out_url")
	require.NotContains(t, w.Body.String(), "id_token_hint")
}
