package auth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// keyServer serves a JWK set and counts requests.
type keyServer struct {
	*httptest.Server
	handler atomic.Pointer[http.HandlerFunc]
	fetched atomic.Int64
}

func newKeyServer(t *testing.T, h http.HandlerFunc) *keyServer {
	s := &keyServer{}
	s.handler.Store(&h)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fetched.Add(1)
		(*s.handler.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *keyServer) answer(h http.HandlerFunc) { s.handler.Store(&h) }

func (s *keyServer) issuer() Issuer {
	return Issuer{Name: platform, Keys: KeyURL{URL: s.URL, Client: s.Client()}, Scopes: AllScopes}
}

func publish(s *Signer) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=60")
		_, _ = w.Write(s.PublicJWKS())
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// waitForFetch waits for the running fetch, if there is one.
func waitForFetch(v *Verifier) {
	l := (*v.issuers.Load())[platform].keys.(*loadedKeys)
	l.mu.Lock()
	loading := l.loading
	l.mu.Unlock()
	if loading != nil {
		<-loading
	}
}

func rotate(t *testing.T, s *Signer) {
	k := newTestKey(t)
	active, err := s.Keys().Add(k).Activate(k.ID)
	require.NoError(t, err)
	require.NoError(t, s.Use(active))
}

func TestHerdMakesOneFetch(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s := newTestSigner(t, clk)
	server := newKeyServer(t, publish(s))
	v := newTestVerifier(t, clk, server.issuer())
	require.Zero(t, server.fetched.Load(), "nothing is fetched before it is needed")
	token := mint(t, s)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, err := v.Verify(context.Background(), token); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, server.fetched.Load())
}

func TestUnknownKeyIsFetchedButNotTooOften(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s := newTestSigner(t, clk)
	server := newKeyServer(t, publish(s))
	v := newTestVerifier(t, clk, server.issuer())
	_, err := v.Verify(t.Context(), mint(t, s))
	require.NoError(t, err)

	forged := newTestSigner(t, clk)
	for range 50 {
		requireRefused(t, v, mint(t, forged))
	}
	require.EqualValues(t, 1, server.fetched.Load(), "forged tokens cause no traffic")

	rotate(t, s)
	clk.advance(10 * time.Second)
	_, err = v.Verify(t.Context(), mint(t, s))
	require.NoError(t, err, "a new key is found without waiting for max-age")
	require.EqualValues(t, 2, server.fetched.Load())
}

func TestKeySourceAway(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s := newTestSigner(t, clk)
	for name, h := range map[string]http.HandlerFunc{
		"500":     status(500),
		"404":     status(404),
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"no keys": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
		"cut off": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(s.PublicJWKS()[:40]) },
		"dropped": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(s.PublicJWKS()) // a complete set in an incomplete response
		},
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Repeat(" ", maxKeySetSize+1)))
		},
		"key bloat": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[` + strings.Repeat("{},", 200) + `{}]}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := newClock()
			s := newTestSigner(t, clk)
			server := newKeyServer(t, h)
			v := newTestVerifier(t, clk, server.issuer())
			token := mint(t, s)
			for range 10 {
				_, err := v.Verify(t.Context(), token)
				require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
			}
			require.EqualValues(t, 1, server.fetched.Load(), "a failing source is not asked too often")

			server.answer(publish(s))
			clk.advance(time.Second)
			_, err := v.Verify(t.Context(), token)
			require.NoError(t, err, "it answers again")

			server.answer(h)
			clk.advance(10 * time.Minute)
			_, err = v.Verify(t.Context(), token)
			require.NoError(t, err, "the last valid keys stay")
			waitForFetch(v)
			require.EqualValues(t, 3, server.fetched.Load())
			_, err = v.Verify(t.Context(), token)
			require.NoError(t, err)
			_, err = v.Verify(t.Context(), mint(t, newTestSigner(t, clk)))
			require.Equal(t, apperr.Unavailable, apperr.KindOf(err), "the key may be a new one")
			requireRefused(t, v, "not a token") // no key could make it valid
		})
	}
}

func TestSlowKeySourceHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s := newTestSigner(t, clk)
	release := make(chan struct{})
	started := make(chan struct{}, 10)
	slow := func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-release
		publish(s)(w, r)
	}
	server := newKeyServer(t, slow)
	v := newTestVerifier(t, clk, server.issuer())
	token := mint(t, s)

	ctx, cancel := context.WithCancel(t.Context())
	impatient := make(chan error)
	go func() {
		_, err := v.Verify(ctx, token)
		impatient <- err
	}()
	<-started
	patient := make(chan error)
	go func() {
		_, err := v.Verify(context.Background(), token)
		patient <- err
	}()
	cancel()
	require.Equal(t, apperr.Unavailable, apperr.KindOf(<-impatient), "a caller that gives up need not wait")
	release <- struct{}{}
	require.NoError(t, <-patient, "and does not affect the others")

	// The key is known and due for a refresh: nobody waits for the fetch.
	clk.advance(2 * time.Minute)
	_, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	<-started
	release <- struct{}{}
	waitForFetch(v)
	require.EqualValues(t, 2, server.fetched.Load())
}

