package auth

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
)

func TestVerifyReadsWhatMintWrote(t *testing.T) {
	t.Parallel()
	s, v, clk := newPlatform(t)
	token, err := s.Mint(Claims{
		Subject: "1048577", ClientID: "c1", ClientVersion: 7, Tenant: "acme", Scopes: NewScopes(UsersRead, KVWrite),
		TTL: 90 * time.Second,
	})
	require.NoError(t, err)
	p, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	require.NotEmpty(t, p.TokenID)
	require.Equal(t, &Principal{
		Issuer: platform, Subject: "1048577", ClientID: "c1", ClientVersion: 7, Tenant: "acme", TokenID: p.TokenID,
		actor:    platform + "#1048577",
		keyID:    s.Keys().IDs()[0],
		Scopes:   NewScopes(KVWrite, UsersRead),
		IssuedAt: clk.Now(), Expires: clk.Now().Add(90 * time.Second), caller: p.caller,
	}, p)

	other, err := s.Mint(Claims{Subject: "1", Tenant: "acme", TTL: time.Second})
	require.NoError(t, err)
	q, err := v.Verify(t.Context(), other)
	require.NoError(t, err)
	require.NotEqual(t, p.TokenID, q.TokenID)
}

// One caller has one hash, whatever the token; other callers have others.
func TestCallers(t *testing.T) {
	t.Parallel()
	s, v, _ := newPlatform(t)
	caller := func(tenant, subject string) string {
		token, err := s.Mint(Claims{Subject: subject, Tenant: tenant, TTL: time.Minute})
		require.NoError(t, err)
		p, err := v.Verify(t.Context(), token)
		require.NoError(t, err)
		h := http.Header{}
		p.SetCaller(h)
		require.NotContains(t, h.Get(request.CallerHeader), subject)
		return h.Get(request.CallerHeader)
	}
	require.Regexp(t, "^[A-Za-z0-9_-]{22}$", caller("acme", "1048577"))
	require.Equal(t, caller("acme", "1048577"), caller("acme", "1048577"))
	require.NotEqual(t, caller("acme", "1048577"), caller("globex", "1048577"))
	require.NotEqual(t, caller("acme", "1048577"), caller("acme", "1048578"))
}

func TestMintRefusesWhatVerifyWould(t *testing.T) {
	t.Parallel()
	s, _, _ := newPlatform(t)
	for name, c := range map[string]Claims{
		"no subject":   {Tenant: "acme", TTL: time.Hour},
		"long subject": {Subject: strings.Repeat("x", 256), Tenant: "acme", TTL: time.Hour},
		"no tenant":    {Subject: "1", TTL: time.Hour},
		"bad tenant":   {Subject: "1", Tenant: "Acme", TTL: time.Hour},
		"no lifetime":  {Subject: "1", Tenant: "acme"},
		"too long":     {Subject: "1", Tenant: "acme", TTL: MaxTokenTTL + 1},
	} {
		_, err := s.Mint(c)
		require.Error(t, err, name)
	}
}

