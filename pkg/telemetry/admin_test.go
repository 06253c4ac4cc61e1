package telemetry

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAdminHandler(t *testing.T) {
	t.Parallel()
	reg := NewRegistry()
	NewHTTPMetrics(reg).Observe("get-user", 200, time.Millisecond)
	build := Build{
		Module: "m", Version: "v1.2.3", Go: "go1", Revision: "abc", Time: "2026-01-31T00:00:00Z", Modified: true,
	}
	handler := AdminHandler(reg, build)
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	for path, want := range map[string]string{
		"/metrics":                       `idp_http_requests_total{code="200",operation="get-user"} 1`,
		"/healthz":                       `{"status":"ok"}`,
		"/debug/pprof/":                  "goroutine",
		"/debug/pprof/heap?debug=1":      "heap profile",
		"/debug/pprof/goroutine?debug=2": "goroutine",
		"/debug/pprof/symbol":            "num_symbols",
	} {
		status, body := get(path)
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, body, want, path)
	}
	_, body := get("/buildinfo")
	var read Build
	require.NoError(t, json.Unmarshal([]byte(body), &read))
	require.Equal(t, build, read)
	for _, path := range []string{"/", "/debug/pprof/cmdline", "/metrics/x"} {
		status, _ := get(path)
		require.Equal(t, http.StatusNotFound, status, path)
	}
}

func TestReadBuild(t *testing.T) {
	t.Parallel()
	require.True(t, strings.HasPrefix(ReadBuild().Go, "go1."))
}

func TestServeAdmin(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	for name, end := range map[string]func(cancel func(), s *AdminServer){
		"by close":        func(_ func(), s *AdminServer) { s.Close() },
		"by close, twice": func(_ func(), s *AdminServer) { s.Close(); s.Close() },
		"by context":      func(cancel func(), _ *AdminServer) { cancel() },
		"by both":         func(cancel func(), s *AdminServer) { cancel(); s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			entered := make(chan struct{})
			s, err := ServeAdmin(ctx, ":0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				close(entered)
				<-r.Context().Done() // like a long profile, which is cut
			}), log)
			require.NoError(t, err)
			host, _, err := net.SplitHostPort(s.Addr())
			require.NoError(t, err)
			require.Equal(t, "127.0.0.1", host, "an address without a host means loopback")

			client := &http.Client{Transport: &http.Transport{}}
			resp, err := client.Get("http://" + s.Addr())
			require.NoError(t, err)
			<-entered
			end(cancel, s)
			_, err = io.ReadAll(resp.Body)
			require.Error(t, err)
			require.NoError(t, resp.Body.Close())
			client.CloseIdleConnections()
			s.Close()
			_, err = net.Dial("tcp", s.Addr())
			require.Error(t, err)
		})
	}
}

func TestServeAdminRefuses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close() // only reserved
	for _, addr := range []string{"", "9090", "localhost", "127.0.0.1:port", taken.Addr().String()} {
		_, err := ServeAdmin(t.Context(), addr, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		require.Error(t, err, addr)
	}
}

func TestAdminOff(t *testing.T) {
	t.Parallel()
	s, err := ServeAdmin(t.Context(), Off, nil, nil)
	require.NoError(t, err)
	require.Empty(t, s.Addr())
	s.Close()
}
