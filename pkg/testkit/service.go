package testkit

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/natstest"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// Service is a running service and its surroundings.
type Service struct {
	t       testing.TB
	Handler http.Handler
	Deps    service.Deps
	Clock   *basic.Clock
	NATS    *natstest.Server
	Signer  *auth.Signer
	engine  docstore.Engine
	unit    *service.Unit
	tasks   []service.Task

	collections []*docstore.Def

	commands *commandCounter // nil without MongoDB
	foreign  string          // the noun of the events that the test itself publishes; see TestTells
}

// Options change a test's surroundings.
type Options struct {
	Outbound *http.Client // instead of one that reaches loopback addresses
	Dialer   *net.Dialer  // instead of one that reaches loopback addresses
	Log      *slog.Logger
	File     string                // an SQLite file, possibly of a process that died, instead of a new database
	Database string                // of MongoDB, possibly of a process that runs, instead of a new one
	Key      secret.String         // of the other process: see secret.NewKey
	Metrics  prometheus.Registerer // instead of a new registry

	PublicURL string // instead of https://idp.test; for Replica, too

	Forwarded *forwarded.Trust // instead of one that believes the peer of the test's requests

	// Engine, if set, returns the engine for the store, given the test's own: such as one that counts or fails.
	Engine func(docstore.Engine) docstore.Engine
}

// Start runs a service for one test.
func Start(t testing.TB, spec service.Spec, options ...Options) *Service {
	t.Helper()
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	s := &Service{t: t, Clock: basic.NewClock()}
	log := o.Log
	if log == nil {
		log = basic.Log(t)
	}
	if o.Key.Reveal() == "" {
		o.Key = secret.NewKey()
	}
	keys, err := secret.ParseKeyring(o.Key)
	require.NoError(t, err)
	key, err := auth.GenerateKey()
	require.NoError(t, err)
	s.Signer, err = auth.NewSigner("test", auth.NewKeys(key), s.Clock)
	require.NoError(t, err)
	s.NATS = natstest.New(t, "", log)
	s.engine, s.commands = newEngine(t, o)
	if o.Engine != nil {
		s.engine = o.Engine(s.engine)
	}
	store, err := spec.Open(context.Background(), s.engine, s.Clock, keys)
	require.NoError(t, err)
	if o.Outbound == nil {
		o.Outbound = outbound.New(outbound.Config{AllowPrivate: true})
		t.Cleanup(o.Outbound.CloseIdleConnections)
	}
	if o.Dialer == nil {
		o.Dialer = outbound.NewDialer(outbound.Config{AllowPrivate: true})
	}
	s.Deps = service.Deps{
		Store: store, Keys: keys, Outbound: o.Outbound, Dialer: o.Dialer, Pictures: picture.NewRoom(), Clock: s.Clock,
		Log: log, Strict: true, Recheck: 10 * time.Millisecond,
		PublicURL: cmp.Or(o.PublicURL, "https://idp.test"),
		Forwarded: forwarded.Trust{Proxies: forwarded.Proxies{netip.MustParsePrefix("192.0.2.1/32")}}, // httptest's
	}
	if o.Forwarded != nil {
		s.Deps.Forwarded = *o.Forwarded
	}
	s.run(spec, o.Metrics)
	return s
}

// newEngine opens what the options name, or a database for the test. commands is nil without MongoDB.
func newEngine(t testing.TB, o Options) (engine docstore.Engine, commands *commandCounter) {
	t.Helper()
	place := basic.Place{File: o.File, Database: o.Database}
	if basic.OnMongoDB() && o.File == "" {
		commands = &commandCounter{of: map[string]int{}}
		place.Monitor = commands.monitor()
	}
	return basic.Engine(t, place), commands
}

// borrowed is an engine that another store has prepared and will close.
type borrowed struct{ docstore.Engine }

func (borrowed) Prepare(context.Context, []*docstore.Def) error { return nil }
func (borrowed) Close() error                                   { return nil }

// Replica runs the service again on the same database and NATS, as another process would: with ids, connections, tasks,
// a relay and consumers of its own. Its spec must have the same collections. Of the options, only Engine and PublicURL
// count.
func (s *Service) Replica(spec service.Spec, options ...Options) *Service {
	s.t.Helper()
	r := *s
	var engine docstore.Engine = borrowed{s.engine}
	if len(options) > 0 && options[0].Engine != nil {
		engine = options[0].Engine(engine)
	}
	if len(options) > 0 {
		r.Deps.PublicURL = cmp.Or(options[0].PublicURL, r.Deps.PublicURL)
	}
	var err error
	r.Deps.Store, err = spec.Open(context.Background(), engine, s.Clock, r.Deps.Keys)
	require.NoError(s.t, err)
	r.run(spec, nil)
	return &r
}