func TestVerifyClaims(t *testing.T) {
	t.Parallel()
	s, v, clk := newPlatform(t)
	key := s.Keys().list[0]
	at := func(d time.Duration) int64 { return clk.Now().Add(d).Millis() / 1000 }
	tests := map[string]struct {
		header, claims map[string]any // nil removes a member
		ok             bool
	}{
		"a valid token":           {ok: true},
		"expired":                 {claims: map[string]any{"exp": at(-time.Hour)}},
		"expired within leeway":   {claims: map[string]any{"exp": at(-29 * time.Second)}, ok: true},
		"expired at leeway":       {claims: map[string]any{"exp": at(-30 * time.Second)}},
		"no exp":                  {claims: map[string]any{"exp": nil}},
		"exp is not a number":     {claims: map[string]any{"exp": "tomorrow"}},
		"exp beyond the calendar": {claims: map[string]any{"exp": 1e15}},
		"nbf within leeway":       {claims: map[string]any{"nbf": at(30 * time.Second)}, ok: true},
		"not yet valid":           {claims: map[string]any{"nbf": at(31 * time.Second)}},
		"nbf is not a number":     {claims: map[string]any{"nbf": "now"}},
		"unknown issuer":          {claims: map[string]any{"iss": "https://evil.example"}},
		"issuer with slash":       {claims: map[string]any{"iss": platform + "/"}},
		"issuer in capitals":      {claims: map[string]any{"iss": strings.ToUpper(platform)}},
		"issuer as a list":        {claims: map[string]any{"iss": []string{platform}}},
		"no issuer":               {claims: map[string]any{"iss": nil}},
		"no subject":              {claims: map[string]any{"sub": nil}},
		"empty subject":           {claims: map[string]any{"sub": ""}},
		"subject is not a text":   {claims: map[string]any{"sub": 1048577}},
		"long subject":            {claims: map[string]any{"sub": strings.Repeat("s", 256)}},
		"no tenant":               {claims: map[string]any{"tenant_id": nil}},
		"bad tenant":              {claims: map[string]any{"tenant_id": "../acme"}},
		"tenant in other case":    {claims: map[string]any{"tenant_id": nil, "TENANT_ID": "acme"}},
		"no scope":                {claims: map[string]any{"scope": nil}, ok: true},
		"typ JWT":                 {header: map[string]any{"typ": "JWT"}, ok: true},
		"typ application/at+jwt":  {header: map[string]any{"typ": "application/at+JWT"}, ok: true},
		"no typ":                  {header: map[string]any{"typ": nil}, ok: true},
		"typ of another purpose":  {header: map[string]any{"typ": "logout+jwt"}},
		"typ is not a text":       {header: map[string]any{"typ": 1}},
		"crit":                    {header: map[string]any{"crit": []string{"b64"}, "b64": false}},
		"no kid, one key":         {header: map[string]any{"kid": nil}, ok: true},
		"another kid":             {header: map[string]any{"kid": newTestKey(t).ID}},
		"kid is not a text":       {header: map[string]any{"kid": 7}},
		"kid as a path":           {header: map[string]any{"kid": "../../../../dev/null"}},
		"kid as a query":          {header: map[string]any{"kid": "' OR 1=1 --"}},
		"kid with a zero byte":    {header: map[string]any{"kid": key.ID + "\x00"}},
	}
	for name, test := range tests {
		header := map[string]any{"typ": "at+jwt", "kid": key.ID}
		claims := goodClaims(clk.Now())
		for _, m := range []struct{ to, from map[string]any }{{header, test.header}, {claims, test.claims}} {
			maps.Copy(m.to, m.from)
		}
		maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
		token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims(claims))
		maps.Copy(token.Header, header)
		maps.DeleteFunc(token.Header, func(_ string, value any) bool { return value == nil })
		text, err := token.SignedString(key.private)
		require.NoError(t, err)
		if test.ok {
			_, err := v.Verify(t.Context(), text)
			require.NoError(t, err, name)
			continue
		}
		_, err = v.Verify(t.Context(), text)
		require.Error(t, err, name)
		require.Equal(t, apperr.Unauthenticated, apperr.KindOf(err), name)
	}
}

func TestVerifyRefusesMalformedTokens(t *testing.T) {
	t.Parallel()
	s, v, _ := newPlatform(t)
	good := mint(t, s)
	parts := strings.Split(good, ".")
	b64 := base64.RawURLEncoding.EncodeToString
	for name, token := range map[string]string{
		"empty":             "",
		"dots":              "..",
		"two parts":         parts[0] + "." + parts[1],
		"four parts":        good + ".x",
		"padded":            good + "==",
		"no signature":      parts[0] + "." + parts[1] + ".",
		"null header":       b64([]byte("null")) + "." + parts[1] + "." + parts[2],
		"null claims":       parts[0] + "." + b64([]byte("null")) + "." + parts[2],
		"claims are a list": parts[0] + "." + b64([]byte("[]")) + "." + parts[2],
		"other claims":      parts[0] + "." + b64([]byte(`{"iss":"`+platform+`","sub":"2"}`)) + "." + parts[2],
		"oversize":          good + strings.Repeat("A", MaxTokenSize),
		"deep":              b64([]byte(strings.Repeat("[", 4000))) + "." + parts[1] + "." + parts[2],
		"JSON serialization": `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] +
			`"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, v, token)
		})
	}
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	t.Parallel()
	s, v, _ := newPlatform(t)
	good := mint(t, s)
	for i := range good {
		bad := []byte(good)
		bad[i] ^= 1
		requireRefused(t, v, string(bad))
	}
}

