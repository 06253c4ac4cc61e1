package auth

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

func TestEndedTokensAreRefused(t *testing.T) {
	t.Parallel()
	s, v, clk := newPlatform(t)
	give := func(client string, version int64) (string, *Principal) {
		token, err := s.Mint(Claims{Subject: "1", ClientID: client, ClientVersion: version, Tenant: "acme",
			TTL: time.Hour})
		require.NoError(t, err)
		p, err := v.Verify(t.Context(), token) // from here on it is in the cache
		require.NoError(t, err)
		return token, p
	}
	good := func(tokens ...string) {
		t.Helper()
		for _, token := range tokens {
			_, err := v.Verify(t.Context(), token)
			require.NoError(t, err)
		}
	}
	one, p := give("c1", 3)
	second, _ := give("c1", 3)
	other, _ := give("c2", 1)
	until := clk.Now().Add(time.Hour)
	require.NoError(t, v.End(Ended{Issuer: platform, TokenID: p.TokenID, Until: until}))
	requireRefused(t, v, one)
	good(second, other)

	require.NoError(t, v.End(Ended{Issuer: platform, ClientID: "c1", ClientVersion: 4, Until: until}))
	requireRefused(t, v, second)
	after, _ := give("c1", 4) // in the same millisecond, with the new secret
	good(after, other)
	before, err := s.Mint(Claims{Subject: "1", ClientID: "c1", ClientVersion: 3, Tenant: "acme", TTL: time.Hour})
	require.NoError(t, err)
	require.True(t, v.HasEnded(platform, "c1", 3))
	require.False(t, v.HasEnded(platform, "c1", 4))
	requireRefused(t, v, before) // made later, with a secret that was checked earlier

	require.NoError(t, v.End(Ended{Issuer: platform, ClientID: "c1", ClientVersion: 2, Until: until}))
	requireRefused(t, v, second) // an older end does not replace a newer one
	require.NoError(t, v.End(Ended{Issuer: "https://other.example", ClientID: "c2", ClientVersion: 2, Until: until}))
	good(other)

	for _, e := range []Ended{{}, {Issuer: platform, Until: until}, {Issuer: platform, TokenID: "t"},
		{Issuer: platform, ClientID: "c", Until: until}, {
			Issuer: platform, TokenID: "t", ClientVersion: 1, Until: until,
		}, {
			Issuer: platform, TokenID: "t", ClientID: "c", ClientVersion: 1, Until: until,
		}, {Issuer: platform, TokenID: "t", KeyID: "k", Until: until}} {
		require.Error(t, v.End(e))
	}
}

// A verifier that still has a key refuses its tokens once the key has ended, those without a kid, too.
func TestTokensOfAnEndedKeyAreRefused(t *testing.T) {
	t.Parallel()
	s, v, clk := newPlatform(t)
	key := s.Keys().list[0]
	named := mint(t, s)
	unnamed := sign(t, jwt.SigningMethodEdDSA, key.private, map[string]any{"typ": "at+jwt"}, goodClaims(clk.Now()))
	for _, token := range []string{named, unnamed} { // from here on they are in the cache
		_, err := v.Verify(t.Context(), token)
		require.NoError(t, err)
	}
	require.NoError(t, v.End(Ended{Issuer: platform, KeyID: "another", Until: clk.Now().Add(time.Hour)}))
	_, err := v.Verify(t.Context(), named)
	require.NoError(t, err)

	require.NoError(t, v.End(Ended{Issuer: platform, KeyID: key.ID, Until: clk.Now().Add(time.Hour)}))
	requireRefused(t, v, named)
	requireRefused(t, v, unnamed)
	requireRefused(t, v, mint(t, s))
}

func TestEndedTokensAreKeptUntilTheyExpire(t *testing.T) {
	t.Parallel()
	_, v, clk := newPlatform(t)
	end := func(n int, life time.Duration) {
		for i := range n {
			require.NoError(t, v.End(Ended{Issuer: platform, TokenID: strconv.Itoa(i) + life.String(), Until: clk.Now().
				Add(life)}))
		}
	}
	end(100, time.Hour)
	end(firstSweep-101, time.Minute)
	clk.advance(2 * time.Minute)
	require.Len(t, v.ended.list, firstSweep-1)
	end(1, time.Second)
	require.Len(t, v.ended.list, 101, "expired ones are removed when there are many")
}

// A token that is being verified while End runs must not be cached afterwards.
func TestEndDuringVerify(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s := newTestSigner(t, clk)
	verifying, proceed := make(chan struct{}), make(chan struct{})
	v, err := New(Config{Issuers: []Issuer{{Name: platform, Keys: s}}, Clock: clk, Log: quiet(), verified: func() {
		verifying <- struct{}{}
		<-proceed
	}})
	require.NoError(t, err)
	token, err := s.Mint(Claims{Subject: "1", ClientID: "c1", Tenant: "acme", TTL: time.Hour})
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		_, err := v.Verify(context.Background(), token)
		done <- err
	}()
	<-verifying
	require.NoError(t, v.End(Ended{Issuer: platform, ClientID: "c1", ClientVersion: 1, Until: clk.Now().
		Add(time.Hour)}))
	close(proceed)
	require.NoError(t, <-done, "it was valid when it was checked")
	requireRefused(t, v, token)
}
