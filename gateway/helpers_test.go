package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) {
	if runBenchmarkRole() {
		return
	}
	leaks.Main(m)
}

// logs collects the log lines of a gateway.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type fixture struct {
	*Gateway
	registry *prometheus.Registry
	logs     *logs
}

// newGateway makes a gateway with the default configuration, changed by change.
func newGateway(t testing.TB, upstreams map[string]Upstream, change func(*Config)) fixture {
	t.Helper()
	config := DefaultConfig()
	if change != nil {
		change(&config)
	}
	f := fixture{registry: prometheus.NewRegistry(), logs: &logs{}}
	g, err := New(config, upstreams, Deps{Log: slog.New(slog.NewJSONHandler(f.logs, nil)), Metrics: f.registry})
	require.NoError(t, err)
	f.Gateway = g
	t.Cleanup(g.Close)
	return f
}

func isReady() ([]string, error) { return nil, nil }

// local makes a service in this process.
func local(h http.HandlerFunc) Upstream { return InProcess(h, isReady) }

// remote makes a service behind a real connection.
func remote(t testing.TB, h http.HandlerFunc) Upstream {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	u, err := Remote(server.URL)
	require.NoError(t, err)
	return u
}

// listen serves a gateway over a real connection.
func listen(t testing.TB, g http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return server
}

// pipes is a listener whose connections belong to a synctest bubble.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func newPipes() pipes { return pipes{make(chan net.Conn), make(chan struct{})} }

// piped serves g in a synctest bubble. opened is how many connections the client has made.
func piped(t testing.TB, g http.Handler) (client *http.Client, opened *atomic.Int32) {
	t.Helper()
	listener, server := newPipes(), &http.Server{Handler: g}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	opened = new(atomic.Int32)
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		opened.Add(1)
		listener.connections <- far
		return near, nil
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return &http.Client{Transport: transport}, opened
}

// get calls a handler without a connection.
func get(h http.Handler, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// requireProblem checks an error response as a whole (RFC 9457).
func requireProblem(t testing.TB, status int, code string, gotStatus int, header http.Header,
	body io.Reader) problem.Document {
	t.Helper()
	require.Equal(t, status, gotStatus)
	require.Equal(t, problem.ContentType, header.Get("Content-Type"))
	var doc problem.Document
	require.NoError(t, json.NewDecoder(body).Decode(&doc))
	require.Equal(t, code, doc.Code)
	require.Equal(t, header.Get("X-Request-Id"), doc.RequestID)
	require.NotEmpty(t, doc.RequestID)
	return doc
}