// RFC 8725 §3.1: the key decides the algorithm, never the token.
func TestAlgorithmConfusion(t *testing.T) {
	t.Parallel()
	s, _, clk := newPlatform(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	private := s.Keys().list[0].private
	set := publicSet(t, map[string]any{"ed": private.Public(), "rsa": &rsaKey.PublicKey, "p256": &p256.PublicKey,
		"p384": &p384.PublicKey})
	v := newTestVerifier(t, clk,
		Issuer{Name: platform, Keys: StaticKeys(set), Scopes: AllScopes},
		Issuer{Name: "https://rsa.example", Keys: StaticKeys(set), Algorithms: []string{RS256, ES256}},
	)
	claims := goodClaims(clk.Now())
	good := sign(t, jwt.SigningMethodEdDSA, private, map[string]any{"kid": "ed"}, claims)
	_, err = v.Verify(t.Context(), good)
	require.NoError(t, err)

	requireRefused(t, v, sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, map[string]any{"kid": "ed"},
		claims))
	requireRefused(t, v, sign(t, jwt.SigningMethodHS256, []byte(private.Public().(ed25519.PublicKey)),
		map[string]any{"kid": "ed"}, claims))
	requireRefused(t, v, sign(t, jwt.SigningMethodHS512, set, map[string]any{"kid": "ed"}, claims))
	// this issuer signs with EdDSA
	requireRefused(t, v, sign(t, jwt.SigningMethodRS256, rsaKey, map[string]any{"kid": "rsa"}, claims))
	requireRefused(t, v, sign(t, jwt.SigningMethodEdDSA, private, map[string]any{"kid": "ed", "alg": "eddsa"}, claims))

	claims["iss"] = "https://rsa.example"
	for _, ok := range []string{
		sign(t, jwt.SigningMethodRS256, rsaKey, map[string]any{"kid": "rsa"}, claims),
		sign(t, jwt.SigningMethodES256, p256, map[string]any{"kid": "p256"}, claims),
	} {
		p, err := v.Verify(t.Context(), ok)
		require.NoError(t, err)
		require.Zero(t, p.Scopes, "an issuer without allowed scopes grants none")
	}
	requireRefused(t, v, sign(t, jwt.SigningMethodRS512, rsaKey, map[string]any{"kid": "rsa"}, claims))
	requireRefused(t, v, sign(t, jwt.SigningMethodPS256, rsaKey, map[string]any{"kid": "rsa"}, claims))
	requireRefused(t, v, sign(t, jwt.SigningMethodRS256, rsaKey, map[string]any{"kid": "p256"}, claims))
	requireRefused(t, v, sign(t, jwt.SigningMethodES384, p384, map[string]any{"kid": "p384"}, claims))
	requireRefused(t, v, sign(t, jwt.SigningMethodES384, p384, map[string]any{"kid": "p384", "alg": "ES256"}, claims))
	requireRefused(t, v, sign(t, jwt.SigningMethodEdDSA, private, map[string]any{"kid": "ed"}, claims))
}

func TestKeysInsideTheTokenAreIgnored(t *testing.T) {
	t.Parallel()
	_, v, clk := newPlatform(t)
	evil := newTestKey(t)
	jwk, err := json.Marshal(jose.JSONWebKey{Key: evil.private.Public(), KeyID: evil.ID})
	require.NoError(t, err)
	for _, kid := range []any{evil.ID, ""} {
		requireRefused(t, v, sign(t, jwt.SigningMethodEdDSA, evil.private, map[string]any{
			"kid": kid, "jwk": json.RawMessage(jwk), "jku": "https://evil.example/jwks", "x5u": "file:///etc/passwd",
		}, goodClaims(clk.Now())))
	}
}

