package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/console"
	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/services/applications"
	"github.com/idplatform/idplatform/services/automation"
	"github.com/idplatform/idplatform/services/events"
	identitysources "github.com/idplatform/idplatform/services/identity-sources"
	"github.com/idplatform/idplatform/services/organization"
	"github.com/idplatform/idplatform/services/permissions"
	"github.com/idplatform/idplatform/services/provisioning"
	"github.com/idplatform/idplatform/services/questions"
	signin "github.com/idplatform/idplatform/services/sign-in"
	"github.com/idplatform/idplatform/services/users"
)

// specs are the services of the platform. A new one is a line here.
var specs = func(s settings) []service.Spec {
	return []service.Spec{
		users.Spec(s.Users),
		applications.Spec(s.Applications),
		organization.Spec(),
		identitysources.Spec(),
		permissions.Spec(s.Permissions),
		events.Spec(s.Events),
		automation.Spec(s.Automation),
		signin.Spec(s.SignIn),
		provisioning.Spec(),
	}
}

// stores lists the names of the platform's stores: the event store and one for each service.
func (s settings) stores() []string {
	names := []string{natsStore}
	for _, spec := range specs(s) {
		names = append(names, spec.Name)
	}
	return names
}

// platform is everything that runs except the listener.
type platform struct {
	gateway *gateway.Gateway
	console *console.Console // nil if it is left out
	nats    *embedded.Server
	natsURL string // for readers of events; "" if NATS does not listen
	stores  []openStore
	keys    *secret.Keyring

	cleanups []func(context.Context) error // newest last
}

// start starts the platform on a data folder. address is the URL that it listens on. If a part fails, start stops the
// parts that it has started.
func start(
	ctx context.Context, s settings, f folder, address string, log *slog.Logger, registry *prometheus.Registry,
) (_ *platform, err error) {
	p := &platform{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop(ctx))
		}
	}()
	tracer, flushTraces, err := telemetry.Tracing(ctx, s.Tracing, "idp-standalone", log)
	if err != nil {
		return nil, err
	}
	p.cleanups = append(p.cleanups, flushTraces)
	if p.keys, err = f.keyring(s.EncryptionKeys); err != nil {
		return nil, err
	}
	if err := s.adopt(f); err != nil {
		return nil, err
	}
	if s.logsMails(address) {
		s.SignIn.SMTPURL = secret.New(signin.ToLog)
	}
	deps, err := s.deps(p.keys, address, log)
	if err != nil {
		return nil, err
	}
	deps.Answers = s.Answers.Budget(registry)
	stores, err := f.readStores()
	if err != nil {
		return nil, err
	}
	lost, err := stores.begin(s.stores(), s.AcceptLoss)
	if err != nil {
		return nil, err
	}
	for _, name := range lost {
		log.Warn("a store was lost: the platform starts without its content, as accepted", "store", name,
			"first_id", stores.firstID(name))
	}
	if deps.Bus, err = p.startNATS(ctx, s, f, log); err != nil {
		return nil, err
	}
	deps.Stream, err = stream.New(stream.Config{Bus: deps.Bus, Memory: events.Memory, Log: log, Metrics: registry})
	if err != nil {
		return nil, err
	}
	upstreams, err := p.startServices(ctx, s, f, deps, stores, log, registry)
	if err != nil {
		return nil, err
	}
	if len(s.Config.Required) == 0 { // one process: it is ready when all of it is
		s.Config.Required = slices.Collect(maps.Keys(upstreams))
	}
	if err := p.startConsole(s, upstreams, deps, log); err != nil {
		return nil, err
	}
	if p.gateway, err = gateway.New(s.Config, upstreams,
		gateway.Deps{Log: log, Metrics: registry, Tracer: tracer}); err != nil {
		return nil, err
	}
	p.cleanups = append(p.cleanups, func(context.Context) error { p.gateway.Close(); return nil })
	return p, nil
}

