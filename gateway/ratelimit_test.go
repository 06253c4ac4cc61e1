package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
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

func TestRateLimitPerCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, map[string]Upstream{Users: local(claims(nil, nil))},
			func(c *Config) {
				c.RateLimit.PerSecond, c.RateLimit.Burst = 0.5, 3
			})
		for _, credential := range []string{"Bearer a.1", "Bearer b.1"} {
			require.Equal(t, 200, from(g, "192.0.2.9", credential).Code, "from here on its caller is known")
		}
		for i := range 3 {
			require.Equal(t, 200, from(g, "192.0.2.1", "Bearer a.1").Code, i)
		}
		w := from(g, "192.0.2.1", "Bearer a.1")
		requireProblem(t, 429, "rate_limited", w.Code, w.Header(), w.Body)
		require.Equal(t, "2", w.Header().Get("Retry-After"))
		require.Equal(t, 429, from(g, "192.0.2.2", "Bearer a.1").Code, "the caller counts, not the address")
		require.Equal(t, 200, from(g, "192.0.2.1", "Bearer b.1").Code)
		require.Equal(t, 401, from(g, "192.0.2.1", "").Code, "without a credential the address counts")
		require.Equal(t, 401, from(g, "192.0.2.1", "Bearer made-up-1").Code, "with one that nobody knows, too")
		require.Equal(t, 401, from(g, "192.0.2.1", "Bearer made-up-2").Code)
		require.Equal(t, 429, from(g, "192.0.2.1", "Bearer made-up-3").Code)
		require.Equal(t, 429, from(g, "192.0.2.1", "").Code)
		require.Equal(t, float64(4), testutil.ToFloat64(g.metrics.rateLimited))

		time.Sleep(2 * time.Second) // in the bubble's time; as long as Retry-After said
		require.Equal(t, 200, from(g, "192.0.2.1", "Bearer a.1").Code)
		require.Equal(t, 429, from(g, "192.0.2.1", "Bearer a.1").Code)
		time.Sleep(time.Hour)
		for range 3 {
			require.Equal(t, 200, from(g, "192.0.2.1", "Bearer a.1").Code, "the bucket fills up to its size")
		}
		require.Equal(t, 429, from(g, "192.0.2.1", "Bearer a.1").Code)
	})
}

func TestGuessingCredentialsIsLimitedPerAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, r *http.Request) {
			asked++
			claims(nil, nil)(w, r)
		})}, func(c *Config) { c.RateLimit.UnauthorizedPerMinute, c.RateLimit.UnauthorizedBurst = 6, 3 })
		require.Equal(t, 200, from(g, "192.0.2.1", "Bearer good.1").Code)
		for i := range 3 {
			require.Equal(t, 401, from(g, "192.0.2.1", "Bearer guess"+string(rune('0'+i))).Code)
		}
		w := from(g, "192.0.2.1", "Bearer guess9")
		requireProblem(t, 429, "rate_limited", w.Code, w.Header(), w.Body)
		require.Equal(t, "10", w.Header().Get("Retry-After"))
		require.Equal(t, 4, asked, "the service gets no more requests")
		require.Equal(t, 401, from(g, "192.0.2.2", "Bearer guess9").Code, "another address")
		require.Equal(t, 200, from(g, "192.0.2.1", "Bearer good.1").Code, "a caller that is known goes on")
		require.Equal(t, 429, from(g, "192.0.2.1", "Bearer good.2").Code, "until then a new token of it does not")
		time.Sleep(10 * time.Second)
		for range 10 {
			require.Equal(t, 200, from(g, "192.0.2.1", "Bearer good.2").Code, "successful requests use no tokens")
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