func TestExternalIssuer(t *testing.T) {
	t.Parallel()
	s, _, clk := newPlatform(t)
	key := s.Keys().list[0]
	set := StaticKeys(s.PublicJWKS())
	verify := func(i Issuer, claims map[string]any) (*Principal, error) {
		i.Keys = set
		v := newTestVerifier(t, clk, i)
		all := goodClaims(clk.Now())
		all["iss"] = i.Name
		maps.Copy(all, claims)
		return v.Verify(t.Context(), sign(t, jwt.SigningMethodEdDSA, key.private, map[string]any{"kid": key.ID}, all))
	}

	p, err := verify(Issuer{Name: "x", Tenant: "fixed", Scopes: NewScopes(UsersRead, UsersWrite)},
		map[string]any{"tenant_id": "acme", "scope": "openid users:read  kv:read platform:admin"})
	require.NoError(t, err)
	require.Equal(t, "fixed", p.Tenant, "the token cannot choose")
	require.Equal(t, NewScopes(UsersRead), p.Scopes, "neither scopes that are not allowed nor unknown ones")

	p, err = verify(Issuer{Name: "x", TenantClaim: "org", ScopeClaim: "scp", Scopes: AllScopes},
		map[string]any{"org": "other", "scp": []any{"kv:read", 3, "jobs:read"}})
	require.NoError(t, err)
	require.Equal(t, "other", p.Tenant)
	require.Equal(t, NewScopes(KVRead, JobsRead), p.Scopes)

	for name, test := range map[string]struct {
		aud any
		ok  bool
	}{
		"the one": {"api", true}, "among others": {[]string{"web", "api"}, true}, "another": {"web", false},
		"none": {nil, false}, "not a text": {[]any{"api", 3}, false},
	} {
		_, err = verify(Issuer{Name: "x", Audience: "api"}, map[string]any{"aud": test.aud})
		require.Equal(t, test.ok, err == nil, name)
	}
}

// An issuer's former name still means the same issuer: its tokens identify the same callers, and end with it.
func TestAliasesOfAnIssuer(t *testing.T) {
	t.Parallel()
	s, _, clk := newPlatform(t)
	v, err := New(Config{Clock: clk, Log: quiet()})
	require.NoError(t, err)
	requireRefused(t, v, mint(t, s))
	require.NoError(t, v.Trust(Issuer{Name: Platform, Aliases: []string{platform, "https://new.example", platform},
		Keys: s, Scopes: AllScopes}))
	require.Error(t, v.Trust(Issuer{Name: "x", Aliases: []string{platform}, Keys: s}))

	verify := func(issuer string) (string, *Principal) {
		s, err := NewSigner(issuer, s.Keys(), clk)
		require.NoError(t, err)
		token := mint(t, s)
		p, err := v.Verify(t.Context(), token)
		require.NoError(t, err)
		return token, p
	}
	token, old := verify(platform)
	_, now := verify("https://new.example")
	_, first := verify(Platform)
	require.Equal(t, Platform, old.Issuer)
	require.Equal(t, old.caller, now.caller)
	require.Equal(t, old.caller, first.caller)
	require.NoError(t, v.End(Ended{Issuer: Platform, TokenID: old.TokenID, Until: old.Expires}))
	requireRefused(t, v, token)
	other, err := NewSigner("https://other.example", s.Keys(), clk)
	require.NoError(t, err)
	requireRefused(t, v, mint(t, other))
}

