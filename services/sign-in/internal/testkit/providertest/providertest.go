// Package providertest is an OpenID provider at which people sign in by a call of the test. It checks what a client
// must send, and can be told to answer wrongly.
package providertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
)

// The client that the provider knows.
const (
	ClientID     = "idplatform"
	ClientSecret = "s3cr3t+of the:client" // with signs that must be escaped in the Authorization header
)

// Provider is an OpenID provider.
type Provider struct {
	Issuer string

	t     testing.TB
	now   func() clock.Time
	key   *ecdsa.PrivateKey
	mu    sync.Mutex
	codes map[string]signedIn
	// Spoil changes the claims of each ID token; Metadata those of the discovery document. nil: nothing.
	Spoil, Metadata func(map[string]any)
	// UserInfo are the claims at the userinfo endpoint; nil: it has none.
	UserInfo map[string]any
	// Down makes it answer nothing but errors.
	Down bool
	// Redeemed counts the codes that were redeemed, and Discovered how often the metadata was read.
	Redeemed, Discovered int
}

type signedIn struct {
	claims    map[string]any
	challenge string
	redirect  string
}

// Start starts a provider, for as long as the test lasts.
func Start(t testing.TB, now func() clock.Time) *Provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p := &Provider{t: t, now: now, key: key, codes: map[string]signedIn{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, p.UserInfo)
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.Down {
			http.Error(w, "maintenance", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.Issuer = server.URL
	return p
}

// Change changes the provider while it runs.
func (p *Provider) Change(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.Discovered++
	document := map[string]any{
		"issuer": p.Issuer, "authorization_endpoint": p.Issuer + "/authorize", "token_endpoint": p.Issuer + "/token",
		"jwks_uri": p.Issuer + "/keys", "response_types_supported": []string{"code"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
		"authorization_response_iss_parameter_supported": true,
	}
	if p.UserInfo != nil {
		document["userinfo_endpoint"] = p.Issuer + "/userinfo"
	}
	if p.Metadata != nil {
		p.Metadata(document)
	}
	answer(w, http.StatusOK, document)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: p.key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"},
	}})
}

// SignIn signs somebody in who comes with an authorization request, and returns the address that the browser goes to.
func (p *Provider) SignIn(request string, claims map[string]any) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	u, err := url.Parse(request)
	require.NoError(p.t, err)
	require.Equal(p.t, p.Issuer+"/authorize", u.Scheme+"://"+u.Host+u.Path)
	q := u.Query()
	require.Equal(p.t, "code", q.Get("response_type"))
	require.Equal(p.t, ClientID, q.Get("client_id"))
	require.Equal(p.t, "S256", q.Get("code_challenge_method"))
	require.Contains(p.t, q.Get("scope"), "openid")
	now := p.now().Millis() / 1000
	all := map[string]any{
		"iss": p.Issuer, "aud": ClientID, "iat": now, "exp": now + 300, "nonce": q.Get("nonce"), "auth_time": now,
	}
	maps.Copy(all, claims)
	code := rand.Text()
	p.codes[code] = signedIn{all, q.Get("code_challenge"), q.Get("redirect_uri")}
	return q.Get("redirect_uri") + "?" + url.Values{
		"code": {code}, "state": {q.Get("state")}, "iss": {p.Issuer}, "session_state": {"ignored"},
	}.Encode()
}

// Refuse is SignIn of somebody who does not.
func (p *Provider) Refuse(request, reason string) string {
	p.t.Helper()
	u, err := url.Parse(request)
	require.NoError(p.t, err)
	q := u.Query()
	return q.Get("redirect_uri") + "?" + url.Values{
		"error": {reason}, "state": {q.Get("state")}, "iss": {p.Issuer},
	}.Encode()
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	if !ok || id != ClientID || secret != ClientSecret {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	code := r.PostFormValue("code")
	in, ok := p.codes[code]
	delete(p.codes, code)
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || r.PostFormValue("redirect_uri") != in.redirect ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != in.challenge {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	p.Redeemed++
	if p.Spoil != nil {
		p.Spoil(in.claims)
	}
	answer(w, http.StatusOK, map[string]any{
		"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300, "id_token": p.sign(in.claims),
	})
}

// LogoutToken is what the provider sends when a session ends there. The claims are added to those of a good one, and
// remove those that are nil.
func (p *Provider) LogoutToken(claims map[string]any) string {
	p.t.Helper()
	now := p.now().Millis() / 1000
	all := map[string]any{
		"iss": p.Issuer, "aud": ClientID, "iat": now, "exp": now + 120, "jti": rand.Text(),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	return p.sign(all)
}

func (p *Provider) sign(claims map[string]any) string {
	p.t.Helper()
	key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: "1"}}
	signer, err := jose.NewSigner(key, nil)
	require.NoError(p.t, err)
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	require.NoError(p.t, err)
	return text
}
