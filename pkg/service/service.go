package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/pkg/replicas"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// Deps are what a service is made from. Every member is required unless it says otherwise.
type Deps struct {
	Store    *docstore.Store
	Bus      *bus.Bus
	Stream   *stream.Log // of the Bus
	Keys     *secret.Keyring
	Verifier *auth.Verifier
	Outbound *http.Client  // for all HTTP requests that leave the platform
	Dialer   *net.Dialer   // for connections that leave the platform and are not HTTP
	Pictures *picture.Room // where the services of a process decode pictures
	Clock    clock.Clock
	Log      *slog.Logger
	Metrics  prometheus.Registerer
	Requests *telemetry.HTTPMetrics
	Strict   bool // for tests: see rest.Config

	// Answers bounds what answers hold while their clients read them, and Recheck is how often the credentials of
	// streams are verified again; both are optional: see rest.Config.
	Answers *rest.Budget
	Recheck time.Duration

	// PublicURL is the platform's address for its clients, without a slash at the end, such as https://id.example.com.
	PublicURL string
	// EarlierURLs are former PublicURLs, which tokens may still name; optional.
	EarlierURLs []string
	// AskForEnded is set if the Verifier does not know by itself which tokens have ended. The service then follows the
	// reports of the applications service, and is not ready before it has them.
	AskForEnded bool

	// Alone is set if no other process has the service's store: it is a file, which this process holds. A heartbeat
	// that is found there at the start is that of a process that has ended.
	Alone bool

	// Forwarded says whose X-Forwarded-For is believed; optional.
	Forwarded forwarded.Trust

	// Introspect asks the applications service whether one of the platform's tokens is still valid, while NATS does not
	// report which have ended; nil: it is not asked.
	Introspect func(ctx context.Context, token string) (bool, error)

	// AuditTenant is the tenant that gets the events about denied writes without a valid credential; "": there are
	// none.
	AuditTenant string

	// StuckAfter is how long events may wait while none is published, before the service is not ready; 0 means without
	// limit.
	StuckAfter time.Duration

	// Group is the replicas of the service, which share its work. Start sets it, and runs it if there are Consumers or
	// Readers.
	Group *replicas.Group

	denied func(rest.Denial) // set by Start
}

// Server makes the service's HTTP server.
func (d Deps) Server(title string) *rest.Server {
	return rest.New(rest.Config{
		Title: title, Store: d.Store, Keys: d.Keys, Verifier: d.Verifier, Metrics: d.Requests, Log: d.Log,
		Clock: d.Clock, Denied: d.denied, Strict: d.Strict, Budget: d.Answers, Recheck: d.Recheck,
		Forwarded: d.Forwarded, Origins: []string{d.PublicURL},
	})
}

// TrustPlatform makes the Verifier accept the platform's own tokens, also those with an earlier public URL.
func (d Deps) TrustPlatform(keys auth.KeySource) error {
	return d.Verifier.Trust(auth.Issuer{
		Name: auth.Platform, Aliases: append([]string{d.PublicURL}, d.EarlierURLs...), Keys: keys,
		Scopes: auth.AllScopes,
	})
}

// App is a service that is made and not yet started.
type App struct {
	Handler http.Handler
	Tasks   []Task
	// Answer registers the answers to other services' questions; nil if there are none.
	Answer func(*bus.Bus) error
	// Consumers handle other services' events while the service runs.
	Consumers []stream.ConsumerConfig
	// Readers read the events of all tenants, in one replica at a time. They are made with Deps.Group.
	Readers []*stream.Reader
	// Followers keep state that every replica holds in memory. The service is ready once all have caught up.
	Followers []stream.FollowerConfig
	// Ready returns what the service has still to load before it can serve; nil once there is nothing left. Optional.
	Ready func() error
	// Warnings name what a ready service does not have and works without. They are public: /readyz shows them.
	// Optional.
	Warnings func() []string
	// Close frees what the service itself holds, such as processes, once consumers and tasks have ended; optional.
	Close func()
}

