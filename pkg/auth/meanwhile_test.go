package auth

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// A verifier that is not told of ended tokens asks about each token that is not in its cache, and after a while refuses
// to answer when nobody knows. Tokens of other issuers are not asked about.
func TestAVerifierThatIsCutOffAsks(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s, other := newTestSigner(t, clk), newTestSigner(t, clk)
	v, err := New(Config{Clock: clk, Log: quiet(), Issuers: []Issuer{
		{Name: Platform, Aliases: []string{platform}, Keys: s, Scopes: AllScopes},
	}})
	require.NoError(t, err)
	age, active, away, asked := time.Duration(0), true, error(nil), 0
	v.AskMeanwhile(Meanwhile{
		Age: func() time.Duration { return age },
		Active: func(context.Context, string) (bool, error) {
			asked++
			return active, away
		},
	})
	token := mint(t, s)
	accepted := func(times int) {
		t.Helper()
		_, err := v.Verify(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, times, asked)
	}
	accepted(0)
	age = time.Hour
	accepted(0) // from the cache
	clk.advance(MaxCacheTTL)
	accepted(1)
	accepted(1)
	away, age = errors.New("away"), unheard
	clk.advance(MaxCacheTTL)
	accepted(2)
	age = Grace
	clk.advance(MaxCacheTTL)
	_, err = v.Verify(t.Context(), token)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	away, active = nil, false
	requireRefused(t, v, token)
	require.LessOrEqual(t, MaxCacheTTL+Grace, 30*time.Second)
	active = true
	within := func(passed time.Duration, times int) {
		t.Helper()
		clk.advance(passed)
		_, err := v.VerifyWithin(t.Context(), token, 5*time.Second)
		require.NoError(t, err)
		require.Equal(t, times, asked)
	}
	within(0, 5)
	within(5*time.Second-time.Millisecond, 5)
	accepted(5)
	within(time.Millisecond, 6)
	within(0, 6)

	foreign := "https://other.example"
	require.NoError(t, v.Trust(Issuer{Name: foreign, Keys: other}))
	require.NoError(t, v.ask(t.Context(), &Principal{Issuer: foreign}, ""))
}
