package service

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
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/health"
	"github.com/idplatform/idplatform/pkg/memory"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// Main runs a service as a process until SIGTERM or SIGINT. With the argument health it asks the running process
// whether it is ready; with check, and optionally --rotate-keys, it checks the database; with version, and optionally
// --formats, it prints how it was built and what it stores. settings is a pointer to a
// struct that embeds Config, squashed, and has the service's own settings; it holds the defaults. common points to the
// embedded Config, and spec makes the Spec when the settings are loaded. commands are others that the service has.
func Main(name string, settings any, common *Config, spec func() Spec, commands ...Command) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	err := command(ctx, name, os.Args[1:], os.Environ(), settings, common, commands, os.Stdout, os.Stderr)
	if errors.Is(err, errNoCommand) {
		err = startTo(ctx, name, os.Args[1:], os.Environ(), settings, common, spec, os.Stdout, os.Stderr)
	}
	if errors.Is(err, config.ErrHelp) {
		fmt.Print(config.Usage("idp-"+name, settings))
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, secret.MaskError(err))
		os.Exit(1)
	}
}

// startTo is start, with the command that writes to the standard output.
func startTo(ctx context.Context, name string, args, environ []string, settings any, common *Config, spec func() Spec,
	out, log io.Writer) error {
	if len(args) == 0 || args[0] != "version" {
		return start(ctx, name, args, environ, settings, common, spec, log)
	}
	others, formats := TakeFlag(args[1:], "--formats")
	if len(others) > 0 {
		return errors.New("version: the only flag is --formats")
	}
	return writeVersion(out, spec(), formats)
}

func start(ctx context.Context, name string, args, environ []string, settings any, common *Config, spec func() Spec,
	out io.Writer) error {
	command, rotate := "", false
	if len(args) > 0 && (args[0] == "health" || args[0] == "check") {
		command, args = args[0], args[1:]
	}
	if command == "check" {
		args, rotate = TakeFlag(args, "--rotate-keys")
	}
	if err := config.Load(settings, config.Options{Program: "idp-" + name, Environ: environ, Args: args}); err != nil {
		return err
	}
	switch command {
	case "health":
		return health.Probe(ctx, common.Listen, false)
	case "check":
		return check(ctx, *common, spec(), rotate, out)
	}
	return run(ctx, name, *common, spec(), out)
}

// TakeFlag removes a flag that is not a setting from the arguments, and reports whether it was there.
func TakeFlag(args []string, flag string) (others []string, given bool) {
	others = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == flag })
	return others, len(others) < len(args)
}

func run(ctx context.Context, name string, c Config, spec Spec, out io.Writer) error {
	log := c.Log.Logger(out, name)
	memory.Limit(c.nativeMemory(), log)
	registry := telemetry.NewRegistry()
	tracer, flushTraces, err := telemetry.Tracing(ctx, c.Tracing, name, log)
	if err != nil {
		return err
	}
	deps, err := c.deps(log, registry)
	if err != nil {
		return err
	}
	admin, err := telemetry.ServeAdmin(context.WithoutCancel(ctx), c.AdminListen,
		telemetry.AdminHandler(registry, telemetry.ReadBuild()), log)
	if err != nil {
		return err
	}
	defer admin.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}

	// The listener answers from the beginning: while the service waits for its database, /readyz answers 503.
	h := &healthHandler{}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- serve(serving, listener, h, c.DrainDelay, c.DrainTimeout, log)
		stop()
	}()
	unit, err := c.start(serving, name, spec, deps)
	if err != nil {
		if ctx.Err() != nil { // the process was told to stop meanwhile
			err = nil
		}
		stop()
		return errors.Join(err, <-served)
	}
	handler := unit.Handler
	if tracer != nil {
		handler = otelhttp.NewHandler(handler, name, otelhttp.WithTracerProvider(tracer))
	}
	h.open(handler, unit.Ready, unit.Warnings)
	log.Info("serving", "listen", listener.Addr().String(), "admin", admin.Addr(), "database", databaseOf(c), "nats",
		c.NATS.URL)
	debug.FreeOSMemory() // what only the start needed
	err = <-served

	// The order is that in which data flows: requests have ended; then tasks and events, then the connection to NATS.
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.DrainTimeout)
	defer cancel()
	return errors.Join(err, unit.Stop(stopping), unit.deps.Bus.Close(stopping), flushTraces(stopping))
}

