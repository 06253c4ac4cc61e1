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

// Off is the admin address that means: no admin listener.
const Off = "off"

// AdminHandler serves /metrics, /healthz, /buildinfo and /debug/pprof/. It asks for no credential: everyone who can
// reach the listener can read all of it.
func AdminHandler(reg *prometheus.Registry, build Build) http.Handler {
	mux := http.NewServeMux()
	metrics := promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /buildinfo", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, build) })
	// /debug/pprof/cmdline is left out, because command lines can hold secrets.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol) // go tool pprof uses POST
	return mux
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v) // fails only if the client has gone
}

// AdminServer serves the admin endpoints on a listener of their own, so that operators can reach them under load and
// API clients cannot.
type AdminServer struct {
	addr string
	stop func()
}

// ServeAdmin listens on addr and serves until ctx ends or Close is called. An address without a host (":9090") means
// loopback; to listen on other interfaces, name the host ("0.0.0.0:9090"). With Off nothing listens.
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
		WriteTimeout:   5 * time.Minute, // a profile takes as long as the client asks for
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
		_ = server.Close() // no admin request is worth waiting for
		<-done
	}}, nil
}

// Addr is the address it listens on, with the real port instead of port 0; empty for Off.
func (s *AdminServer) Addr() string { return s.addr }

// Close cuts all connections and returns when no request is being served.
func (s *AdminServer) Close() { s.stop() }
