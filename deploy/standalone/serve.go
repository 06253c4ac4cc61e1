package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"

	"github.com/idplatform/idplatform/pkg/telemetry"
)

// serve runs the platform until SIGTERM or SIGINT, then drains it.
func serve(ctx context.Context, args []string, out, notes io.Writer) (err error) {
	s, err := load(args, out)
	if err != nil {
		return err
	}
	// All services and NATS share this process: of the heap that they make together much is short-lived, and a fifth less memory is worth some
	// per cent of a processor. GOGC in the environment has the last word.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(60)
	}
	log := telemetry.NewLogger(notes, s.Log.Level, s.Log.Format)
	f, unlock, err := takeFolder(s.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.tighten(log); err != nil {
		return err
	}

	// The listener comes first: with a taken port nothing else needs to start.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address with IDP_LISTEN", err)
	}
	defer listener.Close()
	registry := telemetry.NewRegistry()
	p, err := start(ctx, s, f, log, registry)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.DrainTimeout)
		defer cancel()
		err = errors.Join(err, p.stop(stopping))
	}()
	admin, err := telemetry.ServeAdmin(context.WithoutCancel(ctx), s.AdminListen, telemetry.AdminHandler(registry, telemetry.ReadBuild()), log)
	if err != nil {
		return fmt.Errorf("%w: choose another address with IDP_ADMIN_LISTEN, or off", err)
	}
	defer admin.Close()

	greet(out, s, f, p, listener.Addr().String(), admin.Addr())
	return p.gateway.Serve(ctx, listener)
}

// greet says where everything is.
func greet(out io.Writer, s settings, f folder, p *platform, address, admin string) {
	scheme := "http"
	if s.TLS.CertFile != "" {
		scheme = "https"
	}
	base := scheme + "://" + address
	fmt.Fprintf(out, "idplatform is running\n\n")
	fmt.Fprintf(out, "  API      %s/v1/users\n", base)
	fmt.Fprintf(out, "  docs     %s/docs\n", base)
	fmt.Fprintf(out, "  token    IDP_DATA_DIR=%s %s token\n", f.path, program())
	fmt.Fprintf(out, "  data     %s\n", f.path)
	if p.natsURL != "" {
		fmt.Fprintf(out, "  events   nats sub --server \"$(cat %s)\" 'idp.events.>'\n", f.join("nats.url"))
	}
	if admin != "" {
		fmt.Fprintf(out, "  metrics  http://%s/metrics\n", admin)
	}
	fmt.Fprintf(out, "\nTry: curl -H \"Authorization: Bearer $(IDP_DATA_DIR=%s %s token)\" %s/v1/users\n", f.path, program(), base)
}