// startConsole adds the web console to the gateway's upstreams. Its sessions are sealed with the platform's keys,
// unless it has its own.
func (p *platform) startConsole(
	s settings, upstreams map[string]gateway.Upstream, deps service.Deps, log *slog.Logger,
) (err error) {
	if s.Web.Off() {
		return nil
	}
	calls := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.gateway.ServeHTTP(w, r) })
	p.console, err = console.New(s.Web, console.Deps{
		Log: log.With("service", "console"), Gateway: calls, Trust: deps.Forwarded, Keys: deps.Keys,
	})
	if err != nil {
		return err
	}
	upstreams[gateway.Console] = gateway.InProcess(p.console, func() ([]string, error) { return nil, nil })
	return nil
}

// adopt completes the settings of the applications service with the data folder's administrator.
func (s *settings) adopt(f folder) (err error) {
	if s.Applications.Bootstrap, err = f.administrator(s.Bootstrap); err != nil {
		return err
	}
	s.Applications.Bootstrap.Tenant = cmp.Or(s.Bootstrap.Tenant, s.Tenant)
	return nil
}

// logsMails reports whether mails go to the log: there is no mail server, and only this machine reaches the platform.
func (s *settings) logsMails(address string) bool {
	return s.SignIn.SMTPURL.IsZero() && signin.OnLoopback(cmp.Or(s.PublicURL, address)) &&
		signin.OnLoopback("http://"+s.Listen)
}

// deps makes what all services share, without the Bus.
func (s *settings) deps(keys *secret.Keyring, address string, log *slog.Logger) (d service.Deps, err error) {
	if s.Config.GatewaySecret.IsZero() {
		s.Config.GatewaySecret = secret.New(secret.Token(32))
	}
	d = service.Deps{
		Forwarded: forwarded.Trust{Gateway: forwarded.NewKey(s.Config.GatewaySecret)},
		Keys:      keys, Outbound: s.Outbound.Client(), Dialer: s.Outbound.Dialer(), Pictures: picture.NewRoom(),
		Clock: clock.System, StuckAfter: s.StuckAfter,
		PublicURL: cmp.Or(s.PublicURL, address), EarlierURLs: s.Auth.Issuer,
		AuditTenant: s.Tenant, Alone: true,
	}
	// The applications service makes the verifier trust the platform itself, for all services.
	d.Verifier, err = (service.AuthConfig{OIDC: s.Auth.OIDC}).Verifier(log)
	return d, err
}

