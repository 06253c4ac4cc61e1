package token_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

// signer has a client's private keys. Their kids are ed, es and rsa.
type signer struct {
	ed  ed25519.PrivateKey
	es  *ecdsa.PrivateKey
	rsa *rsa.PrivateKey
}

func newSigner(t testing.TB) *signer {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	es, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return &signer{ed, es, rs}
}

// public is the client's JWK set.
func (s *signer) public(t testing.TB) []byte {
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: s.ed.Public(), KeyID: "ed"}, {Key: s.es.Public(), KeyID: "es"}, {Key: s.rsa.Public(), KeyID: "rsa"},
	}})
	require.NoError(t, err)
	return text
}

// keyed is an application with public keys and no secret.
func keyed(id string, jwks []byte, uri string) application.Client {
	c := machine(id, "acme", "", "users:read")
	c.Secrets, c.JWKS, c.JWKSURI = nil, jwks, uri
	return c
}

// sign makes a JWT.
func sign(t testing.TB, method jwt.SigningMethod, key any, header, claims map[string]any) string {
	made := jwt.NewWithClaims(method, jwt.MapClaims(claims))
	maps.Copy(made.Header, header)
	text, err := made.SignedString(key)
	require.NoError(t, err)
	return text
}

// withAssertion is the body of a token request with an assertion.
func withAssertion(text string) string {
	return grant + "&client_assertion_type=" +
		url.QueryEscape("urn:ietf:params:oauth:client-assertion-type:jwt-bearer") + "&client_assertion=" + text
}

// claims are those of a valid assertion of client c1.
func (w *world) claims(jti string) map[string]any {
	now := w.Clock.Now().Millis() / 1000
	return map[string]any{"iss": "c1", "sub": "c1", "aud": "https://idp.test", "jti": jti, "iat": now, "exp": now + 60}
}

func TestAssertions(t *testing.T) {
	t.Parallel()
	s, stranger := newSigner(t), newSigner(t)
	jwks := s.public(t)
	w := newWorld(t, keyed("c1", jwks, ""), machine("c2", "acme", "s3cret"))
	now := w.Clock.Now().Millis() / 1000
	ed, es, rs := map[string]any{"kid": "ed"}, map[string]any{"kid": "es"}, map[string]any{"kid": "rsa"}
	for name, c := range map[string]struct {
		method jwt.SigningMethod
		key    any
		header map[string]any
		claims map[string]any // nil removes a claim
		ok     bool
	}{
		"EdDSA":                {method: jwt.SigningMethodEdDSA, key: s.ed, header: ed, ok: true},
		"ES256":                {method: jwt.SigningMethodES256, key: s.es, header: es, ok: true},
		"RS256":                {method: jwt.SigningMethodRS256, key: s.rsa, header: rs, ok: true},
		"no kid, one such key": {method: jwt.SigningMethodEdDSA, key: s.ed, ok: true},
		"the endpoint as audience": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"aud": "https://idp.test/v1/oauth2/token"}, ok: true},
		"one audience of several": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"aud": []string{"x", "https://idp.test"}}, ok: true},
		"just expired": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"exp": now - 29}, ok: true},
		"from a clock ahead": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"iat": now + 29, "nbf": now + 29}, ok: true},
		"expired": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"exp": now - 31}},
		"not yet": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"nbf": now + 31}},
		"made in the future": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"iat": now + 31}},
		"without an end": {method: jwt.SigningMethodEdDSA, key: s.ed, claims: map[string]any{"exp": nil}},
		"valid for a day": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"exp": now + 86400}},
		"another audience": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"aud": "https://idp.test.evil"}},
		"no audience":    {method: jwt.SigningMethodEdDSA, key: s.ed, claims: map[string]any{"aud": nil}},
		"another issuer": {method: jwt.SigningMethodEdDSA, key: s.ed, claims: map[string]any{"iss": "c2"}},
		"about a client without key": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"iss": "c2", "sub": "c2"}},
		"about an unknown client": {method: jwt.SigningMethodEdDSA, key: s.ed,
			claims: map[string]any{"iss": "c3", "sub": "c3"}},
		"no subject":       {method: jwt.SigningMethodEdDSA, key: s.ed, claims: map[string]any{"sub": nil}},
		"no jti":           {method: jwt.SigningMethodEdDSA, key: s.ed, claims: map[string]any{"jti": nil}},
		"a stranger's key": {method: jwt.SigningMethodEdDSA, key: stranger.ed, header: ed},
		"an unknown kid":   {method: jwt.SigningMethodEdDSA, key: s.ed, header: map[string]any{"kid": "x"}},
		"critical header": {method: jwt.SigningMethodEdDSA, key: s.ed,
			header: map[string]any{"crit": []string{"x"}, "x": 1}},
		"alg none": {method: jwt.SigningMethodNone, key: jwt.UnsafeAllowNoneSignatureType,
			header: ed},
		"HMAC with the public key": {method: jwt.SigningMethodHS256, key: []byte(s.ed.Public().(ed25519.PublicKey)),
			header: ed},
		"HMAC with the key set":    {method: jwt.SigningMethodHS256, key: jwks},
		"another algorithm's key":  {method: jwt.SigningMethodRS256, key: s.rsa, header: ed},
		"an algorithm not offered": {method: jwt.SigningMethodPS256, key: s.rsa, header: rs},
		"a key in the header": {method: jwt.SigningMethodEdDSA, key: stranger.ed,
			header: map[string]any{"jwk": json.RawMessage(stranger.public(t))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claims := w.claims(name)
			maps.Copy(claims, c.claims)
			maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
			answer := w.form(tokenPath, withAssertion(sign(t, c.method, c.key, c.header, claims)))
			if c.ok {
				answer.OK(nil)
				return
			}
			requireFault(t, answer, http.StatusUnauthorized, "invalid_client")
		})
	}
	good := sign(t, jwt.SigningMethodEdDSA, s.ed, ed, w.claims("type"))
	requireFault(t, w.form(tokenPath, grant+"&client_assertion_type=urn:x&client_assertion="+good),
		http.StatusBadRequest, "invalid_request")
	requireFault(t, w.form(tokenPath, withAssertion(good), "Authorization", basicAuth("c2", "s3cret")),
		http.StatusBadRequest, "invalid_request")
	requireFault(t, w.form(tokenPath, withAssertion("nonsense")), http.StatusUnauthorized, "invalid_client")
}

