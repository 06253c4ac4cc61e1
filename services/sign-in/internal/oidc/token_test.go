package oidc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Applications rely on the form of tokens.
func TestGoldenTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := w.clock.Now().Millis() / 1000
	w.person.SubAccount = &protocol.SubAccount{Account: "liwei", DisplayName: "Li"}
	tokens := w.tokens(byCode(w.code(ofShop("scope", "openid profile email phone groups offline_access"))))
	userinfo, err := w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	require.NoError(t, err)
	texts := map[string]any{"answer": tokens, "userinfo": userinfo, "metadata": oidc.Discovery(issuer)}
	for name, token := range map[string]string{"id_token": tokens.IDToken, "access_token": tokens.AccessToken} {
		header, claims := claimsOf(t, token)
		for _, member := range []string{"iat", "exp", "auth_time"} {
			claims[member] = fmt.Sprintf("start + %vs", claims[member].(float64)-float64(began))
		}
		texts[name] = map[string]any{"header": header, "claims": claims}
	}
	random := regexp.MustCompile(`("(?:kid|jti|at_hash|family|access_token|refresh_token|id_token)": )"[^"]+"`)
	for name, value := range texts {
		body, err := json.MarshalIndent(value, "", "  ")
		require.NoError(t, err)
		basic.Golden(t, "testdata/"+name+".json", append(random.ReplaceAll(body, []byte(`$1"…"`)), '\n'))
	}
}

func TestTokensByCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.code(ofShop())
	as := func(id, secret string) oidc.TokenRequest {
		return oidc.TokenRequest{Form: byCode(code).Form, Authorization: []string{basicAuth(id, secret)}}
	}
	for name, row := range map[string]struct {
		r      oidc.TokenRequest
		status int
		code   string
	}{
		"no grant type":          {byCode(code, "grant_type", ""), 400, "invalid_request"},
		"another grant type":     {byCode(code, "grant_type", "password"), 400, "unsupported_grant_type"},
		"client credentials":     {byCode(code, "grant_type", "client_credentials"), 400, "unsupported_grant_type"},
		"another code":           {byCode("x"), 400, "invalid_grant"},
		"no code":                {byCode(""), 400, "invalid_request"},
		"no refresh token":       {byCode(code, "grant_type", "refresh_token"), 400, "invalid_request"},
		"no device code":         {byCode(code, "grant_type", "urn:ietf:params:oauth:grant-type:device_code"), 400, "invalid_request"},
		"another address":        {byCode(code, "redirect_uri", "https://shop.test/other?x=1"), 400, "invalid_grant"},
		"no address":             {byCode(code, "redirect_uri", ""), 400, "invalid_grant"},
		"a verifier, no PKCE":    {byCode(code, "code_verifier", verifier), 400, "invalid_grant"},
		"another application's":  {bySPA(code), 400, "invalid_grant"},
		"a resource":             {byCode(code, "resource", "https://api.test"), 400, "invalid_target"},
		"no secret":              {bySPA(code, "client_id", "shop"), 401, "invalid_client"},
		"an empty secret":        {as("shop", ""), 401, "invalid_client"},
		"another secret":         {as("shop", "x"), 401, "invalid_client"},
		"an unknown application": {as("nobody", "x"), 401, "invalid_client"},
		"a secret of none":       {as("spa", "x"), 401, "invalid_client"},
		"two methods":            {byCode(code, "client_id", "shop", "client_secret", "x"), 400, "invalid_request"},
		"two clients":            {byCode(code, "client_id", "spa"), 400, "invalid_request"},
		"a backend service":      {as("backend", "backend secret"), 400, "unauthorized_client"},
	} {
		_, err := w.Token(w.ctx(), issuer, row.r)
		require.Error(t, err, name)
		refusedAs(t, err, row.status, row.code)
	}
	tokens := w.tokens(byCode(code))
	require.Equal(t, "Bearer", tokens.TokenType)
	require.EqualValues(t, 600, tokens.ExpiresIn)
	require.Equal(t, "openid profile", tokens.Scope)

	post := byCode(w.code(ofShop("scope", "profile")), "client_id", "shop", "client_secret", "old secret")
	post.Authorization = nil
	plain := w.tokens(post)
	require.Empty(t, plain.IDToken, "the scope openid was not asked for")
	_, err := w.UserInfo(w.ctx(), issuer, plain.AccessToken)
	require.Equal(t, "insufficient_scope", apperr.OAuthCode(err))

	late := w.code(ofShop())
	w.clock.Advance(time.Minute)
	_, err = w.Token(w.ctx(), issuer, byCode(late))
	refusedAs(t, err, 400, "invalid_grant")
}

