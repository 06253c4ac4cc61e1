// Command idp-console runs the web console as a process of its own, beside the gateway or on a host of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/idplatform/idplatform/console"
	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/health"
	"github.com/idplatform/idplatform/pkg/memory"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

const program = "idp-console"

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	if err := start(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, secret.MaskError(err))
		os.Exit(1)
	}
}

// start loads the settings and serves. With --help it prints the help instead; "idp-console health" asks the running
// console whether it is ready.
func start(ctx context.Context, args, environ []string, out, logs io.Writer) error {
	s := defaults()
	probing := len(args) > 0 && args[0] == "health"
	if probing {
		args = args[1:]
	}
	err := config.Load(&s, config.Options{Program: program, Environ: environ, Args: args})
	if errors.Is(err, config.ErrHelp) {
		_, err = fmt.Fprint(out, config.Usage(program, &s))
		return err
	}
	if err != nil {
		return err
	}
	if probing {
		return health.Probe(ctx, s.Listen, false)
	}
	return run(ctx, s, logs)
}

// run serves until ctx ends and the running requests are answered.
func run(ctx context.Context, s settings, logs io.Writer) error {
	log := s.Log.Logger(logs, "console")
	memory.Limit(0, log)
	handler, err := s.console(log)
	if err != nil {
		return err
	}
	admin, err := telemetry.ServeAdmin(context.WithoutCancel(ctx), s.AdminListen,
		telemetry.AdminHandler(telemetry.NewRegistry(), telemetry.ReadBuild()), log)
	if err != nil {
		return err
	}
	defer admin.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return err
	}
	log.Info("serving", "listen", listener.Addr().String(), "admin", admin.Addr(), "gateway", s.Gateway)
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		DisableGeneralOptionsHandler: true, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(problem.Listener(listener)) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.DrainTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil { // event streams do not end by themselves
		return server.Close()
	}
	return nil
}

// console makes the handler: the console, and the health of this process.
func (s settings) console(log *slog.Logger) (http.Handler, error) {
	gateway, err := s.gatewayURL()
	if err != nil {
		return nil, err
	}
	trust := forwarded.Trust{Gateway: forwarded.NewKey(s.GatewaySecret)}
	if trust.Proxies, err = forwarded.ParseProxies(s.TrustedProxies); err != nil {
		return nil, err
	}
	if s.Keys.IsZero() {
		log.Warn("sessions end with this process, and no other replica knows them: IDP_CONSOLE_KEYS is not set")
	}
	c, err := console.New(s.Config, console.Deps{
		Log: log, Gateway: console.Remote(gateway, log), Trust: trust,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", c)
	for _, path := range []string{"GET /healthz", "GET /readyz"} { // it needs nothing to answer its page
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"status":"ok"}`)
		})
	}
	return mux, nil
}