// deps makes the Deps of the settings that need neither the store nor NATS.
func (c Config) deps(log *slog.Logger, registry *prometheus.Registry) (Deps, error) {
	keys, err := secret.ParseKeyring(c.EncryptionKeys)
	if err != nil {
		return Deps{}, err
	}
	deps := Deps{
		Outbound: c.Outbound.Client(), Dialer: c.Outbound.Dialer(), Pictures: picture.NewRoom(), Clock: clock.System,
		Log: log, Metrics: registry,
		Requests: telemetry.NewHTTPMetrics(registry), Answers: c.Answers.Budget(registry), Keys: keys,
		StuckAfter: c.StuckAfter, PublicURL: c.PublicURL, EarlierURLs: c.Auth.Issuer,
		AskForEnded: c.Auth.asksForEnded(), AuditTenant: c.AuditTenant, Alone: c.Mongo.URI.IsZero(),
	}
	deps.Forwarded.Gateway = forwarded.NewKey(c.GatewaySecret)
	if deps.Forwarded.Proxies, err = forwarded.ParseProxies(c.TrustedProxies); err != nil {
		return Deps{}, err
	}
	if deps.Verifier, err = c.Auth.Verifier(log); err != nil {
		return Deps{}, err
	}
	if c.Auth.JWKS != "" && !c.Auth.Own {
		if err := deps.TrustPlatform(c.Auth.platformKeys()); err != nil {
			return Deps{}, err
		}
		deps.Introspect = introspector(c.Auth.JWKS, &http.Client{Timeout: 5 * time.Second})
	}
	return deps, nil
}

// start opens what the service needs, and starts it.
func (c Config) start(ctx context.Context, name string, spec Spec, deps Deps) (*Unit, error) {
	var err error
	if deps.Store, err = c.openStore(ctx, spec, deps.Keys, deps.Log); err != nil {
		return nil, err
	}
	if deps.Bus, err = c.NATS.connect(ctx, name, deps.Log); err != nil {
		return nil, errors.Join(err, deps.Store.Close())
	}
	deps.Stream, err = stream.New(stream.Config{
		Bus: deps.Bus, Memory: spec.EventMemory, Log: deps.Log, Metrics: deps.Metrics,
	})
	if err != nil {
		return nil, errors.Join(err, deps.Bus.Close(ctx), deps.Store.Close())
	}
	unit, err := Start(ctx, spec, deps)
	if err != nil {
		return nil, errors.Join(err, deps.Bus.Close(ctx), deps.Store.Close())
	}
	return unit, nil
}

func databaseOf(c Config) string {
	if c.Mongo.URI.IsZero() {
		return "sqlite in " + c.DataDir
	}
	return "mongodb " + c.Mongo.Database
}

// nativeMemory returns how much memory the process uses outside of the Go heap, in bytes.
func (c Config) nativeMemory() int64 {
	if c.Mongo.URI.IsZero() {
		return int64(c.Caches.MiB) << 20
	}
	return 0
}

// serve serves until ctx ends, then drains: for the time delay it reports that it is not ready, then it accepts no more
// connections and waits for requests.
func serve(ctx context.Context, l net.Listener, h *healthHandler, delay, timeout time.Duration,
	log *slog.Logger) error {
	draining, drain := context.WithCancel(context.WithoutCancel(ctx))
	defer drain()
	server := &http.Server{
		BaseContext: func(net.Listener) context.Context { return request.WithDrain(context.Background(), draining) },
		Handler:     h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(problem.Listener(l)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	log.Info("stopping")
	h.draining.Store(true)
	if h.started.Load() == nil { // no request was sent here yet
		delay = 0
	}
	select {
	case <-time.After(delay):
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	drain() // ends event streams
	if err := server.Shutdown(stopping); err != nil {
		return errors.Join(fmt.Errorf("drain: %w", err), server.Close())
	}
	<-failed
	return nil
}