// A code is bound to the browser that asked for it by PKCE: neither a stolen code nor one that was asked for without
// PKCE passes.
func TestPKCE(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.code(ofSPA())
	for _, wrong := range []string{"", s256(verifier), strings.Repeat("a", 43)} {
		_, err := w.Token(w.ctx(), issuer, bySPA(code, "code_verifier", wrong))
		refusedAs(t, err, 400, "invalid_grant")
	}
	w.tokens(bySPA(code))
	challenged := w.code(ofShop("code_challenge", s256(verifier), "code_challenge_method", "S256"))
	_, err := w.Token(w.ctx(), issuer, byCode(challenged))
	refusedAs(t, err, 400, "invalid_grant")
	w.tokens(byCode(challenged, "code_verifier", verifier))
}

// A code gives tokens once; a second use ends them, in whichever replica it comes.
func TestCodeIsUsedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.code(ofShop())
	tokens := w.tokens(byCode(code))
	other := w.replica()
	_, err := other.Token(w.ctx(), issuer, bySPA(code))
	refusedAs(t, err, 400, "invalid_grant")
	_, err = w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	require.NoError(t, err, "another application cannot end them")
	_, err = other.Token(w.ctx(), issuer, byCode(code))
	refusedAs(t, err, 400, "invalid_grant")
	_, err = w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	refusedAs(t, err, 401, "invalid_token")
	_, err = w.Token(w.ctx(), issuer, refresh(shopAuth(), tokens.RefreshToken))
	refusedAs(t, err, 400, "invalid_grant")
}

// together runs fn in several goroutines and returns the results without an error.
func together[T any](t *testing.T, n int, fn func(i int) (T, error)) (good []T) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			result, err := fn(i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				good = append(good, result)
			} else if apperr.OAuthCode(err) != "invalid_grant" {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	return good
}

func TestCodeInParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	replicas := []*oidc.Provider{w.Provider, w.replica()}
	code := w.code(ofShop())
	good := together(t, 8, func(i int) (oidc.TokenAnswer, error) {
		return replicas[i%2].Token(w.ctx(), issuer, byCode(code))
	})
	require.LessOrEqual(t, len(good), 1)
	for _, tokens := range good {
		_, err := w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
		refusedAs(t, err, 401, "invalid_token")
	}
}

// A new sign-in ends the least used tokens of an application for which a user has too many, and none of others.
func TestAUserHasABoundedNumberOfFamilies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deps
	d.MaxFamilies = 5
	w.Provider = oidc.New(d)
	spa := w.tokens(bySPA(w.code(ofSPA())))
	var shops []string
	for range 4 {
		w.clock.Advance(time.Second)
		shops = append(shops, w.tokens(byCode(w.code(ofShop()))).RefreshToken)
	}
	w.clock.Advance(2 * time.Hour) // a use is noted by the hour
	w.tokens(refresh(shopAuth(), shops[0]))
	for range 7 {
		w.clock.Advance(time.Second)
		shops = append(shops, w.tokens(byCode(w.code(ofShop()))).RefreshToken)
	}
	good := 0
	for _, token := range shops {
		if _, err := w.Token(w.ctx(), issuer, refresh(shopAuth(), token)); err == nil {
			good++
		}
	}
	require.Equal(t, 4, good)
	w.tokens(refresh(shopAuth(), shops[len(shops)-1]))
	w.tokens(refresh(nil, spa.RefreshToken, "client_id", "spa"))
}

func TestRefreshOfApplicationsWithASecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := w.tokens(byCode(w.code(ofShop())))
	again := w.tokens(refresh(shopAuth(), tokens.RefreshToken))
	require.Equal(t, tokens.RefreshToken, again.RefreshToken)
	_, claims := claimsOf(t, again.IDToken)
	require.NotContains(t, claims, "nonce", "OpenID Connect Core 12.2")
	_, first := claimsOf(t, tokens.IDToken)
	for _, member := range []string{"iss", "sub", "aud", "auth_time", "sid"} {
		require.Equal(t, first[member], claims[member])
	}
	narrow := w.tokens(refresh(shopAuth(), tokens.RefreshToken, "scope", "openid"))
	require.Equal(t, "openid", narrow.Scope)
	userinfo, err := w.UserInfo(w.ctx(), issuer, narrow.AccessToken)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"sub": "1001"}, userinfo)
	require.Equal(t, "openid profile", w.tokens(refresh(shopAuth(), tokens.RefreshToken)).Scope)

	_, err = w.Token(w.ctx(), issuer, refresh(shopAuth(), tokens.RefreshToken, "scope", "openid email"))
	refusedAs(t, err, 400, "invalid_scope")
	_, err = w.Token(w.ctx(), issuer, refresh(nil, tokens.RefreshToken, "client_id", "spa"))
	refusedAs(t, err, 400, "invalid_grant")
	for _, forged := range []string{"x", strings.Replace(tokens.RefreshToken, ".0.", ".1.", 1), "a.b.c", "a.0.",
		tokens.RefreshToken + "A", tokens.RefreshToken[1:]} {
		_, err = w.Token(w.ctx(), issuer, refresh(shopAuth(), forged))
		refusedAs(t, err, 400, "invalid_grant")
	}
	w.clock.Advance(24 * time.Hour)
	_, err = w.Token(w.ctx(), issuer, refresh(shopAuth(), tokens.RefreshToken))
	refusedAs(t, err, 400, "invalid_grant")
}

// Refresh tokens of applications without a secret are used once. For 30 s the old one gives the same successor, because
// its answer may have been lost; a later use ends the family.
func TestRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spa := func(token string) oidc.TokenRequest { return refresh(nil, token, "client_id", "spa") }
	first := w.tokens(bySPA(w.code(ofSPA()))).RefreshToken
	w.clock.Advance(time.Hour)
	second := w.tokens(spa(first)).RefreshToken
	require.NotEqual(t, first, second)
	w.clock.Advance(29 * time.Second)
	require.Equal(t, second, w.tokens(spa(first)).RefreshToken)
	tokens := w.tokens(spa(second))
	third := tokens.RefreshToken
	require.Equal(t, third, w.tokens(spa(second)).RefreshToken)
	w.clock.Advance(30 * time.Second)
	_, err := w.Token(w.ctx(), issuer, spa(second))
	refusedAs(t, err, 400, "invalid_grant")
	_, err = w.Token(w.ctx(), issuer, spa(third))
	refusedAs(t, err, 400, "invalid_grant")
	_, err = w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	refusedAs(t, err, 401, "invalid_token")
}

// A tab that is late by several rotations gets the present token, for 30 s after its own was used. Later that is a
// reuse.
func TestRotationTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spa := func(token string) oidc.TokenRequest { return refresh(nil, token, "client_id", "spa") }
	first := w.tokens(bySPA(w.code(ofSPA()))).RefreshToken
	last := first
	for range 5 {
		w.clock.Advance(5 * time.Second)
		last = w.tokens(spa(last)).RefreshToken
		require.Equal(t, last, w.tokens(spa(first)).RefreshToken)
	}
	w.clock.Advance(10 * time.Second) // 30 s after first was used
	third := last
	_, err := w.Token(w.ctx(), issuer, spa(first))
	refusedAs(t, err, 400, "invalid_grant")
	_, err = w.Token(w.ctx(), issuer, spa(third))
	refusedAs(t, err, 400, "invalid_grant")

	messages, err := w.store.Pending(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, messages, 1)
	require.Equal(t, "idp.events.acme.token_family.reused", messages[0].Subject)
	for _, want := range []string{`"client_id":"spa"`, `"user_id":"1001"`, `"address":"192.0.2.7"`, `"browser":"Firefox"`} {
		require.Contains(t, string(messages[0].Payload), want)
	}
}

func TestRotationInParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	replicas := []*oidc.Provider{w.Provider, w.replica()}
	first := w.tokens(bySPA(w.code(ofSPA()))).RefreshToken
	good := together(t, 8, func(i int) (string, error) {
		tokens, err := replicas[i%2].Token(w.ctx(), issuer, refresh(nil, first, "client_id", "spa"))
		return tokens.RefreshToken, err
	})
	require.Len(t, good, 8)
	for _, successor := range good {
		require.Equal(t, good[0], successor, "one successor, however many ask")
	}
}