// An assertion is accepted once, whichever replicas get it at the same time.
func TestAssertionsAreAcceptedOnce(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	w := newWorld(t, keyed("c1", s.public(t), ""))
	replica := &world{Service: w.Replica(w.spec)}
	text := sign(t, jwt.SigningMethodEdDSA, s.ed, nil, w.claims("once"))
	var given, refused atomic.Int32
	var asking sync.WaitGroup
	for i := range 8 {
		asking.Go(func() {
			at := []*world{w, replica}[i%2]
			switch at.form(tokenPath, withAssertion(text)).Status {
			case http.StatusOK:
				given.Add(1)
			case http.StatusUnauthorized:
				refused.Add(1)
			}
		})
	}
	asking.Wait()
	require.EqualValues(t, 1, given.Load())
	require.EqualValues(t, 7, refused.Load())

	second := sign(t, jwt.SigningMethodEdDSA, s.ed, nil, w.claims("dry"))
	w.form(tokenPath+"?dry_run=true", withAssertion(second)).OK(nil)
	requireFault(t, w.form(tokenPath, withAssertion(second)), http.StatusUnauthorized, "invalid_client")
}

// A client's keys are fetched from its jwks_uri, cached, and fetched again for an unknown key.
func TestKeysOfAnAddress(t *testing.T) {
	t.Parallel()
	s, next := newSigner(t), newSigner(t)
	var published atomic.Pointer[[]byte]
	var fetched atomic.Int32
	publish := func(set []byte) { published.Store(&set) }
	publish(s.public(t))
	at := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		if set := *published.Load(); set != nil {
			_, _ = rw.Write(set)
			return
		}
		rw.WriteHeader(http.StatusInternalServerError)
	}))
	defer at.Close()
	w := newWorld(t, keyed("c1", nil, at.URL))
	try := func(s *signer, kid, jti string) *testkit.Answer {
		return w.form(tokenPath, withAssertion(sign(t, jwt.SigningMethodEdDSA, s.ed, map[string]any{"kid": kid},
			w.claims(jti))))
	}
	try(s, "ed", "1").OK(nil)
	try(s, "ed", "2").OK(nil)
	require.EqualValues(t, 1, fetched.Load())
	requireFault(t, try(s, "other", "3"), http.StatusUnauthorized, "invalid_client")
	require.EqualValues(t, 1, fetched.Load(), "not more than once in ten seconds")

	rotated, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: next.ed.Public(), KeyID: "next"}}})
	require.NoError(t, err)
	publish(rotated)
	w.Clock.Advance(11 * time.Second)
	try(next, "next", "4").OK(nil)
	require.EqualValues(t, 2, fetched.Load())
	requireFault(t, try(s, "ed", "5"), http.StatusUnauthorized, "invalid_client")

	publish(nil)
	w.Clock.Advance(11 * time.Second)
	try(next, "next", "6").OK(nil) // while the address does not answer, the last keys are used
	requireFault(t, try(next, "newer", "7"), http.StatusServiceUnavailable, "temporarily_unavailable")

	w.clients.set(keyed("c1", s.public(t), "")) // the client has a key set of its own now
	try(s, "ed", "8").OK(nil)
}