func TestRemovedKeyEndsItsTokens(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s := newTestSigner(t, clk)
	server := newKeyServer(t, publish(s))
	v := newTestVerifier(t, clk, server.issuer())
	token := mint(t, s)
	_, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	old := s.Keys().IDs()[0]
	rotate(t, s)
	left, err := s.Keys().Remove(old)
	require.NoError(t, err)
	require.NoError(t, s.Use(left))

	clk.advance(time.Minute) // max-age
	_, err = v.Verify(t.Context(), token)
	require.NoError(t, err, "this request starts the refresh")
	waitForFetch(v)
	requireRefused(t, v, token) // although it was cached a moment ago
}

func TestUnchangedKeysKeepTheCache(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s := newTestSigner(t, clk)
	server := newKeyServer(t, publish(s))
	v := newTestVerifier(t, clk, server.issuer())
	token := mint(t, s)
	_, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	before := (*v.issuers.Load())[platform].keys.current()
	clk.advance(time.Minute)
	_, err = v.Verify(t.Context(), token)
	require.NoError(t, err)
	waitForFetch(v)
	require.EqualValues(t, 2, server.fetched.Load())
	require.Same(t, before, (*v.issuers.Load())[platform].keys.current())
}

func TestMaxAgeIsBounded(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"":                             5 * time.Minute,
		"max-age=600":                  10 * time.Minute,
		"public, Max-Age=120, must-x":  2 * time.Minute,
		"max-age=0":                    time.Minute,
		"max-age=31536000":             time.Hour,
		"max-age=99999999999999999999": 5 * time.Minute,
		"max-age=-1":                   5 * time.Minute,
		"s-maxage=600":                 5 * time.Minute,
	} {
		require.Equal(t, want, maxAge(http.Header{"Cache-Control": {header}}), header)
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	clk := newClock()
	s := newTestSigner(t, clk)
	path := filepath.Join(t.TempDir(), "jwks.json")
	write := func(raw []byte) { require.NoError(t, os.WriteFile(path, raw, 0o600)) }
	write(s.PublicJWKS())
	v := newTestVerifier(t, clk, Issuer{Name: platform, Keys: KeyFile(path), Scopes: AllScopes})
	old := mint(t, s)
	_, err := v.Verify(t.Context(), old)
	require.NoError(t, err)

	rotate(t, s)
	write(s.PublicJWKS())
	clk.advance(time.Second)
	_, err = v.Verify(t.Context(), mint(t, s))
	require.NoError(t, err, "a new key is found")
	_, err = v.Verify(t.Context(), old)
	require.NoError(t, err)

	for name, change := range map[string]func(){
		"broken": func() { write([]byte("{")) },
		"gone":   func() { require.NoError(t, os.Remove(path)) },
		"huge":   func() { write(make([]byte, maxKeySetSize+1)) },
	} {
		change()
		clk.advance(time.Minute)
		_, err = v.Verify(t.Context(), old)
		require.NoError(t, err, name)
		waitForFetch(v)
		_, err = v.Verify(t.Context(), old)
		require.NoError(t, err, name)
	}
}

func TestKeySetSkipsWhatItCannotUse(t *testing.T) {
	t.Parallel()
	good := newTestSigner(t, newClock())
	inner := strings.TrimSuffix(strings.TrimPrefix(string(good.PublicJWKS()), `{"keys":[`), `]}`)
	for name, test := range map[string]struct {
		keys string
		want int
	}{
		"one":             {inner, 1},
		"unknown type":    {`{"kty":"XYZ"},` + inner, 1},
		"symmetric":       {`{"kty":"oct","k":"c2VjcmV0","kid":"x"},` + inner, 1},
		"for encryption":  {strings.Replace(inner, `"use":"sig"`, `"use":"enc"`, 1), 0},
		"other algorithm": {strings.Replace(inner, `"EdDSA"`, `"RS256"`, 1), 0},
		"weak RSA":        {`{"kty":"RSA","n":"` + strings.Repeat("_", 86) + `","e":"AQAB"}`, 0},
		"monstrous RSA":   {`{"kty":"RSA","n":"` + strings.Repeat("_", 2000) + `","e":"AQAB"}`, 0},
		"not on the curve": {`{"kty":"EC","crv":"P-256","x":"` + strings.Repeat("A", 43) + `","y":"` +
			strings.Repeat("A", 43) + `"}`, 0},
		"null": {"null", 0},
	} {
		set, err := parseKeySet([]byte(`{"keys":[` + test.keys + `]}`))
		if test.want == 0 {
			require.Error(t, err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Len(t, set.keys, test.want, name)
	}

	twice, err := parseKeySet([]byte(`{"keys":[` + inner + `,` + inner + `]}`))
	require.NoError(t, err)
	_, ok := twice.find(good.Keys().IDs()[0], EdDSA)
	require.False(t, ok, "an ambiguous kid names no key")
}