// offline_access lives on without the session: 30 days without use, 90 days in all.
func TestOffline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const day = 24 * time.Hour
	token := w.tokens(byCode(w.code(ofShop("scope", "openid offline_access")))).RefreshToken
	idle := w.tokens(byCode(w.code(ofShop("scope", "openid offline_access")))).RefreshToken
	late := w.code(ofShop("scope", "openid offline_access"))
	w.ended["s-1"] = true
	require.NoError(t, docstore.Do(w.ctx(), w.store, func(tx *docstore.Tx) error {
		return oidc.EndSession(w.ctx(), tx, "s-1")
	}))
	_, err := w.Token(w.ctx(), issuer, byCode(late))
	refusedAs(t, err, 400, "invalid_grant")
	for range 3 {
		w.clock.Advance(29 * day)
		w.tokens(refresh(shopAuth(), token))
		w.tokens(refresh(shopAuth(), token, "scope", "openid"))
	}
	_, err = w.Token(w.ctx(), issuer, refresh(shopAuth(), idle))
	refusedAs(t, err, 400, "invalid_grant")
	w.clock.Advance(3 * day)
	_, err = w.Token(w.ctx(), issuer, refresh(shopAuth(), token))
	refusedAs(t, err, 400, "invalid_grant")
}

func TestEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	endSession := func(id string) {
		require.NoError(t, docstore.Do(w.ctx(), w.store, func(tx *docstore.Tx) error {
			return oidc.EndSession(w.ctx(), tx, id)
		}))
	}
	good := func(tokens oidc.TokenAnswer) bool {
		_, err := w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
		_, refreshed := w.Token(w.ctx(), issuer, refresh(shopAuth(), tokens.RefreshToken))
		require.Equal(t, err == nil, refreshed == nil)
		return err == nil
	}
	tokens := w.tokens(byCode(w.code(ofShop())))
	offline := w.tokens(byCode(w.code(ofShop("scope", "openid offline_access"))))
	endSession("")
	endSession("s-2")
	require.NoError(t, oidc.EndUser(w.ctx(), w.store, "1002"))
	require.NoError(t, oidc.EndConsent(w.ctx(), w.store, "1001", "2002"))
	require.True(t, good(tokens) && good(offline))
	endSession("s-1")
	require.True(t, !good(tokens) && good(offline))
	require.NoError(t, oidc.EndConsent(w.ctx(), w.store, "1001", "2001"))
	require.False(t, good(offline))

	endBefore := func(at clock.Time) {
		t.Helper()
		require.NoError(t, oidc.EndBefore(w.ctx(), w.store, "1001", proof.Password, at))
	}
	offline = w.tokens(byCode(w.code(ofShop("scope", "openid offline_access")))) // as an earlier version has stored it
	endBefore(w.clock.Now())
	require.True(t, good(offline), "with the new password")
	w.clock.Advance(time.Second)
	endBefore(w.clock.Now())
	require.False(t, good(offline))

	set := w.clock.Now().Add(-time.Hour) // by another clock than that of the sign-in
	w.person.Proofs = []proof.Proof{proof.ByPassword(w.clock.Now(), set)}
	offline = w.tokens(byCode(w.code(ofShop("scope", "openid offline_access"))))
	endBefore(set)
	require.True(t, good(offline))
	require.NoError(t, oidc.EndBefore(w.ctx(), w.store, "1001", "another", w.clock.Now()))
	require.True(t, good(offline), "it rests on nothing else")
	endBefore(w.clock.Now().Add(-time.Minute))
	require.False(t, good(offline))

	offline = w.tokens(byCode(w.code(ofShop("scope", "openid offline_access"))))
	require.NoError(t, w.EndApplication(w.ctx(), "2002"))
	require.True(t, good(offline))
	require.NoError(t, w.EndApplication(w.ctx(), "2001"))
	require.False(t, good(offline))
}

