package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// from sends a request as a client with an address and a credential.
func from(g http.Handler, addr, credential string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/v1/users", nil)
	r.RemoteAddr = addr + ":1"
	if credential != "" {
		r.Header.Set("Authorization", credential)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func TestRateLimitPerCredential(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, map[string]Upstream{Users: local(func(http.ResponseWriter, *http.Request) {})},
			func(c *Config) {
				c.RateLimit.PerSecond, c.RateLimit.Burst = 0.5, 3
			})
		for range 3 {
			require.Equal(t, 200, from(g, "192.0.2.1", "Bearer a").Code)
		}
		w := from(g, "192.0.2.1", "Bearer a")
		requireProblem(t, 429, "rate_limited", w.Code, w.Header(), w.Body)
		require.Equal(t, "2", w.Header().Get("Retry-After"))
		require.Equal(t, 429, from(g, "192.0.2.2", "Bearer a").Code, "the credential counts, not the address")
		require.Equal(t, 200, from(g, "192.0.2.1", "Bearer b").Code)
		require.Equal(t, 200, from(g, "192.0.2.1", "").Code, "without a credential the address counts")
		require.Equal(t, float64(2), testutil.ToFloat64(g.metrics.rateLimited))

		time.Sleep(2 * time.Second) // in the bubble's time; as long as Retry-After said
		require.Equal(t, 200, from(g, "192.0.2.1", "Bearer a").Code)
		require.Equal(t, 429, from(g, "192.0.2.1", "Bearer a").Code)
		time.Sleep(time.Hour)
		for range 3 {
			require.Equal(t, 200, from(g, "192.0.2.1", "Bearer a").Code, "the bucket fills up to its size")
		}
		require.Equal(t, 429, from(g, "192.0.2.1", "Bearer a").Code)
	})
}

func TestGuessingCredentialsIsLimitedPerAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if r.Header.Get("Authorization") != "Bearer good" {
				problem.Write(w, apperr.New(apperr.Unauthenticated, "bad token"))
			}
		})}, func(c *Config) { c.RateLimit.FailuresPerMinute, c.RateLimit.FailuresBurst = 6, 3 })
		for i := range 3 {
			require.Equal(t, 401, from(g, "192.0.2.1", "Bearer guess"+string(rune('0'+i))).Code)
		}
		w := from(g, "192.0.2.1", "Bearer guess9")
		requireProblem(t, 429, "rate_limited", w.Code, w.Header(), w.Body)
		require.Equal(t, "10", w.Header().Get("Retry-After"))
		require.Equal(t, 3, asked, "the service gets no more requests")
		require.Equal(t, 401, from(g, "192.0.2.2", "Bearer guess9").Code, "another address")
		time.Sleep(10 * time.Second)
		for range 10 {
			require.Equal(t, 200, from(g, "192.0.2.1", "Bearer good").Code, "successful requests use no tokens")
		}
	})
}

func TestNoRateLimitByDefault(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	})}, nil)
	for range 1000 {
		require.Equal(t, 401, from(g, "192.0.2.1", "").Code)
	}
}