func TestConfigIsRefused(t *testing.T) {
	t.Parallel()
	s, _, clk := newPlatform(t)
	good := Issuer{Name: platform, Keys: s}
	for name, c := range map[string]Config{
		"no name":           {Issuers: []Issuer{{Keys: s}}},
		"no keys":           {Issuers: []Issuer{{Name: "x"}}},
		"twice":             {Issuers: []Issuer{good, good}},
		"symmetric":         {Issuers: []Issuer{{Name: "x", Keys: s, Algorithms: []string{"HS256"}}}},
		"none":              {Issuers: []Issuer{{Name: "x", Keys: s, Algorithms: []string{"none"}}}},
		"bad tenant":        {Issuers: []Issuer{{Name: "x", Keys: s, Tenant: "A"}}},
		"tenant and claim":  {Issuers: []Issuer{{Name: "x", Keys: s, Tenant: "a", TenantClaim: "t"}}},
		"bad set":           {Issuers: []Issuer{{Name: "x", Keys: StaticKeys(`{"keys":[]}`)}}},
		"missing file":      {Issuers: []Issuer{{Name: "x", Keys: KeyFile(t.TempDir() + "/none")}}},
		"no client":         {Issuers: []Issuer{{Name: "x", Keys: KeyURL{URL: "https://x.example"}}}},
		"cached for long":   {CacheTTL: MaxCacheTTL + 1},
		"cache of negative": {CacheSize: -1},
	} {
		c.Clock, c.Log = clk, quiet()
		_, err := New(c)
		require.Error(t, err, name)
	}
}

func TestCacheEndsWithTheTokenAndInTime(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s := newTestSigner(t, clk)
	asked := 0
	v, err := New(Config{Issuers: []Issuer{{Name: platform, Keys: s}}, Clock: clk, Log: quiet(), verified: func() {
		asked++
	}})
	require.NoError(t, err)
	verify := func(token string, wantAsked int) {
		t.Helper()
		_, err := v.Verify(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, wantAsked, asked)
	}
	long := mint(t, s)
	verify(long, 1)
	clk.advance(MaxCacheTTL - time.Millisecond)
	verify(long, 1)
	clk.advance(time.Millisecond)
	verify(long, 2)

	short, err := s.Mint(Claims{Subject: "1", Tenant: "acme", TTL: 10 * time.Second})
	require.NoError(t, err)
	verify(short, 3)
	clk.advance(9 * time.Second)
	verify(short, 3)
	clk.advance(time.Second)
	verify(short, 4) // within the leeway, but no longer from the cache
	verify(short, 5)
	clk.advance(Leeway)
	requireRefused(t, v, short)
}

func TestRotationWhileRequestsRun(t *testing.T) {
	t.Parallel()
	s, v, _ := newPlatform(t)
	first := mint(t, s)
	firstKey := s.Keys().IDs()[0]
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				token, err := s.Mint(Claims{Subject: "1", Tenant: "acme", TTL: time.Minute})
				if err == nil {
					_, err = v.Verify(context.Background(), token)
				}
				if err == nil {
					_, err = v.Verify(context.Background(), first)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	// Each key is published before it signs and stays until the end, so no request may be refused.
	for range 20 {
		k := newTestKey(t)
		require.NoError(t, s.Use(s.Keys().Add(k)))
		active, err := s.Keys().Activate(k.ID)
		require.NoError(t, err)
		require.NoError(t, s.Use(active))
	}
	close(stop)
	wg.Wait()

	_, err := v.Verify(t.Context(), first)
	require.NoError(t, err)
	without, err := s.Keys().Remove(firstKey)
	require.NoError(t, err)
	require.NoError(t, s.Use(without))
	requireRefused(t, v, first) // at once, although it was cached
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s := newTestSigner(t, clk)
	v, err := New(Config{Issuers: []Issuer{{Name: platform, Keys: s}}, Clock: clk, Log: quiet(), CacheSize: 10})
	require.NoError(t, err)
	for range 200 {
		_, err := v.Verify(t.Context(), mint(t, s))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, v.cache.Len(), 10)
}

// publicSet is a JWK set of public keys by kid.
func publicSet(t testing.TB, keys map[string]any) []byte {
	var set jose.JSONWebKeySet
	for id, k := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k, KeyID: id})
	}
	raw, err := json.Marshal(set)
	require.NoError(t, err)
	return raw
}