// Each grant looks at the person: whoever may not sign in or use the application any more gets nothing.
func TestEachGrantAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code, tokens := w.code(ofShop()), w.tokens(byCode(w.code(ofShop())))
	for _, err := range []error{apperr.New(apperr.Forbidden, "locked"), apperr.Missing("session")} {
		w.refused = err
		_, err := w.Token(w.ctx(), issuer, byCode(code))
		refusedAs(t, err, 400, "invalid_grant")
		_, err = w.Token(w.ctx(), issuer, refresh(shopAuth(), tokens.RefreshToken))
		refusedAs(t, err, 400, "invalid_grant")
		_, err = w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
		refusedAs(t, err, 401, "invalid_token")
	}
	w.refused, w.barred = nil, apperr.New(apperr.Forbidden, "no rule")
	_, err := w.Token(w.ctx(), issuer, byCode(code))
	refusedAs(t, err, 400, "invalid_grant")
	w.barred = apperr.Away("the permissions service", nil)
	_, err = w.Token(w.ctx(), issuer, refresh(shopAuth(), tokens.RefreshToken))
	refusedAs(t, err, 503, "temporarily_unavailable")
	_, err = w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	require.NoError(t, err, "it asks nobody")
	w.barred = nil
	w.tokens(byCode(code)) // nothing of that has used it
	w.away = apperr.Away("the applications service", nil)
	_, err = w.Token(w.ctx(), issuer, refresh(shopAuth(), tokens.RefreshToken))
	refusedAs(t, err, 503, "temporarily_unavailable")
	w.away = nil
	w.change("shop", func(c *questions.Client) { c.Enabled = false })
	_, err = w.Token(w.ctx(), issuer, refresh(shopAuth(), tokens.RefreshToken))
	refusedAs(t, err, 401, "invalid_client")
}

func TestResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	of := func(tokens oidc.TokenAnswer) (aud, scope any) {
		_, claims := claimsOf(t, tokens.AccessToken)
		return claims["aud"], claims["scope"]
	}
	v := ofShop("scope", "openid users:read")
	v["resource"] = []string{"https://api.test", "https://idp.test"}
	tokens := w.tokens(byCode(w.code(v)))
	aud, scope := of(tokens)
	require.Equal(t, []any{"https://api.test", "openid"}, []any{aud, scope}, "the platform's scopes mean nothing there")
	aud, scope = of(w.tokens(refresh(shopAuth(), tokens.RefreshToken, "resource", "https://idp.test")))
	require.Equal(t, []any{"https://idp.test", "users:read"}, []any{aud, scope})
	all := w.tokens(byCode(w.code(ofShop("resource", "https://idp.test"))))
	aud, scope = of(all)
	require.Equal(t, []any{"https://idp.test", "users:read"}, []any{aud, scope},
		"those of the application that the person holds")
	for _, elsewhere := range []string{tokens.AccessToken, all.AccessToken} {
		_, err := w.UserInfo(w.ctx(), issuer, elsewhere)
		refusedAs(t, err, 401, "invalid_token")
	}
	_, err := w.Token(w.ctx(), issuer, refresh(shopAuth(), tokens.RefreshToken, "resource", "https://other.test"))
	refusedAs(t, err, 400, "invalid_target")
	aud, _ = of(w.tokens(byCode(w.code(ofShop()))))
	require.Equal(t, "shop", aud)
}

// Tenants never meet: codes, tokens and refresh tokens of one are nothing in another, though the store is the same.
func TestOtherTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code, tokens := w.code(ofShop()), w.tokens(byCode(w.code(ofShop())))
	other := request.System(t.Context(), "globex")
	const theirs = "https://idp.test/sign-in/globex"
	both := &everywhere{w}
	p := oidc.New(oidc.Deps{Store: w.store, Keys: keys.New(w.store), Clients: both, Person: w.Person,
		Exist: w.Exist, MayUse: w.MayUse,
		Seed: w.Seed, PublicURL: w.PublicURL, HTTP: http.DefaultClient, Log: w.Log, Metrics: w.Metrics})
	_, err := p.Token(other, theirs, byCode(code))
	refusedAs(t, err, 400, "invalid_grant")
	_, err = p.Token(other, theirs, refresh(shopAuth(), tokens.RefreshToken))
	refusedAs(t, err, 400, "invalid_grant")
	for _, at := range []string{issuer, theirs} {
		_, err = p.UserInfo(other, at, tokens.AccessToken)
		refusedAs(t, err, 401, "invalid_token")
	}
	_, err = w.UserInfo(w.ctx(), theirs, tokens.AccessToken)
	refusedAs(t, err, 401, "invalid_token")
	about, err := p.Introspect(other, theirs, oidc.TokenRequest{Authorization: shopAuth(),
		Form: form(nil, "token", tokens.AccessToken)})
	require.NoError(t, err)
	require.Equal(t, oidc.Introspection{}, about)
	require.NoError(t, p.Revoke(other, theirs, oidc.TokenRequest{Authorization: shopAuth(),
		Form: form(nil, "token", tokens.RefreshToken)}))
	w.tokens(refresh(shopAuth(), tokens.RefreshToken))
	w.tokens(byCode(code))
	set, err := p.Keys.JWKS(other)
	require.NoError(t, err)
	require.Empty(t, set.Keys)
}

