package signin_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// relyingParty is an application with unmodified client libraries.
type relyingParty struct {
	ctx      context.Context
	provider *oidc.Provider
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
}

func (w *world) relyingParty(name string) *relyingParty {
	w.t.Helper()
	ctx := oidc.ClientContext(context.Background(), &http.Client{Transport: handler{w.Handler}})
	provider, err := oidc.NewProvider(ctx, base)
	w.must(err)
	return &relyingParty{ctx, provider, oauth2.Config{
		ClientID: name, ClientSecret: clientSecret, Endpoint: provider.Endpoint(),
		RedirectURL: w.clients[name].RedirectURLs[0], Scopes: []string{"openid", "profile", "email", "groups"},
	}, provider.Verifier(&oidc.Config{ClientID: name, Now: func() time.Time { return w.Clock.Now().Std() },
		SupportedSigningAlgs: []string{"ES256"}})}
}

// The whole way of an unmodified client: request, page, password, code, tokens, userinfo, refresh, logout.
func TestUnmodifiedClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rp, verifier := w.relyingParty("portal"), oauth2.GenerateVerifier()
	b := w.browser().get(rp.config.AuthCodeURL("state-1", oauth2.S256ChallengeOption(verifier), oidc.Nonce("nonce-1")))
	b.shows(200, "to continue to Portal").signIn("ann", password)
	answer := b.answered(callback)
	require.Equal(t, "state-1", answer.Get("state"))

	token, err := rp.config.Exchange(rp.ctx, answer.Get("code"), oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	raw, _ := token.Extra("id_token").(string)
	id, err := rp.verifier.Verify(rp.ctx, raw)
	require.NoError(t, err)
	require.Equal(t, "20", id.Subject)
	require.Equal(t, "nonce-1", id.Nonce)
	var claims struct {
		SID, ACR string
		AMR      []string
		Name     string `json:"name"`
		Groups   []string
	}
	require.NoError(t, id.Claims(&claims))
	require.Equal(t, []string{"company/company", "company/rd-20"}, claims.Groups)
	require.Equal(t, []string{"pwd"}, claims.AMR)
	require.Equal(t, w.sessions()[0].(object)["id"], claims.SID)

	info, err := rp.provider.UserInfo(rp.ctx, rp.config.TokenSource(rp.ctx, token))
	require.NoError(t, err)
	require.Equal(t, "20", info.Subject)
	require.Equal(t, "ann@acme.test", info.Email)

	_, err = rp.config.Exchange(rp.ctx, answer.Get("code"), oauth2.VerifierOption(verifier))
	require.ErrorContains(t, err, "invalid_grant")

	b.get(rp.config.AuthCodeURL("state-2", oauth2.S256ChallengeOption(verifier)))
	token, err = rp.config.Exchange(rp.ctx, b.answered(callback).Get("code"), oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	require.NotEmpty(t, token.RefreshToken)
	token.Expiry = time.Unix(1, 0)
	renewed, err := rp.config.TokenSource(rp.ctx, token).Token()
	require.NoError(t, err)
	require.NotEqual(t, token.AccessToken, renewed.AccessToken)

	hint, _ := token.Extra("id_token").(string)
	b.get("/logout?" + url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {"https://portal.test/bye"},
		"state": {"bye"}}.Encode())
	require.Equal(t, "https://portal.test/bye?state=bye", b.at)
	require.Empty(t, w.sessions())
	renewed.Expiry = time.Unix(1, 0)
	_, err = rp.config.TokenSource(rp.ctx, renewed).Token()
	require.ErrorContains(t, err, "invalid_grant", "the session has ended")
	_, err = rp.provider.UserInfo(rp.ctx, oauth2.StaticTokenSource(renewed))
	require.Error(t, err)
	b.get(rp.config.AuthCodeURL("state-3")).shows(200, "to continue to Portal")
}

func TestLogoutAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get("/logout").shows(200, "You are signed out")
	b.get("/logout?client_id=portal&post_logout_redirect_uri=https://portal.test/bye&state=x")
	require.Equal(t, "https://portal.test/bye?state=x", b.at, "nobody is signed in: straight on")
	b.get("/logout?client_id=portal&post_logout_redirect_uri=https://evil.test").shows(200, "You are signed out")

	b.get(w.authorize("portal")).signIn("ann", password).answered(callback)
	b.get("/logout?client_id=portal&post_logout_redirect_uri=https://portal.test/bye").shows(200, "Sign out?")
	require.Len(t, w.sessions(), 1)
	require.Contains(t, b.body, "Ann Lee")
	form := url.Values{"confirm": {"yes"}, "client_id": {"portal"}, "post_logout_redirect_uri": {"https://portal.test/bye"}}
	strange := b.tab()
	strange.header = b.header.Clone()
	r, err := http.NewRequest(http.MethodPost, base+"/sign-out", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	strange.do(r).shows(403, "another site")
	require.Len(t, w.sessions(), 1)
	b.post(base+"/sign-out", form)
	require.Equal(t, "https://portal.test/bye", b.at)
	require.Empty(t, w.sessions())
}

// Applications that want it are told in frames.
func TestFrontChannel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.clients["portal"]
	c.SignIn.FrontchannelLogoutURL = "https://portal.test/front"
	w.clients["portal"] = c
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.get("/logout").send(url.Values{"confirm": {"yes"}}).shows(200, `<iframe src="https://portal.test/front?iss=`)
	require.Contains(t, b.page.Header.Get("Content-Security-Policy"), "frame-src https://portal.test;")
}

