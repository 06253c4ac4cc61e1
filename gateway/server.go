package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
)

// readHeaderTimeout bounds how long a client may take to send a request's headers.
const readHeaderTimeout = 10 * time.Second

// Serve answers on ln, with TLS (1.2 or newer, HTTP/2) if configured, until ctx ends. Then it drains: /readyz
// answers 503, and for DrainDelay requests are still accepted, with Connection: close in their responses. After that it
// accepts no more, ends event streams, and gives running requests DrainTimeout. It returns nil if all of them ended in
// time, and closes ln in any case.
func (g *Gateway) Serve(ctx context.Context, ln net.Listener) error {
	draining, drain := context.WithCancel(context.WithoutCancel(ctx))
	defer drain()
	server := &http.Server{
		BaseContext: func(net.Listener) context.Context {
			return request.WithDrain(context.Background(), draining)
		},
		Handler:           g,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       g.config.IdleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,

		// OPTIONS * is answered like an unknown path.
		DisableGeneralOptionsHandler: true,
		// These are faults of clients, such as failed TLS handshakes.
		ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
		// No ReadTimeout or WriteTimeout: they would end streams. Every request gets its own deadlines.
	}
	serve := func(ln net.Listener) error { return server.Serve(problem.Listener(ln)) }
	if g.config.TLS.CertFile != "" {
		cert, err := newCertificate(g.config.TLS, g.log)
		if err != nil {
			_ = ln.Close()
			return err
		}
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get}
		serve = func(ln net.Listener) error { return server.ServeTLS(ln, "", "") }
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(ln) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	return g.drain(server, drain, ended)
}

func (g *Gateway) drain(server *http.Server, endStreams func(), ended <-chan error) error {
	g.log.Info("draining", "requests", g.inFlight.Load(), "event_streams", g.streams.Load())
	g.draining.Store(true)
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-time.After(g.config.DrainDelay):
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.config.DrainTimeout)
	defer cancel()
	endStreams()
	err := server.Shutdown(ctx)
	if err != nil {
		_ = server.Close() // ends what is still running
		err = fmt.Errorf("requests were still running %s after the stop: %w", g.config.DrainTimeout, err)
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