func TestIntrospectAndRevoke(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	with := func(token string, auth []string, pairs []string) oidc.TokenRequest {
		return oidc.TokenRequest{Authorization: auth, Form: form(form(nil, "token", token), pairs...)}
	}
	about := func(token string, auth []string, pairs ...string) (oidc.Introspection, error) {
		return w.Introspect(w.ctx(), issuer, with(token, auth, pairs))
	}
	tokens := w.tokens(byCode(w.code(ofShop())))
	found, err := about(tokens.AccessToken, shopAuth())
	require.NoError(t, err)
	require.True(t, found.Active)
	require.Equal(t, []string{"1001", "shop", "shop", "openid profile", issuer, "s-1"},
		[]string{found.Subject, found.ClientID, found.Audience, found.Scope, found.Issuer, found.SessionID})
	found, err = about(tokens.RefreshToken, shopAuth())
	require.NoError(t, err)
	require.True(t, found.Active)
	theirs := w.tokens(bySPA(w.code(ofSPA())))
	for _, token := range []string{
		"x", tokens.IDToken, theirs.AccessToken, theirs.RefreshToken, tokens.AccessToken + "x",
	} {
		found, err = about(token, shopAuth())
		require.NoError(t, err)
		require.Equal(t, oidc.Introspection{}, found)
	}
	_, err = about(tokens.AccessToken, nil, "client_id", "spa")
	refusedAs(t, err, 400, "unauthorized_client")
	_, err = about("", shopAuth())
	refusedAs(t, err, 400, "invalid_request")
	_, err = about(tokens.AccessToken, nil, "client_id", "shop")
	refusedAs(t, err, 401, "invalid_client")

	revoke := func(token string, auth []string, pairs ...string) error {
		return w.Revoke(w.ctx(), issuer, with(token, auth, pairs))
	}
	require.NoError(t, revoke(theirs.RefreshToken, shopAuth()))
	require.NoError(t, revoke(theirs.AccessToken, shopAuth()))
	require.NoError(t, revoke("x", shopAuth()))
	_, err = w.UserInfo(w.ctx(), issuer, theirs.AccessToken)
	require.NoError(t, err, "nobody ends another one's tokens")
	require.NoError(t, revoke(theirs.RefreshToken, nil, "client_id", "spa"))
	_, err = w.UserInfo(w.ctx(), issuer, theirs.AccessToken)
	refusedAs(t, err, 401, "invalid_token")
	require.NoError(t, revoke(tokens.AccessToken, shopAuth()))
	found, err = about(tokens.AccessToken, shopAuth())
	require.NoError(t, err)
	require.False(t, found.Active)
	require.NoError(t, revoke(tokens.AccessToken, shopAuth()))

	ended := w.tokens(byCode(w.code(ofShop())))
	w.ended["s-1"] = true
	found, err = about(ended.AccessToken, shopAuth())
	require.NoError(t, err)
	require.False(t, found.Active, "the session has ended")
}

