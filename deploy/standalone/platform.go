package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/services/applications"
	"github.com/idplatform/idplatform/services/automation"
	"github.com/idplatform/idplatform/services/events"
	identitysources "github.com/idplatform/idplatform/services/identity-sources"
	"github.com/idplatform/idplatform/services/organization"
	"github.com/idplatform/idplatform/services/permissions"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users"
)

// specs are the services of the platform. A new one is a line here.
var specs = func(s settings) []service.Spec {
	return []service.Spec{
		users.Spec(s.Users),
		applications.Spec(s.Applications),
		organization.Spec(),
		identitysources.Spec(),
		permissions.Spec(),
		events.Spec(s.Events),
		automation.Spec(s.Automation),
	}
}

// stores are the names of all that the platform keeps data in.
func (s settings) stores() []string {
	names := []string{natsStore}
	for _, spec := range specs(s) {
		names = append(names, spec.Name)
	}
	return names
}

// platform is all that runs but the listener.
type platform struct {
	gateway *gateway.Gateway
	nats    *embedded.Server
	natsURL string // for subscribers; "" if they have no way in

	cleanups []func(context.Context) error // newest last
}

// start makes the platform out of a folder; address is the URL that it listens on. If that fails, what was started is
// stopped.
func start(
	ctx context.Context, s settings, f folder, address string, log *slog.Logger, registry *prometheus.Registry,
) (_ *platform, err error) {
	p := &platform{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop(ctx))
		}
	}()
	keys, err := f.keyring(s.EncryptionKeys)
	if err != nil {
		return nil, err
	}
	if s.Applications.AdoptKeys, err = f.formerKeys(keys); err != nil {
		return nil, err
	}
	if s.Applications.Bootstrap, err = f.administrator(s.Bootstrap); err != nil {
		return nil, err
	}
	s.Applications.Bootstrap.Tenant = cmp.Or(s.Bootstrap.Tenant, s.Tenant)
	tracer, flushTraces, err := telemetry.Tracing(ctx, telemetry.TracingConfig{
		Endpoint: s.Tracing.Endpoint, SampleRatio: s.Tracing.SampleRatio, Service: "idp-standalone", Log: log,
	})
	if err != nil {
		return nil, err
	}
	p.cleanups = append(p.cleanups, flushTraces)
	deps := service.Deps{
		Keys: keys, Outbound: s.Outbound.Client(), Dialer: s.Outbound.Dialer(), Pictures: picture.NewRoom(),
		Clock: clock.System, StuckAfter: s.StuckAfter,
		PublicURL: cmp.Or(s.PublicURL, address), EarlierURLs: s.Auth.Issuer,
		AuditTenant: s.Tenant,
	}
	// The applications service adds the platform itself, for all services.
	if deps.Verifier, err = (service.AuthConfig{OIDC: s.Auth.OIDC}).Verifier(deps.Outbound, log); err != nil {
		return nil, err
	}
	stores, err := f.readStores()
	if err != nil {
		return nil, err
	}
	lost, err := stores.begin(s.stores(), s.AcceptLoss)
	if err != nil {
		return nil, err
	}
	for _, name := range lost {
		log.Warn("a store's loss is accepted: it begins anew", "store", name, "first_id", stores.firstID(name))
	}
	if err := p.startNATS(s, f, log); err != nil {
		return nil, err
	}
	deps.Bus, err = bus.Connect(ctx, bus.Config{
		InProcess: p.nats.Conn(), Sync: p.nats.Sync, Name: "idp-standalone", Log: log, Metrics: registry,
	})
	if err != nil {
		return nil, err
	}
	p.cleanups = append(p.cleanups, deps.Bus.Close)
	deps.Bus.EnsureStreams(ctx)
	p.nats.AdmitSubscribers(func(user, password string) (publish, subscribe []string, ok bool) {
		return subscriberOf(ctx, deps.Bus, user, password)
	})

	upstreams := map[string]gateway.Upstream{}
	for _, spec := range specs(s) {
		file := sqlitestore.Options{Path: f.join(spec.Name + ".db"), Cache: s.Caches.Share(spec, specs(s))}
		unit, err := startService(ctx, spec, deps, file, stores.firstID(spec.Name), log, registry)
		if err != nil {
			return nil, err
		}
		p.cleanups = append(p.cleanups, unit.Stop)
		upstreams[spec.Name] = gateway.InProcess(unit.Handler, func() ([]string, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			return unit.Warnings(), unit.Ready(ctx)
		})
	}
	if err := f.forgetFormerKeys(); err != nil { // the applications service has them
		return nil, err
	}
	if err := stores.opened(s.stores()); err != nil {
		return nil, err
	}
	p.cleanups = append(p.cleanups, func(context.Context) error { return stores.closing(s.stores()) })
	if p.gateway, err = gateway.New(s.Config, upstreams,
		gateway.Deps{Log: log, Metrics: registry, Tracer: tracer}); err != nil {
		return nil, err
	}
	p.cleanups = append(p.cleanups, func(context.Context) error { p.gateway.Close(); return nil })
	return p, nil
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
	ctx context.Context, spec service.Spec, deps service.Deps, file sqlitestore.Options, firstID int64,
	log *slog.Logger, registry prometheus.Registerer,
) (*service.Unit, error) {
	deps.Log = log.With("service", spec.Name)
	deps.Metrics = prometheus.WrapRegistererWith(prometheus.Labels{"service": spec.Name}, registry)
	deps.Requests = telemetry.NewHTTPMetrics(deps.Metrics)
	file.Log = deps.Log
	engine, err := sqlitestore.Open(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
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

// startNATS starts the embedded server and notes how subscribers reach it.
func (p *platform) startNATS(s settings, f folder, log *slog.Logger) error {
	password, err := f.keep("nats.password", func() (string, error) { return secret.Token(24), nil })
	if err != nil {
		return err
	}
	config := embedded.Config{StoreDir: f.join("nats"), User: "events", Password: password, Log: log}
	switch s.NATSListen {
	case "off":
		config.User, config.Password = "", ""
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
	p.natsURL = strings.Replace(p.nats.ClientURL(), "://", "://"+url.UserPassword(config.User, password).String()+"@",
		1)
	return f.replace("nats.url", p.natsURL)
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
