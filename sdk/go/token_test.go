package idp

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	p, _ := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, number int) {
		answerJSON(w, `{"access_token":"t`+string('0'+rune(number))+`","expires_in":3600}`)
	})
	source, err := ClientCredentials{
		URL: p.url, ClientID: "a b", Secret: "s+&", Scope: "users:read", Tenant: "acme",
	}.Source()
	require.NoError(t, err)
	now := time.Now()
	source.now = func() time.Time { return now }
	token := func() string {
		token, err := source.Token(t.Context())
		require.NoError(t, err)
		return token
	}
	assert.Zero(t, source.Until())
	assert.Equal(t, "t1", token())
	assert.Equal(t, "t1", token(), "a token is kept")
	assert.Equal(t, now.Add(3570*time.Second), source.Until())
	id, secret, _ := (&http.Request{Header: p.asked()[0].header}).BasicAuth()
	assert.Equal(t, "a+b s%2B%26", id+" "+secret, "both are encoded before (RFC 6749 §2.3.1)")
	assert.Equal(t, "grant_type=client_credentials&scope=users%3Aread", p.asked()[0].body)
	assert.Equal(t, "acme", p.asked()[0].header.Get("X-Tenant-Id"))
	now = now.Add(3569 * time.Second)
	assert.Equal(t, "t1", token())
	now = now.Add(2 * time.Second)
	assert.Equal(t, "t2", token(), "it is replaced before it ends")
	source.Forget()
	assert.Equal(t, "t3", token())
}

func TestPrivateKeyJWT(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	text, err := (&jose.JSONWebKey{Key: private, KeyID: "k1"}).MarshalJSON()
	require.NoError(t, err)
	key, err := ParseSigningKey(text)
	require.NoError(t, err)
	p, _ := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, number int) {
		if number == 1 {
			lose(w)
		}
		answerJSON(w, `{"access_token":"t","expires_in":60}`)
	})
	source, err := ClientCredentials{URL: p.url + "/", ClientID: "crm", Key: key}.Source()
	require.NoError(t, err)
	token, err := source.Token(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "t", token)
	require.Len(t, p.asked(), 2)
	var ids []string
	for _, one := range p.asked() {
		form, err := url.ParseQuery(one.body)
		require.NoError(t, err)
		parsed, err := jwt.ParseSigned(form.Get("client_assertion"), []jose.SignatureAlgorithm{jose.EdDSA})
		require.NoError(t, err)
		var claims jwt.Claims
		require.NoError(t, parsed.Claims(public, &claims))
		expected := jwt.Expected{Issuer: "crm", Subject: "crm", AnyAudience: jwt.Audience{p.url}}
		require.NoError(t, claims.Validate(expected))
		assert.Equal(t, "k1", parsed.Headers[0].KeyID)
		ids = append(ids, claims.ID)
	}
	assert.NotEqual(t, ids[0], ids[1], "an assertion is used once")
}

func TestSigningKeys(t *testing.T) {
	t.Parallel()
	pemOf := func(curve elliptic.Curve) []byte {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		require.NoError(t, err)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	key, err := ParseSigningKey(pemOf(elliptic.P256()))
	require.NoError(t, err)
	signed, err := key.sign(map[string]any{"a": 1})
	require.NoError(t, err)
	assert.NotEmpty(t, signed)
	for text, want := range map[string]string{
		string(pemOf(elliptic.P384())): "the key's curve must be P-256",
		"nothing":                      "the key is neither PEM nor a JWK",
		"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n": "not a private key without a password",
	} {
		_, err := ParseSigningKey([]byte(text))
		assert.ErrorContains(t, err, want)
	}
}

func TestCredentialsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, c := range []ClientCredentials{{}, {ClientID: "a"}, {ClientID: "a", Secret: "s", Key: &SigningKey{}},
		{ClientID: "a", Secret: "s", URL: "nowhere"}} {
		_, err := c.Source()
		assert.Error(t, err)
	}
}

func TestRefusedTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	gets := 0
	tokens := NewCachedTokens(func(context.Context) (string, time.Duration, error) {
		gets++
		return "t", time.Hour, nil
	})
	p, client := start(t, Config{Tokens: tokens}, func(w http.ResponseWriter, _ *http.Request, number int) {
		if number != 2 {
			refuse(w, http.StatusUnauthorized, CodeUnauthenticated)
			return
		}
		answerJSON(w, `{"id":"1"}`)
	})
	_, err := client.GetUser(t.Context(), "1")
	require.NoError(t, err)
	assert.Equal(t, 2, gets)
	_, err = client.GetUser(t.Context(), "1")
	assert.Equal(t, CodeUnauthenticated, CodeOf(err))
	assert.Len(t, p.asked(), 4)
}

func TestTokenSourceFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("the vault is closed")
	tokens := NewCachedTokens(func(context.Context) (string, time.Duration, error) { return "", 0, broken })
	p, client := start(t, Config{Tokens: tokens}, func(http.ResponseWriter, *http.Request, int) {})
	_, err := client.GetUser(t.Context(), "1")
	require.ErrorIs(t, err, broken)
	assert.Empty(t, p.asked())
}