func FuzzVerify(f *testing.F) {
	s, v, clk := newPlatform(f)
	good := mint(f, s)
	f.Add(good)
	f.Add("")
	f.Add("..")
	f.Add(good + ".")
	f.Add(sign(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, goodClaims(clk.Now())))
	f.Add(sign(f, jwt.SigningMethodHS256, s.PublicJWKS(), nil, goodClaims(clk.Now())))
	f.Fuzz(func(t *testing.T, token string) {
		p, err := v.Verify(context.Background(), token)
		if token == good {
			require.NoError(t, err)
			return
		}
		require.Nil(t, p)
		require.Equal(t, apperr.Unauthenticated, apperr.KindOf(err))
	})
}

// The body of a token that the issuer has signed, with any content, must not yield a principal that the rules do not
// allow.
func FuzzSignedClaims(f *testing.F) {
	s, v, clk := newPlatform(f)
	key := s.Keys().list[0]
	good, err := json.Marshal(goodClaims(clk.Now()))
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`null`))
	f.Add(
		[]byte(
			`{"iss":"https://idp.example","sub":"1","tenant_id":"a","exp":1e300,"nbf":-1e300,"iat":1e99,"scope":["users:read",{}]}`))
	f.Fuzz(func(t *testing.T, claims []byte) {
		encode := base64.RawURLEncoding.EncodeToString
		text := encode([]byte(`{"alg":"EdDSA"}`)) + "." + encode(claims)
		signature, err := jwt.SigningMethodEdDSA.Sign(text, key.private)
		require.NoError(t, err)
		p, err := v.Verify(context.Background(), text+"."+encode(signature))
		if err != nil {
			require.Equal(t, apperr.Unauthenticated, apperr.KindOf(err))
			return
		}
		require.True(t, ValidTenant(p.Tenant))
		require.NotEmpty(t, p.Subject)
		require.True(t, clk.Now().Before(p.Expires.Add(Leeway)))
	})
}

func FuzzParseKeySet(f *testing.F) {
	s := newTestSigner(f, clock.System)
	f.Add(s.PublicJWKS())
	private, err := s.Keys().PrivateJWKS()
	require.NoError(f, err)
	f.Add(private)
	f.Add(
		[]byte(
			`{"keys":[{"kty":"oct","k":"AAAA"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"RSA","n":"AQAB","e":"AQAB"},null]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if set, err := parseKeySet(raw); err == nil {
			require.NotEmpty(t, set.keys)
			require.LessOrEqual(t, len(set.keys), maxKeys)
			require.True(t, bytes.Equal(raw, set.raw))
		}
		if s, err := ParsePrivateJWKS(raw); err == nil {
			require.NotEmpty(t, s.IDs())
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	s := newTestSigner(b, clock.System)
	v := newTestVerifier(b, clock.System, Issuer{Name: platform, Keys: s, Scopes: AllScopes})
	token := mint(b, s)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.parse(context.Background(), token); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyCached(b *testing.B) {
	s := newTestSigner(b, clock.System)
	v := newTestVerifier(b, clock.System, Issuer{Name: platform, Keys: s, Scopes: AllScopes})
	token := mint(b, s)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(context.Background(), token); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMint(b *testing.B) {
	s := newTestSigner(b, clock.System)
	for b.Loop() {
		mint(b, s)
	}
}

// Two issuers' subjects are never one actor, and nobody is the platform itself.
func TestActors(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]*Principal{
		"client:c1":                  {Issuer: Platform, Subject: "c1", ClientID: "c1"},
		"user:7":                     {Issuer: Platform, Subject: "7", ClientID: "c1"},
		"user:system":                {Issuer: Platform, Subject: "system", ClientID: "c1"},
		"https://a.example#system":   {Issuer: "https://a.example", Subject: "system"},
		"https://a.example#c1":       {Issuer: "https://a.example", Subject: "c1", ClientID: "c1"},
		"https://b.example#client:7": {Issuer: "https://b.example", Subject: "client:7"},
	} {
		require.Equal(t, want, actorOf(p))
	}
}