// startServices starts all services on their files, and notes that these are open.
func (p *platform) startServices(
	ctx context.Context, s settings, f folder, deps service.Deps, stores *stores, log *slog.Logger,
	registry prometheus.Registerer,
) (map[string]gateway.Upstream, error) {
	upstreams := map[string]gateway.Upstream{}
	for _, spec := range specs(s) {
		engine, err := sqlitestore.Open(ctx, sqlitestore.Options{
			Path: f.join(spec.Name + ".db"), Cache: s.Caches.Share(spec, specs(s)), Log: log.With("service", spec.Name),
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", spec.Name, err)
		}
		unit, err := startService(ctx, spec, deps, engine, stores.firstID(spec.Name), log, registry)
		if err != nil {
			return nil, err
		}
		p.stores = append(p.stores, openStore{spec.Name, engine})
		p.cleanups = append(p.cleanups, unit.Stop)
		upstreams[spec.Name] = gateway.InProcess(unit.Handler, func() ([]string, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			return unit.Warnings(), unit.Ready(ctx)
		})
	}
	if err := stores.opened(s.stores()); err != nil {
		return nil, err
	}
	p.cleanups = append(p.cleanups, func(context.Context) error { return stores.closing(s.stores()) })
	return upstreams, nil
}

// subscriberOf asks the events service whether somebody is the NATS user of a subscription, and returns that user's
// rights.
func subscriberOf(ctx context.Context, b *bus.Bus, user, password string) (publish, subscribe []string, ok bool) {
	tenant, id, _ := strings.Cut(user, ".")
	if !auth.ValidTenant(tenant) {
		return nil, nil, false
	}
	ctx = request.System(context.WithoutCancel(ctx), tenant)
	answer, err := questions.IsSubscriber.Ask(ctx, b, questions.Subscriber{ID: id, Password: password})
	if err != nil || !answer.Admitted {
		return nil, nil, false
	}
	publish, subscribe = bus.SubscriberPermissions(tenant, id)
	return publish, subscribe, true
}

func startService(
	ctx context.Context, spec service.Spec, deps service.Deps, engine *sqlitestore.Engine, firstID int64,
	log *slog.Logger, registry prometheus.Registerer,
) (*service.Unit, error) {
	deps.Log = log.With("service", spec.Name)
	deps.Metrics = prometheus.WrapRegistererWith(prometheus.Labels{"service": spec.Name}, registry)
	deps.Requests = telemetry.NewHTTPMetrics(deps.Metrics)
	var err error
	if deps.Store, err = spec.Open(ctx, engine, clock.System, deps.Keys); err != nil {
		return nil, err
	}
	if firstID > 0 {
		if err := deps.Store.StartIDsAt(ctx, firstID); err != nil {
			return nil, errors.Join(err, deps.Store.Close())
		}
	}
	unit, err := service.Start(ctx, spec, deps)
	if err != nil {
		return nil, errors.Join(err, deps.Store.Close())
	}
	return unit, nil
}

// startNATS starts the embedded server and connects the services to it.
func (p *platform) startNATS(
	ctx context.Context, s settings, f folder, log *slog.Logger,
) (*bus.Bus, error) {
	if err := p.startServer(s, f, log); err != nil {
		return nil, err
	}
	b, err := bus.Connect(ctx, bus.Config{
		InProcess: p.nats.Conn(), Sync: p.nats.Sync, Name: "idp-standalone", Patience: 20 * time.Second,
		Log: log,
	})
	if err != nil {
		return nil, err
	}
	p.cleanups = append(p.cleanups, b.Close)
	b.EnsureStreams(ctx)
	p.nats.AdmitSubscribers(func(user, password string) (publish, subscribe []string, ok bool) {
		return subscriberOf(ctx, b, user, password)
	})
	return b, nil
}

// startServer starts the embedded server, and writes its URLs for readers of events and for workers of jobs into the
// data folder.
func (p *platform) startServer(s settings, f folder, log *slog.Logger) error {
	password, err := f.keep("nats.password", func() (string, error) { return secret.Token(24), nil })
	if err != nil {
		return err
	}
	work, err := f.keep("nats.jobs.password", func() (string, error) { return secret.Token(24), nil })
	if err != nil {
		return err
	}
	config := embedded.Config{
		StoreDir: f.join("nats"), Log: log,
		User: "events", Password: password, Worker: "jobs", WorkerPassword: work,
	}
	switch s.NATSListen {
	case "off":
		config.User, config.Password, config.Worker, config.WorkerPassword = "", "", "", ""
	case "":
		config.Listen = "127.0.0.1:4222"
	default:
		config.Listen = s.NATSListen
	}
	p.nats, err = embedded.Start(config)
	if _, busy := errors.AsType[*embedded.PortBusyError](err); busy && s.NATSListen == "" {
		log.Warn("the port for event subscribers is in use; they get another one",
			"in_use", config.Listen, "written_to", f.join("nats.url"))
		config.Listen = "127.0.0.1:0"
		p.nats, err = embedded.Start(config)
	}
	if err != nil {
		return err
	}
	p.cleanups = append(p.cleanups, func(context.Context) error { p.nats.Stop(); return nil })
	if config.Listen == "" {
		return nil
	}
	as := func(user, password string) string {
		return strings.Replace(p.nats.ClientURL(), "://", "://"+url.UserPassword(user, password).String()+"@", 1)
	}
	p.natsURL = as(config.User, password)
	return errors.Join(f.replace("nats.url", p.natsURL), f.replace(workersURL, as(config.Worker, work)))
}

// stop ends everything, the last started first.
func (p *platform) stop(ctx context.Context) error {
	var errs []error
	for i := len(p.cleanups) - 1; i >= 0; i-- {
		errs = append(errs, p.cleanups[i](ctx))
	}
	p.cleanups = nil
	return errors.Join(errs...)
}
