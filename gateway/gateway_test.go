package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

func TestNewRefusesAnUnknownService(t *testing.T) {
	t.Parallel()
	_, err := New(DefaultConfig(), map[string]Upstream{"user": local(nil)}, Deps{})
	require.ErrorContains(t, err, `no service "user"`)
	require.ErrorContains(t, err, "identity-sources")
}

func TestAnswersCarryIDAndSecurityHeadersOnce(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.URL.Query().Has("page") {
			w.Header().Set("Content-Security-Policy", "sandbox")
		}
		if r.URL.Query().Has("silent") {
			return // net/http answers 200
		}
		_, _ = w.Write([]byte(r.Header.Get("X-Request-Id")))
	}
	g := newGateway(t, map[string]Upstream{Users: local(echo), Events: remote(t, echo)}, nil)
	for _, target := range []string{
		"/v1/users", "/v1/event-types", "/v1/event-types?silent", "/v1/users?silent", "/v1/kv", "/nothing",
		"/healthz", "/readyz", "/docs", "/openapi.json",
	} {
		w := get(g, target, "X-Request-Id", "caller-1")
		for name, value := range map[string]string{
			"X-Request-Id": "caller-1", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY",
		} {
			require.Equal(t, []string{value}, w.Header()[name], "%s of %s", name, target)
		}
		require.Len(t, w.Header()["Content-Security-Policy"], 1, target)
		require.NotContains(t, w.Header(), "Strict-Transport-Security", "over plain HTTP")
	}
	require.Equal(t, "sandbox", get(g, "/v1/users?page").Header().Get("Content-Security-Policy"),
		"a service's own policy stays")
	w := get(g, "/v1/users", "X-Request-Id", "not sane")
	require.Equal(t, w.Header().Get("X-Request-Id"), w.Body.String(), "the service gets the new id")
}

func TestPathsOfNoServiceAndOfOneNotDeployed(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{Users: local(func(http.ResponseWriter, *http.Request) {})}, nil)
	w := get(g, "/v1/nothing")
	requireProblem(t, 404, "not_found", w.Code, w.Header(), w.Body)
	w = get(g, "/v1/users/%2e%2e/kv")
	requireProblem(t, 400, "invalid_parameters", w.Code, w.Header(), w.Body)
	w = get(g, "/v1/kv/buckets")
	doc := requireProblem(t, 503, "unavailable", w.Code, w.Header(), w.Body)
	require.Contains(t, doc.Detail, "automation service is not deployed")
	require.Equal(t, "60", w.Header().Get("Retry-After"))
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	called := false
	g := newGateway(t, map[string]Upstream{
		Users: local(func(http.ResponseWriter, *http.Request) { called = true }),
	}, func(c *Config) { c.MaxBodyBytes = 10 })
	post := func(target, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, target, strings.NewReader(body)))
		return w
	}
	w := post("/v1/users", "12345678901")
	requireProblem(t, 413, "too_large", w.Code, w.Header(), w.Body)
	w = post("/v1/users?q="+strings.Repeat("x", maxURIBytes), "")
	requireProblem(t, 400, "invalid_parameters", w.Code, w.Header(), w.Body)
	require.False(t, called)
	require.Equal(t, 200, post("/v1/users", "1234567890").Code)
	require.Equal(t, 200, post("/v1/users/import", "12345678901").Code, "a transfer has no limit")
}

func TestConcurrencyIsBounded(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	g := newGateway(t, map[string]Upstream{
		Users: local(func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave }),
	}, func(c *Config) { c.MaxConcurrent, c.MaxPerCaller = 2, 2 })
	done := make(chan int, 2)
	for range 2 {
		go func() { done <- get(g, "/v1/users").Code }()
		<-entered
	}
	w := get(g, "/v1/users")
	requireProblem(t, 503, "unavailable", w.Code, w.Header(), w.Body)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Equal(t, 200, get(g, "/healthz").Code, "health must answer when all places are taken")
	close(leave)
	require.Equal(t, 200, <-done)
	require.Equal(t, 200, <-done)
	go func() { <-entered }()
	require.Equal(t, 200, get(g, "/v1/users").Code, "a place is free again")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/users/missing":
			problem.Write(w, apperr.Missing("user"))
		case "/v1/users/broken":
			_, _ = w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		}
	})}, nil)
	get(g, "/v1/users")
	get(g, "/v1/users/missing")
	get(g, "/v1/kv")
	get(g, "/nothing")
	get(g, "/healthz")
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { get(g, "/v1/users/broken") },
		"the server must break the connection off")

	families, err := g.registry.Gather()
	require.NoError(t, err)
	counts := map[string]uint64{}
	for _, family := range families {
		if family.GetName() != "idp_gateway_request_duration_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			if n := m.GetHistogram().GetSampleCount(); n > 0 {
				counts[m.GetLabel()[1].GetValue()+" "+m.GetLabel()[0].GetValue()] = n
			}
		}
	}
	require.Equal(t, map[string]uint64{
		"users 2xx": 1, "users 4xx": 1, "users aborted": 1, "automation 5xx": 1, "gateway 4xx": 1,
	}, counts)
	problems, err := testutil.GatherAndLint(g.registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Zero(t, g.inFlight.Load())
}

func TestConfigNamesEveryFault(t *testing.T) {
	t.Parallel()
	require.NoError(t, DefaultConfig().Validate())
	bad := Config{
		TLS: TLSConfig{CertFile: "x"}, RateLimit: RateLimitConfig{PerSecond: 1, UnauthorizedPerMinute: 1},
		TrustedProxies: []string{"10.0.0.1"}, DrainDelay: -1, MaxPerCaller: -1,
	}
	err := bad.Validate()
	for _, fault := range []string{
		"tls.cert_file", "rate_limit.burst", "rate_limit.unauthorized_burst", "max_concurrent", "max_streams",
		"max_per_caller", "max_body_bytes", "request_timeout", "stream_idle_timeout", "idle_timeout",
		"drain_timeout", "drain_delay", "trusted_proxies",
	} {
		require.ErrorContains(t, err, fault)
	}
	_, err = New(bad, nil, Deps{})
	require.Error(t, err)
}