// run starts the service with what each of its replicas has for itself; without registry, it makes one.
func (s *Service) run(spec service.Spec, registry prometheus.Registerer) {
	s.t.Helper()
	ctx := context.Background()
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	b, err := bus.Connect(ctx, bus.Config{
		InProcess: s.NATS, Name: spec.Name, Patience: wait.Long, Log: s.Deps.Log,
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { within(s.t, b.Close) })
	b.EnsureStreams(ctx)
	s.Deps.Stream, err = stream.New(stream.Config{
		Bus: b, Memory: spec.EventMemory, Log: s.Deps.Log, Metrics: registry,
	})
	require.NoError(s.t, err)
	s.Deps.Verifier, err = auth.New(auth.Config{
		Issuers: []auth.Issuer{{Name: "test", Keys: s.Signer, Scopes: auth.AllScopes}}, Clock: s.Clock, Log: s.Deps.Log,
	})
	require.NoError(s.t, err)
	s.Deps.Bus, s.Deps.Metrics, s.Deps.Requests = b, registry, telemetry.NewHTTPMetrics(registry)
	newApp := spec.New
	s.collections = spec.Collections
	spec.New = func(ctx context.Context, d service.Deps) (service.App, error) {
		app, err := newApp(ctx, d)
		for i := range app.Tasks {
			app.Tasks[i].Do = oneAtATime(app.Tasks[i].Do)
			if app.Tasks[i].Every >= rare {
				app.Tasks[i].Every = time.Hour
			}
		}
		s.tasks = app.Tasks
		return app, err
	}
	unit, err := service.Start(ctx, spec, s.Deps)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { within(s.t, unit.Stop) })
	s.unit, s.Handler = unit, unit.Handler
}

// rare is the interval from which a task runs in tests by RunTask alone: what a test expects before that must not
// depend on how long the test takes.
const rare = 5 * time.Second

// oneAtATime keeps a task's schedule and RunTask from running it at the same time.
func oneAtATime(do func(context.Context) (int, error)) func(context.Context) (int, error) {
	var mu sync.Mutex
	return func(ctx context.Context) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return do(ctx)
	}
}

// RunTask runs one of the service's tasks now, until there is nothing more to do. Tasks with an interval of five
// seconds and more run in no other way.
func (s *Service) RunTask(name string) {
	s.t.Helper()
	i := slices.IndexFunc(s.tasks, func(task service.Task) bool { return task.Name == name })
	require.NotEqual(s.t, -1, i, "there is no task %q", name)
	do := s.tasks[i].Do
	if once := s.tasks[i].Once; once != nil {
		do = once
	}
	for n := 1; n > 0; {
		var err error
		n, err = do(context.Background())
		require.NoError(s.t, err)
	}
}

// TellDenied makes the service write the events about denied writes now, not at its interval.
func (s *Service) TellDenied() {
	s.t.Helper()
	require.NoError(s.t, s.unit.TellDenied(context.Background()))
}

// Ready waits until the service is ready: its followers have caught up.
func (s *Service) Ready() {
	s.t.Helper()
	isReady := func() bool { return s.unit.Ready(context.Background()) == nil }
	wait.Until(s.t, isReady)
}

// Warnings returns what /readyz shows that the service does not have and works without.
func (s *Service) Warnings() []string { return s.unit.Warnings() }

func within(t testing.TB, stop func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Long)
	defer cancel()
	if err := stop(ctx); err != nil {
		t.Error(err)
	}
}

// Token mints a token that is valid for an hour of the test's clock.
func (s *Service) Token(tenant string, scopes ...auth.Scope) string {
	s.t.Helper()
	token, err := s.Signer.Mint(auth.Claims{Subject: "tester", ClientID: "tester", Tenant: tenant,
		Scopes: auth.NewScopes(scopes...), TTL: time.Hour})
	require.NoError(s.t, err)
	return token
}

// Events waits for the first n events that the service publishes, and returns them in the stream's order.
func (s *Service) Events(n int) []stream.Event {
	s.t.Helper()
	if n == 0 {
		return nil
	}
	seen := 0
	return s.EventsUntil(func(stream.Event) bool { seen++; return seen == n })
}

// EventsUntil waits for an event for which last is true, and returns the published events up to it, in the stream's
// order. The test fails if the sequence of a record's events does not grow.
func (s *Service) EventsUntil(last func(stream.Event) bool) []stream.Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Long)
	defer cancel()
	js := s.Deps.Bus.JetStream()
	all, err := js.Stream(ctx, "IDP_EVENTS")
	for err != nil && ctx.Err() == nil { // it is created in the background
		all, err = js.Stream(ctx, "IDP_EVENTS")
	}
	require.NoError(s.t, err)
	consumer, err := all.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	require.NoError(s.t, err)
	messages, err := consumer.Messages()
	require.NoError(s.t, err)
	defer messages.Stop()
	var events []stream.Event
	sequences := map[string]int64{}
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		require.NoError(s.t, err, "%d events came, not the one waited for", len(events))
		e, err := stream.Decode(m.Subject(), m.Data())
		require.NoError(s.t, err)
		if uuid.Validate(e.ID) == nil { // made by an outbox, not by the test
			require.Greater(s.t, e.Sequence, sequences[e.Record()], "the sequence of %s of %s", e.Type, e.Record())
			sequences[e.Record()] = e.Sequence
			s.inCatalogue(e.Type)
		}
		events = append(events, e)
		if last(e) {
			return events
		}
	}
}