// Task is work that every replica does at an interval.
type Task struct {
	Name  string
	Every time.Duration
	// Do does a part of the work and returns how many items it worked on. It is called again at once until it returns
	// 0.
	Do func(context.Context) (int, error)
	// Once does what there is to do now, for tests of a task whose Do lasts. Optional.
	Once func(context.Context) (int, error)
}

// Spec describes a service: its name, what its store must hold, and how it is made.
type Spec struct {
	Name        string
	Collections []*docstore.Def
	New         func(context.Context, Deps) (App, error)

	// EventMemory is how many bytes of the newest events the service keeps in memory if it is alone in its program; 0
	// means stream.DefaultMemory.
	EventMemory int

	// CacheWeight is the service's share of a program's memory for caches, in relation to other services; 0 counts as
	// 1. See Caches.
	CacheWeight int
}

// Defs are the service's collections and those that every service has.
func (s Spec) Defs() []*docstore.Def {
	return slices.Concat([]*docstore.Def{dataKeys.Def()}, rest.Collections(), replicas.Collections(),
		stream.Collections(), s.Collections)
}

// Open makes the service's store on an engine. keys seal its secrets. If it fails, it closes the engine.
func (s Spec) Open(ctx context.Context, engine docstore.Engine, clk clock.Clock, keys *secret.Keyring) (*docstore.Store,
	error) {
	store, err := docstore.Open(ctx, engine, clk, s.Defs()...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.Name, err), engine.Close())
	}
	if err := store.SealWith(ctx, keys); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.Name, err), store.Close())
	}
	return store, nil
}

// Unit is a running service without its listener.
type Unit struct {
	Name    string
	Handler http.Handler

	deps      Deps
	consumers []*stream.Consumer
	followers []*stream.Follower
	tasks     *tasks
	denied    *denials
	ready     func() error    // nil if there is none
	warnings  func() []string // nil if there is none
	relay     *outbox.Relay
	free      func()
}

// Start makes a service and starts all of it except the listener. From then on it owns the store.
func Start(ctx context.Context, spec Spec, deps Deps) (_ *Unit, err error) {
	denied := newDenials(deps)
	deps.denied = denied.note
	deps.Group = replicas.New(deps.Store, deps.Log, deps.Alone)
	app, err := spec.New(ctx, deps)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	unit := &Unit{Name: spec.Name, Handler: app.Handler, deps: deps, denied: denied,
		ready: app.Ready, warnings: app.Warnings, free: app.Close}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", spec.Name, err), unit.stopConsumers(ctx), unit.release(ctx))
		}
	}()
	if app.Answer != nil {
		if err := app.Answer(deps.Bus); err != nil {
			return nil, fmt.Errorf("answer questions: %w", err)
		}
	}
	if unit.relay, err = outbox.StartRelay(deps.Store, deps.Bus, deps.Log, deps.Metrics); err != nil {
		return nil, err
	}
	for _, c := range app.Consumers {
		consumer, err := deps.Stream.Consume(ctx, c, deps.Store, deps.Group)
		if err != nil {
			return nil, err
		}
		unit.consumers = append(unit.consumers, consumer)
	}
	if deps.AskForEnded {
		app.Followers = append(app.Followers, deps.endedTokens())
	}
	for _, c := range app.Followers {
		follower, err := deps.Stream.Follow(ctx, c)
		if err != nil {
			return nil, err
		}
		unit.followers = append(unit.followers, follower)
	}
	forget := deps.DueTask(DueWork{
		Name: "forget answers", Every: time.Minute, Due: rest.DueAnswers,
		Do: func(ctx context.Context, id string) error { return rest.ForgetAnswer(ctx, deps.Store, id) },
	})
	tell := Task{Name: "tell denied writes", Every: tellDenialsEvery, Do: denied.tell}
	tasks := slices.Concat(app.Tasks, deps.shared(app), []Task{forget, tell, deps.resealTask()})
	unit.tasks = startTasks(ctx, deps.Log, tasks)
	deps.Metrics.MustRegister(unit.readiness())
	return unit, nil
}