func TestUserInfo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.groups = nil
	for range 201 {
		w.groups = append(w.groups, "company/rd")
	}
	tokens := w.tokens(byCode(w.code(ofShop("scope", "openid groups"))))
	userinfo, err := w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	require.NoError(t, err)
	require.Len(t, userinfo["groups"], 201)
	_, claims := claimsOf(t, tokens.IDToken)
	require.NotContains(t, claims, "groups", "so many would make the token too long for headers")
	w.groups = nil
	_, err = w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "an application would take no groups for true")
	code := w.code(ofShop("scope", "openid groups"))
	_, err = w.Token(w.ctx(), issuer, byCode(code))
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	w.groups = []string{}
	_, claims = claimsOf(t, w.tokens(byCode(code)).IDToken)
	require.Equal(t, []any{}, claims["groups"], "and the code has not been spent")
	userinfo, err = w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	require.NoError(t, err)
	require.Equal(t, []string{}, userinfo["groups"])

	asked := w.tokens(byCode(w.code(ofShop("scope", "openid", "claims",
		`{"userinfo":{"name":{"essential":true},"phone_number":null,"nickname":null},"id_token":{"email":null}}`))))
	userinfo, err = w.UserInfo(w.ctx(), issuer, asked.AccessToken)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"sub": "1001", "name": "李伟", "phone_number": "+8613800000000"}, userinfo)
	_, claims = claimsOf(t, asked.IDToken)
	require.Equal(t, "li@acme.test", claims["email"])
	require.NotContains(t, claims, "name")

	for name, token := range map[string]string{
		"none": "", "an ID token": tokens.IDToken, "a refresh token": tokens.RefreshToken,
		"no signature": tokens.AccessToken[:strings.LastIndexByte(tokens.AccessToken, '.')+1],
		"no algorithm": "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0." + strings.Split(tokens.AccessToken, ".")[1] + ".",
	} {
		_, err := w.UserInfo(w.ctx(), issuer, token)
		require.Error(t, err, name)
		refusedAs(t, err, 401, "invalid_token")
	}
	w.clock.Advance(10 * time.Minute)
	_, err = w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	refusedAs(t, err, 401, "invalid_token")
}

func TestVerifiedPhoneNumber(t *testing.T) {
	t.Parallel()
	for _, verified := range []bool{false, true} {
		w := newWorld(t)
		w.person.User = []byte(strings.Replace(string(w.person.User), `"mobile_verified":false`,
			fmt.Sprintf(`"mobile_verified":%t`, verified), 1))
		tokens := w.tokens(byCode(w.code(ofShop("scope", "openid phone"))))
		userinfo, err := w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
		require.NoError(t, err)
		require.Equal(t, verified, userinfo["phone_number_verified"])
	}
}

// The settings of an application name more claims, for ID token and userinfo alike. They replace none that others rely
// on.
func TestClaimsOfTheSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record := strings.TrimSuffix(string(w.person.User), "}") +
		`,"employee_number":"00123","sys_ext_props":{"team.name":"x",` +
		`"scim":{"name":{"givenName":"Wei","familyName":"Li"},"roles":["dev","ops"],"level":3}},"free_ext_props":null}`
	w.person.User = []byte(record)
	w.change("shop", func(c *questions.Client) {
		for name, value := range map[string]string{
			"staff": "employee_number", "roles": "sys_ext_props.scim.roles", "level": "sys_ext_props.scim.level",
			"team": "sys_ext_props.team.name", "teams": "groups", "plan": "gold", "none": "free_ext_props.x",
			"": "username", "account": "sub_account", "name": "username",
			"sub": "username", "aud": "everybody", "nonce": "mine", "acr": "high", "email": "sys_ext_props.team.name",
			"email_verified": "gold", "password": "password_hash",
		} {
			c.OIDC.ResponseAttributes = append(c.OIDC.ResponseAttributes,
				questions.Attribute{Attribute: name, Value: value})
		}
	})
	tokens := w.tokens(byCode(w.code(ofShop("scope", "openid profile email", "nonce", ""))))
	_, claims := claimsOf(t, tokens.IDToken)
	info, err := w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	require.NoError(t, err)
	body, err := json.Marshal(info)
	require.NoError(t, err)
	var userinfo map[string]any
	require.NoError(t, json.Unmarshal(body, &userinfo))
	for name, want := range map[string]any{
		"staff": "00123", "roles": []any{"dev", "ops"}, "level": 3.0, "team": "x", "plan": "gold", "username": "li.wei",
		"teams": []any{"company", "company/rd"}, "name": "li.wei", "given_name": "Wei", "family_name": "Li",
		"sub": "1001", "email": "li@acme.test", "email_verified": true, "middle_name": nil, "none": nil, "account": nil,
		"password": "password_hash", // a literal: no member of that name is told
	} {
		require.Equal(t, want, claims[name], "%s in the ID token", name)
		require.Equal(t, want, userinfo[name], "%s in userinfo", name)
	}
	require.Equal(t, []any{"shop", "urn:idplatform:aal:1", nil}, []any{claims["aud"], claims["acr"], claims["nonce"]})
	require.NotContains(t, userinfo, "aud")

	w.groups = make([]string, 201)
	tokens = w.tokens(byCode(w.code(ofShop("scope", "openid"))))
	_, claims = claimsOf(t, tokens.IDToken)
	require.NotContains(t, claims, "teams", "so many would make the token too long for headers")
	require.NotContains(t, claims, "given_name", "it is of the scope profile")
	w.groups = nil
	_, err = w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
}

