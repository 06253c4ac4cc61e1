package gateway

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadyAsksEveryService(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(200)
	g := newGateway(t, map[string]Upstream{
		Users: local(nil),
		Events: remote(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/readyz" {
				w.WriteHeader(int(status.Load()))
			}
		}),
	}, func(c *Config) { c.Required = []string{Events} })
	w := get(g, "/readyz")
	require.Equal(t, 200, w.Code)
	require.JSONEq(t, `{"status":"ready","services":{"users":"ready","events":"ready"}}`, w.Body.String())
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))

	status.Store(503)
	g.readiness.checked = time.Time{}
	w = get(g, "/readyz")
	require.Equal(t, 503, w.Code)
	require.JSONEq(t, `{"status":"not_ready","services":{"users":"ready","events":"not_ready"}}`, w.Body.String())

	g.draining.Store(true)
	w = get(g, "/readyz")
	require.Equal(t, 503, w.Code)
	require.JSONEq(t, `{"status":"draining"}`, w.Body.String())
	w = get(g, "/healthz")
	require.Equal(t, 200, w.Code, "healthz answers 200 until the process ends")
	require.JSONEq(t, `{"status":"alive"}`, w.Body.String())
}

// A service that works without something is ready, and its warnings say so.
func TestReadyPassesWarningsOn(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{
		Users:       local(nil),
		Permissions: InProcess(nil, func() ([]string, error) { return []string{"without 2 records"}, nil }),
		Events: remote(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"status":"ready","warnings":["without 3 records"]}`)
		}),
	}, nil)
	w := get(g, "/readyz")
	require.Equal(t, 200, w.Code)
	require.JSONEq(t, `{"status":"ready","services":{"users":"ready","permissions":"ready","events":"ready"},
		"warnings":{"permissions":["without 2 records"],"events":["without 3 records"]}}`, w.Body.String())
}

func TestReadyAsksAtMostOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		g := newGateway(t, map[string]Upstream{Users: InProcess(nil, func() ([]string, error) {
			asked++
			return nil, errors.New("the store at 10.0.0.7 is away")
		})}, func(c *Config) { c.Required = []string{Users} })
		for range 100 {
			w := get(g, "/readyz")
			require.Equal(t, 503, w.Code)
			require.NotContains(t, w.Body.String(), "10.0.0.7", "the reason is only logged")
		}
		require.Equal(t, 1, asked)
		time.Sleep(readinessAge)
		get(g, "/readyz")
		require.Equal(t, 2, asked)
		require.Equal(t, 1, strings.Count(g.logs.String(), "10.0.0.7"),
			"logged once each time the service becomes not ready")
	})
}

func TestReadyDoesNotWaitForAServiceThatHangs(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	g := newGateway(t, map[string]Upstream{Users: remote(t, hang)}, func(c *Config) { c.Required = []string{Users} })
	require.Equal(t, 503, get(g, "/readyz").Code)
}

// Without a service that is not required the gateway is ready: it routes to the others.
func TestReadyWithoutAService(t *testing.T) {
	t.Parallel()
	away := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	g := newGateway(t, map[string]Upstream{
		Users:  local(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
		Events: remote(t, away),
	}, nil)
	w := get(g, "/readyz")
	require.Equal(t, 200, w.Code)
	require.JSONEq(t, `{"status":"ready","services":{"users":"ready","events":"not_ready"}}`, w.Body.String())
	require.Equal(t, 200, get(g, "/v1/users").Code)
	require.Equal(t, 503, get(g, "/v1/events").Code)
	require.Equal(t, 503, get(g, "/v1/functions").Code, "a service that is not deployed")

	config := DefaultConfig()
	config.Required = []string{Automation}
	_, err := New(config, map[string]Upstream{Users: local(nil)}, Deps{})
	require.ErrorContains(t, err, `the required service "automation" is not one of the upstreams`)
}
