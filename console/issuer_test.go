package console_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/console"
	"github.com/idplatform/idplatform/console/issuertest"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/secret"
)

const (
	oidcPath     = "/console/~/oidc"
	callbackPath = "/console/~/oidc/callback"
	renewalPath  = "/console/~/renewal"
)

// trusting is a platform that trusts the issuer, without a look at signatures: the services' tests look at them.
type trusting struct {
	platform
	issuer *issuertest.Issuer
	away   bool
}

func (p *trusting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/oauth2/whoami" {
		p.platform.ServeHTTP(w, r)
		return
	}
	parts := strings.Split(r.Header.Get("Authorization"), ".")
	var claims struct {
		Iss, Sub, Aud, Scope string
		Exp                  int64
	}
	if p.away {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Iss != p.issuer.URL || claims.Aud != "idplatform" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	scopes, _ := auth.ParseScopes(claims.Scope)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"actor": claims.Iss + "#" + claims.Sub, "tenant_id": "acme", "scopes": scopes.List(),
		"time_expires": time.Unix(claims.Exp, 0).UTC().Format(time.RFC3339),
	})
}

// withIssuer opens a console at which people sign in at an issuer, whose access tokens have a scope.
func withIssuer(t *testing.T, change func(*console.Config, *console.Deps)) (*browser, *issuertest.Issuer, *trusting) {
	t.Helper()
	i, err := issuertest.Start()
	require.NoError(t, err)
	t.Cleanup(i.Close)
	i.Access = func(claims map[string]any) { claims["scope"] = "profile users:read" }
	p := &trusting{issuer: i}
	client := outbound.New(outbound.Config{AllowPrivate: true})
	t.Cleanup(client.CloseIdleConnections)
	b := open(t, p, func(c *console.Config, d *console.Deps) {
		c.OIDC = console.OIDC{
			Issuer: i.URL, ClientID: issuertest.ClientID, ClientSecret: secret.New(issuertest.ClientSecret),
			Scopes: []string{"offline_access"}, Params: map[string]string{"audience": "idplatform"}, Label: "Acme",
		}
		d.Outbound = client
		if change != nil {
			change(c, d)
		}
	})
	i.Now = func() time.Time { return b.now }
	return b, i, p
}

// walk follows the browser from the console to the issuer, and returns the address that leads back.
func (b *browser) walk(begin string) *url.URL {
	b.t.Helper()
	w := b.do("GET", begin, "")
	require.Equal(b.t, 303, w.Code, w.Body)
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Get(w.Header().Get("Location"))
	require.NoError(b.t, err)
	require.NoError(b.t, response.Body.Close())
	require.Equal(b.t, 302, response.StatusCode)
	back, err := url.Parse(response.Header.Get("Location"))
	require.NoError(b.t, err)
	return back
}

// comeBack opens the address to which the issuer has sent the browser: without cookies that are Strict.
func (b *browser) comeBack(to *url.URL) *httptest.ResponseRecorder {
	strict := map[string]*http.Cookie{}
	for name, c := range b.cookies {
		if c.SameSite == http.SameSiteStrictMode {
			strict[name] = c
			delete(b.cookies, name)
		}
	}
	w := b.do("GET", to.RequestURI(), "", "Sec-Fetch-Site", "cross-site")
	for name, c := range strict {
		if b.cookies[name] == nil {
			b.cookies[name] = c
		}
	}
	return w
}

func (b *browser) signInAtIssuer() {
	b.t.Helper()
	w := b.comeBack(b.walk(oidcPath))
	require.Equal(b.t, 303, w.Code, w.Body)
}

var sessionMeta = regexp.MustCompile(`<meta name="idp-session" content="([^"]*)">`)

// told is what the page is told about a sign-in that failed.
func told(t *testing.T, w *httptest.ResponseRecorder) (f struct {
	Code, Issuer, Return string
	Claims               []string
}) {
	t.Helper()
	require.Equal(t, 200, w.Code, w.Body)
	found := sessionMeta.FindStringSubmatch(w.Body.String())
	require.NotNil(t, found)
	about := struct{ Failure any }{&f}
	require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(found[1])), &about))
	require.NotEmpty(t, f.Code)
	return f
}

func (b *browser) status(method, path string) int { return b.do(method, path, "{}").Code }