// Tenants never meet: a session, a flow and a sealed request of one are of no use in another.
func TestTenantsOfPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(w.authorize("portal"))
	sealed := sealedRequest.FindStringSubmatch(b.body)[1]
	b.signIn("ann", "wrong")
	flow := strings.TrimPrefix(b.at, base)
	b.signIn("ann", password).answered(callback)
	other := strings.Replace(base, "acme", "globex", 1)
	b.get(other+flow).shows(200, "Sign in")
	require.Equal(t, other, b.at)
	b.get(other+w.authorize("portal")).shows(400, "This link does not work")
	b.post(other+"/flow", url.Values{"request": {sealed}, "action": {"sign-in"}, "login_name": {"ann"},
		"password": {password}}).shows(200, "Sign in")
	require.Equal(t, other, b.at, "the form is not of the tenant")
	require.Empty(t, w.As("globex", "sign-in:read").Get("/v1/sessions").Object()["items"])
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.Stranger().Get("/sign-in/acme/.well-known/openid-configuration").Object()
	require.Equal(t, base, one["issuer"])
	require.Equal(t, one, w.Stranger().Get("/.well-known/oauth-authorization-server/sign-in/acme").Object())
	keys := func() []any { return w.Stranger().Get("/sign-in/acme/jwks").Object()["keys"].([]any) }
	before := keys()
	require.NotEmpty(t, before, "they are there before the first token, because proxies keep the answer")
	w.tokens()
	require.Equal(t, before, keys())
	for _, path := range []string{"/sign-in/globex/jwks", "/sign-in/globex/.well-known/openid-configuration",
		"/.well-known/oauth-authorization-server/sign-in/globex"} {
		w.Stranger().Get(path).Problem(404, "not_found") // it has no applications
	}
	w.Stranger().Get("/sign-in/Not%20A/jwks").Problem(404, "not_found")
	w.Stranger().With("Content-Type", "application/x-www-form-urlencoded").Post("/sign-in/acme/token?dry_run=true",
		"grant_type=authorization_code").OAuthError(400, "invalid_request")
	answer := w.Stranger().With("Content-Type", "application/x-www-form-urlencoded").Post("/sign-in/acme/par",
		url.Values{"client_id": {"portal"}, "client_secret": {clientSecret}, "response_type": {"code"},
			"redirect_uri": {callback}, "scope": {"openid"}}.Encode())
	require.Equal(t, 201, answer.Status, "%s", answer.Body)
}

// A request without a token is told what is expected, and no error (RFC 6750 §3.1).
func TestUserInfoWithoutAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer := w.Stranger().Get(ofPages + "/userinfo")
	require.Equal(t, []any{401, "Bearer"}, []any{answer.Status, answer.Header.Get("WWW-Authenticate")})
	require.NotContains(t, string(answer.Body), `"error"`)
	answer = w.Stranger().With("Authorization", "Bearer x").Get(ofPages + "/userinfo")
	require.Equal(t, []any{401, `Bearer error="invalid_token"`},
		[]any{answer.Status, answer.Header.Get("WWW-Authenticate")})
}

// Single-page applications call the endpoints from their own origin, without cookies.
func TestOriginsOfApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const portal, wiki, evil = "https://portal.test", "https://wiki.test", "https://evil.test"
	const allowed = "Access-Control-Allow-Origin"
	from := func(origin string) *testkit.Client { return w.Stranger().With("Origin", origin) }
	for _, path := range []string{ofPages + "/jwks", ofPages + "/.well-known/openid-configuration",
		"/.well-known/oauth-authorization-server" + ofPages} {
		require.Equal(t, "*", from(evil).Get(path).Header.Get(allowed), path)
	}
	preflight := func(path, origin, method string) string {
		answer := from(origin).With("Access-Control-Request-Method", method).
			With("Access-Control-Request-Headers", "authorization").Do("OPTIONS", path, nil)
		require.Equal(t, answer.Status == 204, answer.Header.Get(allowed) != "")
		return answer.Header.Get(allowed)
	}
	form := func(origin, path string, values url.Values) *testkit.Answer {
		return from(origin).With("Content-Type", "application/x-www-form-urlencoded").
			Post(ofPages+path, values.Encode())
	}
	credentials := url.Values{"client_id": {"portal"}, "client_secret": {clientSecret}, "token": {"x"}}
	for _, path := range []string{"/token", "/revoke", "/introspect", "/par"} {
		for _, origin := range []string{portal, wiki} {
			require.Equal(t, origin, preflight(ofPages+path, origin, "POST"), "a preflight names no application")
		}
		require.Empty(t, preflight(ofPages+path, evil, "POST"))
		require.Empty(t, preflight(strings.Replace(ofPages, "acme", "globex", 1)+path, portal, "POST"))
		require.Equal(t, portal, form(portal, path, credentials).Header.Get(allowed), path)
		require.Empty(t, form(wiki, path, credentials).Header.Get(allowed), "another application's")
		require.Empty(t, form(evil, path, credentials).Header.Get(allowed))
		require.Equal(t, wiki, form(wiki, path, url.Values{"client_id": {"gone"}}).Header.Get(allowed),
			"the page can read that there is no such application")
	}
	require.Equal(t, portal, preflight(ofPages+"/userinfo", portal, "GET"))
	token, _ := w.tokens()
	info := func(origin string) string {
		return from(origin).With("Authorization", "Bearer "+token).Get(ofPages + "/userinfo").Header.Get(allowed)
	}
	require.Equal(t, []string{portal, "", ""}, []string{info(portal), info(wiki), info(evil)})
	require.Equal(t, portal, from(portal).Get(ofPages+"/userinfo").Header.Get(allowed))
	for _, path := range []string{"/authorize", "/logout", "/device_authorization"} {
		require.Empty(t, form(portal, path, credentials).Header.Get(allowed), "%s is not for pages", path)
	}
}
