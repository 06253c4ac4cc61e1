package auth

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// fakeClock stands still until a test moves it.
type fakeClock struct {
	mu  sync.Mutex
	now clock.Time
}

func newClock() *fakeClock {
	return &fakeClock{now: clock.Of(time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC))}
}

func (c *fakeClock) Now() clock.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const platform = "https://idp.example"

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newTestKey(t testing.TB) Key {
	k, err := GenerateKey()
	require.NoError(t, err)
	return k
}

func newTestSigner(t testing.TB, clk clock.Clock) *Signer {
	s, err := NewSigner(platform, NewKeys(newTestKey(t)), clk)
	require.NoError(t, err)
	return s
}

func newTestVerifier(t testing.TB, clk clock.Clock, issuers ...Issuer) *Verifier {
	v, err := New(Config{Issuers: issuers, Clock: clk, Log: quiet()})
	require.NoError(t, err)
	return v
}

// newPlatform returns a signer and a verifier that trusts it.
func newPlatform(t testing.TB) (*Signer, *Verifier, *fakeClock) {
	clk := newClock()
	s := newTestSigner(t, clk)
	return s, newTestVerifier(t, clk, Issuer{Name: platform, Keys: s, Scopes: AllScopes}), clk
}

func mint(t testing.TB, s *Signer) string {
	token, err := s.Mint(Claims{Subject: "1048577", ClientID: "c1", Tenant: "acme", Scopes: NewScopes(UsersRead),
		TTL: time.Hour})
	require.NoError(t, err)
	return token
}

// sign makes any token: with the given header and claims, signed with the key if the method can.
func sign(t testing.TB, method jwt.SigningMethod, key any, header, claims map[string]any) string {
	token := jwt.NewWithClaims(method, jwt.MapClaims(claims))
	for name, value := range header {
		token.Header[name] = value
	}
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return text
}

func goodClaims(now clock.Time) map[string]any {
	return map[string]any{
		"iss": platform, "sub": "1048577", "tenant_id": "acme", "scope": "users:read", "exp": now.Add(time.Hour).
			Millis() / 1000,
	}
}

func requireRefused(t testing.TB, v *Verifier, token string) {
	t.Helper()
	p, err := v.Verify(context.Background(), token)
	require.Error(t, err)
	require.Nil(t, p)
	require.Equal(t, apperr.Unauthenticated, apperr.KindOf(err), "%v", err)
}
