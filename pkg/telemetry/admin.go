package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Off as the admin listener's address switches it off.
const Off = "off"

// AdminHandler serves /metrics, /healthz, /buildinfo and /debug/pprof/. It asks for no credential: whoever reaches the listener
// may read all of it.
func AdminHandler(reg *prometheus.Registry, build Build) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, map[string]string{"status": "ok"}) })
	mux.HandleFunc("GET /buildinfo", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, build) })
	// Without cmdline: a command line is nobody's business.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol) // go tool pprof asks so
	return mux
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v) // a client that is gone hears nothing
}

// AdminServer serves on a listener of its own, so that no load on the API keeps an operator out, and no client comes in.
type AdminServer struct {
	addr string
	stop func()
}

// ServeAdmin listens on addr and serves until ctx ends or Close is called. An address without a host (":9090") means loopback;
// to be reached from elsewhere it must say so ("0.0.0.0:9090"). With Off, nothing listens.
func ServeAdmin(ctx context.Context, addr string, handler http.Handler, log *slog.Logger) (*AdminServer, error) {
	if addr == Off {
		return &AdminServer{stop: func() {}}, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("admin listener: the address must be host:port, :port or %s", Off)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("admin listener: %w", err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		WriteTimeout:   5 * time.Minute, // profiles take as long as they are asked to
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.ErrorContext(ctx, "admin listener stopped", "error", err)
		}
	}()
	forget := context.AfterFunc(ctx, func() { _ = server.Close() })
	return &AdminServer{listener.Addr().String(), func() {
		forget()
		_ = server.Close() // nothing here is worth waiting for
		<-done
	}}, nil
}

// Addr is where it listens, with the true port for port 0; empty when off.
func (s *AdminServer) Addr() string { return s.addr }

// Close cuts all connections and returns when nothing serves any more.
func (s *AdminServer) Close() { s.stop() }
