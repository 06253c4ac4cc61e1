package oidc_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
)

type pairs struct {
	ed  ed25519.PrivateKey
	es  *ecdsa.PrivateKey
	rsa *rsa.PrivateKey
}

func newPairs(t *testing.T) (p pairs, jwks json.RawMessage) {
	t.Helper()
	var err error
	_, p.ed, err = ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	p.es, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	jwks, err = json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: p.ed.Public(), KeyID: "ed"}, {Key: p.es.Public(), KeyID: "es"}, {Key: p.rsa.Public(), KeyID: "rsa"},
	}})
	require.NoError(t, err)
	return p, jwks
}

func (w *world) assertion(t *testing.T, method jwt.SigningMethod, key any, kid string, claims map[string]any) string {
	t.Helper()
	now := w.clock.Now().Millis() / 1000
	all := jwt.MapClaims{"iss": "shop", "sub": "shop", "aud": issuer, "jti": rand.Text(), "iat": now, "exp": now + 60}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	token := jwt.NewWithClaims(method, all)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return text
}

// aud are claims with these audiences.
func aud(audiences ...string) map[string]any { return map[string]any{"aud": audiences} }

func asserted(code, assertion string, more ...string) oidc.TokenRequest {
	r := byCode(code, append([]string{"client_assertion", assertion,
		"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}, more...)...)
	r.Authorization = nil
	return r
}

func TestPrivateKeyJWT(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, jwks := newPairs(t)
	stranger, _ := newPairs(t)
	w.change("shop", func(c *questions.Client) { c.JWKS = jwks })
	now := w.clock.Now().Millis() / 1000
	der, err := x509.MarshalPKIXPublicKey(p.rsa.Public())
	require.NoError(t, err)
	for name, row := range map[string]struct {
		method jwt.SigningMethod
		key    any
		kid    string
		claims map[string]any
		ok     bool
	}{
		"EdDSA":                  {jwt.SigningMethodEdDSA, p.ed, "ed", nil, true},
		"ES256":                  {jwt.SigningMethodES256, p.es, "", nil, true},
		"RS256, token endpoint":  {jwt.SigningMethodRS256, p.rsa, "rsa", aud("x", issuer+"/token"), true},
		"another key":            {jwt.SigningMethodES256, stranger.es, "es", nil, false},
		"none":                   {jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "", nil, false},
		"the public key as MAC":  {jwt.SigningMethodHS256, der, "rsa", nil, false},
		"the JWKS as MAC":        {jwt.SigningMethodHS256, []byte(jwks), "", nil, false},
		"the client id as MAC":   {jwt.SigningMethodHS256, []byte("shop secret"), "", nil, false},
		"another algorithm":      {jwt.SigningMethodPS256, p.rsa, "rsa", nil, false},
		"a key of another kind":  {jwt.SigningMethodRS256, p.rsa, "es", nil, false},
		"another issuer":         {jwt.SigningMethodEdDSA, p.ed, "ed", map[string]any{"iss": "spa"}, false},
		"another subject":        {jwt.SigningMethodEdDSA, p.ed, "ed", map[string]any{"sub": "spa"}, false},
		"another server":         {jwt.SigningMethodEdDSA, p.ed, "ed", aud("https://evil.test"), false},
		"another tenant":         {jwt.SigningMethodEdDSA, p.ed, "ed", aud("https://idp.test/sign-in/globex"), false},
		"another endpoint":       {jwt.SigningMethodEdDSA, p.ed, "ed", aud(issuer + "/par"), false},
		"expired":                {jwt.SigningMethodEdDSA, p.ed, "ed", map[string]any{"exp": now - 60}, false},
		"for ever":               {jwt.SigningMethodEdDSA, p.ed, "ed", map[string]any{"exp": nil}, false},
		"for a day":              {jwt.SigningMethodEdDSA, p.ed, "ed", map[string]any{"exp": now + 86400}, false},
		"no jti":                 {jwt.SigningMethodEdDSA, p.ed, "ed", map[string]any{"jti": nil}, false},
		"an issue in the future": {jwt.SigningMethodEdDSA, p.ed, "ed", map[string]any{"iat": now + 600}, false},
	} {
		assertion := w.assertion(t, row.method, row.key, row.kid, row.claims)
		_, err := w.Token(w.ctx(), issuer, asserted(w.code(ofShop()), assertion))
		if row.ok {
			require.NoError(t, err, name)
			continue
		}
		require.Error(t, err, name)
		refusedAs(t, err, 401, "invalid_client")
	}

	good := w.assertion(t, jwt.SigningMethodEdDSA, p.ed, "ed", nil)
	_, err = w.Token(w.ctx(), issuer, asserted(w.code(ofShop()), good, "client_id", "spa"))
	refusedAs(t, err, 400, "invalid_request")
	_, err = w.Token(w.ctx(), issuer, asserted("", good, "client_assertion_type", "x"))
	refusedAs(t, err, 400, "invalid_request")
	_, err = w.Token(w.ctx(), issuer, asserted("", "x"))
	refusedAs(t, err, 401, "invalid_client")
	w.tokens(asserted(w.code(ofShop()), good, "client_id", "shop"))
	_, err = w.replica().Token(w.ctx(), issuer, asserted(w.code(ofShop()), good))
	refusedAs(t, err, 401, "invalid_client")
	w.clock.Advance(2e9)
	_, err = w.Token(w.ctx(), issuer, asserted(w.code(ofShop()), good))
	refusedAs(t, err, 401, "invalid_client")
}

// One assertion authenticates one request, of however many at once.
func TestAssertionInParallel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, jwks := newPairs(t)
	w.change("shop", func(c *questions.Client) { c.JWKS = jwks })
	assertion := w.assertion(t, jwt.SigningMethodES256, p.es, "es", nil)
	about := w.tokens(byCode(w.code(ofShop()))).AccessToken
	results := make(chan error, 8)
	for range cap(results) {
		go func() {
			_, err := w.Introspect(w.ctx(), issuer, asserted("", assertion, "token", about))
			results <- err
		}()
	}
	good := 0
	for range cap(results) {
		if err := <-results; err == nil {
			good++
		} else {
			refusedAs(t, err, 401, "invalid_client")
		}
	}
	require.Equal(t, 1, good)
}

func TestKeysAtAnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, jwks := newPairs(t)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write(jwks)
	}))
	t.Cleanup(server.Close)
	w.HTTP = loopback(t)
	w.change("shop", func(c *questions.Client) { c.JWKSURI = server.URL })
	at := oidc.New(w.Deps)
	assertion := w.assertion(t, jwt.SigningMethodES256, p.es, "es", nil)
	_, err := at.Token(w.ctx(), issuer, asserted(w.code(ofShop()), assertion))
	require.NoError(t, err)
}
