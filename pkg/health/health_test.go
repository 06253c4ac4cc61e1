package health_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/health"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestProbe(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/readyz", r.URL.Path)
		w.WriteHeader(status)
	}))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	for _, listen := range []string{"127.0.0.1:" + port, ":" + port, "0.0.0.0:" + port, "[::]:" + port} {
		require.NoError(t, health.Probe(t.Context(), listen, false), listen)
	}
	status = http.StatusServiceUnavailable
	require.ErrorContains(t, health.Probe(t.Context(), ":"+port, false), "503")
	server.Close()
	require.Error(t, health.Probe(t.Context(), "127.0.0.1:1", false))
	require.Error(t, health.Probe(t.Context(), "no address", false))
}

func TestProbeWithTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "https://"))
	require.NoError(t, err)
	require.ErrorContains(t, health.Probe(t.Context(), ":"+port, true), "404")
}