// soon is the pause before a task that ended is started again.
const soon = 10 * time.Millisecond

// Lasting is a task that runs until the service stops.
func Lasting(name string, run func(context.Context) error) Task {
	return Task{Name: name, Every: soon, Do: func(ctx context.Context) (int, error) { return 0, run(ctx) }}
}

// Queue is a work.Queue.
type Queue interface {
	Run(context.Context) error
	Once(context.Context) (int, error)
}

// QueueTask carries out the items of a queue until the service stops.
func QueueTask(name string, q Queue) Task {
	task := Lasting(name, q.Run)
	task.Once = q.Once
	return task
}

// shared are the tasks of a service whose replicas share work.
func (d Deps) shared(app App) []Task {
	if len(app.Consumers)+len(app.Readers) == 0 {
		return nil
	}
	tasks := []Task{Lasting("share the work", d.Group.Run)}
	for _, r := range app.Readers {
		tasks = append(tasks, Lasting("read events: "+r.Name, r.Run))
	}
	return tasks
}

var (
	errBehind  = errors.New("a follower has not caught up yet")
	errLoading = errors.New("the service is still loading its state")
)

// Ready returns what keeps the service from serving; nil if nothing does. NATS may be away, because events wait in the
// store, but for no longer than Deps.StuckAfter: other services do not learn about changes meanwhile. Followers need
// NATS until they have caught up.
func (u *Unit) Ready(ctx context.Context) error {
	if err := u.deps.Store.Ping(ctx); err != nil {
		return fmt.Errorf("%s: store: %w", u.Name, err)
	}
	for _, f := range u.followers {
		if err := f.Ready(); err != nil {
			return fmt.Errorf("%s: %w: %w", u.Name, errBehind, err)
		}
	}
	if u.ready != nil {
		if err := u.ready(); err != nil {
			return fmt.Errorf("%s: %w: %w", u.Name, errLoading, err)
		}
	}
	if u.deps.StuckAfter == 0 {
		return nil
	}
	if err := u.relay.Stuck(ctx, u.deps.StuckAfter); err != nil {
		return fmt.Errorf("%s: %w", u.Name, err)
	}
	return nil
}

// Warnings name what the service does not have and works without.
func (u *Unit) Warnings() []string {
	if u.warnings == nil {
		return nil
	}
	return u.warnings()
}

// Stop ends consumers and tasks, publishes the remaining events to NATS, and closes the store. All requests must have
// ended before.
func (u *Unit) Stop(ctx context.Context) error {
	err := u.stopConsumers(ctx)
	u.tasks.stop()
	return errors.Join(err, u.TellDenied(ctx), u.release(ctx), u.deps.Store.Close())
}

// release frees what the service itself holds, and ends the relay once it has published what is left.
func (u *Unit) release(ctx context.Context) error {
	if u.free != nil {
		u.free()
	}
	if u.relay == nil {
		return nil
	}
	return u.relay.Stop(ctx)
}

// TellDenied writes the events about the denied writes that were gathered since the last time. The service does so by
// itself every 10 s.
func (u *Unit) TellDenied(ctx context.Context) error {
	_, err := u.denied.tell(ctx)
	return err
}

func (u *Unit) stopConsumers(ctx context.Context) error {
	errs := make([]error, len(u.consumers))
	for _, f := range u.followers {
		f.Stop()
	}
	var stopping sync.WaitGroup
	for i, c := range u.consumers {
		stopping.Go(func() { errs[i] = c.Stop(ctx) })
	}
	stopping.Wait()
	return errors.Join(errs...)
}