// An application with OAuth 2.0 alone gets access tokens, and learns nothing about the person.
func TestOAuthWithoutOpenID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change("shop", func(c *questions.Client) { c.OIDC = &questions.OIDCSettings{OAuthOnly: true} })
	tokens := w.tokens(byCode(w.code(ofShop("scope", "openid profile email"))))
	require.Empty(t, tokens.IDToken)
	require.Equal(t, "profile email", tokens.Scope)
	_, err := w.UserInfo(w.ctx(), issuer, tokens.AccessToken)
	refusedAs(t, err, 403, "insufficient_scope")
	w.clock.Advance(time.Minute)
	again := w.tokens(refresh(shopAuth(), tokens.RefreshToken))
	require.Equal(t, []string{"", "profile email"}, []string{again.IDToken, again.Scope})
	status, err := w.Introspect(w.ctx(), issuer, oidc.TokenRequest{Authorization: shopAuth(),
		Form: form(nil, "token", again.AccessToken)})
	require.NoError(t, err)
	require.True(t, status.Active)
}

// everywhere has the same applications in each tenant.
type everywhere struct{ *world }

// Of implements oidc.Clients.
func (e *everywhere) Of(_ context.Context, name questions.ClientName) (questions.Client, error) {
	return e.world.Of(e.ctx(), name)
}

// Unmodified clients sign a person in, by each algorithm.
func TestUnmodifiedClients(t *testing.T) {
	t.Parallel()
	for _, algorithm := range keys.Algorithms {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.change("shop", func(c *questions.Client) {
				c.OIDC = &questions.OIDCSettings{SignatureAlgorithm: algorithm, LifetimeInSeconds: 600}
			})
			issuer, client := w.serve()
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			ctx := gooidc.ClientContext(t.Context(), client)
			provider, err := gooidc.NewProvider(ctx, issuer)
			require.NoError(t, err)
			config := oauth2.Config{ClientID: "shop", ClientSecret: "shop secret", Endpoint: provider.Endpoint(),
				RedirectURL: callback, Scopes: []string{"openid", "email"}}
			pkce := oauth2.GenerateVerifier()
			answer, err := client.Get(config.AuthCodeURL("st", gooidc.Nonce("n-0"), oauth2.S256ChallengeOption(pkce)))
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			back, err := answer.Location()
			require.NoError(t, err)
			require.Equal(t, "st", back.Query().Get("state"))
			tokens, err := config.Exchange(ctx, back.Query().Get("code"), oauth2.VerifierOption(pkce))
			require.NoError(t, err)
			text := tokens.Extra("id_token").(string)
			id, err := provider.Verifier(&gooidc.Config{ClientID: "shop"}).Verify(ctx, text)
			require.NoError(t, err)
			require.NoError(t, id.VerifyAccessToken(tokens.AccessToken))
			require.Equal(t, []string{"1001", "n-0"}, []string{id.Subject, id.Nonce})
			about, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
			require.NoError(t, err)
			require.Equal(t, "li@acme.test", about.Email)
			tokens.Expiry = time.Now().Add(-time.Hour)
			renewed, err := config.TokenSource(ctx, tokens).Token()
			require.NoError(t, err)
			require.NotEqual(t, tokens.AccessToken, renewed.AccessToken)
			_, err = config.Exchange(ctx, back.Query().Get("code"), oauth2.VerifierOption(pkce))
			refusal, ok := errors.AsType[*oauth2.RetrieveError](err)
			require.True(t, ok, err)
			require.Equal(t, "invalid_grant", refusal.ErrorCode)
		})
	}
}
