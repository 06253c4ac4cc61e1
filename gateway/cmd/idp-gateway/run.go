package main

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/memory"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// flushTimeout bounds the time for sending the last spans.
const flushTimeout = 5 * time.Second

// run serves until ctx ends and the running requests are answered.
func run(ctx context.Context, s settings, logs io.Writer) (err error) {
	log := s.Log.Logger(logs, "gateway")
	memory.Limit(0, log)
	registry := telemetry.NewRegistry()
	tracer, flushTraces, err := telemetry.Tracing(ctx, s.Tracing, "gateway", log)
	if err != nil {
		return err
	}
	defer func() {
		flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		err = errors.Join(err, flushTraces(flushing))
	}()
	upstreams, err := gateway.Remotes(s.Upstreams)
	if err != nil {
		return err
	}
	g, err := gateway.New(s.Config, upstreams, gateway.Deps{Log: log, Metrics: registry, Tracer: tracer})
	if err != nil {
		return err
	}
	defer g.Close()
	// The admin listener outlives ctx, because metrics are needed most while requests drain.
	admin, err := telemetry.ServeAdmin(context.WithoutCancel(ctx), s.AdminListen,
		telemetry.AdminHandler(registry, telemetry.ReadBuild()), log)
	if err != nil {
		return err
	}
	defer admin.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return err
	}
	log.Info("serving", "listen", listener.Addr().String(), "admin", admin.Addr(),
		"tls", s.TLS.CertFile != "", "upstreams", s.Upstreams)
	return g.Serve(ctx, listener)
}
