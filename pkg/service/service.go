package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// Deps are what a service is made of. Every member is required but where it says otherwise.
type Deps struct {
	Store    *docstore.Store
	Bus      *bus.Bus
	Keys     *secret.Keyring
	Verifier *auth.Verifier
	Outbound *http.Client // for every request that leaves the platform
	Dialer   *net.Dialer  // for connections that leave the platform and do not speak HTTP
	Clock    clock.Clock
	Log      *slog.Logger
	Metrics  prometheus.Registerer
	Requests *telemetry.HTTPMetrics
	Strict   bool // for tests: see rest.Config

	// PublicURL is the platform's address for its clients, without a slash at the end: https://id.example.com.
	PublicURL string
	// EarlierURLs are those that it had before, where tokens of then may still be about; optional.
	EarlierURLs []string
	// AskForEnded is set where the Verifier does not know by itself which tokens have ended: the service then follows
	// what the applications service tells of it, and is not ready before it knows.
	AskForEnded bool

	// StuckAfter is how long events may wait, none going out, before the service is not ready; 0 means for ever.
	StuckAfter time.Duration
}

// Server makes the service's HTTP side.
func (d Deps) Server(title string) *rest.Server {
	return rest.New(rest.Config{
		Title: title, Store: d.Store, Keys: d.Keys, Verifier: d.Verifier, Metrics: d.Requests, Log: d.Log, Strict: d.Strict,
	})
}

// TrustPlatform makes the Verifier accept the platform's own tokens, whatever public URL it had when it gave them.
func (d Deps) TrustPlatform(keys auth.KeySource) error {
	return d.Verifier.Trust(auth.Issuer{
		Name: auth.Platform, Aliases: append([]string{d.PublicURL}, d.EarlierURLs...), Keys: keys, Scopes: auth.AllScopes,
	})
}

// App is a service that is made and not yet started.
type App struct {
	Handler http.Handler
	Tasks   []Task
	// Answer registers the answers to other services' questions; nil if there are none.
	Answer func(*bus.Bus) error
	// Consumers handle other services' events while the service runs.
	Consumers []bus.ConsumerConfig
	// Followers keep state that every replica holds in memory; the service is ready once all have caught up.
	Followers []bus.FollowerConfig
}

// Task is work done now and then, by every replica.
type Task struct {
	Name  string
	Every time.Duration
	// Do works off some of what there is and tells how much it was; more is asked for at once while it is not 0.
	Do func(context.Context) (int, error)
}

// Spec is a service's face: what it is called, what its store must hold, and how it is made.
type Spec struct {
	Name        string
	Collections []*docstore.Def
	New         func(context.Context, Deps) (App, error)

	// CacheWeight is what the service gets of a program's memory for caches beside others; 0 counts as 1. See Caches.
	CacheWeight int
}

// Defs are the service's collections and those that every service has.
func (s Spec) Defs() []*docstore.Def {
	return append(append([]*docstore.Def{dataKeys.Def()}, rest.Collections()...), s.Collections...)
}

// Open makes an engine the service's store, whose secrets are sealed with keys. It closes the engine where that fails.
func (s Spec) Open(ctx context.Context, engine docstore.Engine, clk clock.Clock, keys *secret.Keyring) (*docstore.Store, error) {
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
	consumers []*bus.Consumer
	followers []*bus.Follower
	tasks     *tasks
	relay     *outbox.Relay
}

// Start makes a service and starts all of it but the listener. It owns the store from then on.
func Start(ctx context.Context, spec Spec, deps Deps) (*Unit, error) {
	app, err := spec.New(ctx, deps)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	if app.Answer != nil {
		if err := app.Answer(deps.Bus); err != nil {
			return nil, fmt.Errorf("%s: answer questions: %w", spec.Name, err)
		}
	}
	relay, err := outbox.StartRelay(deps.Store, deps.Bus, deps.Log, deps.Metrics)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	unit := &Unit{Name: spec.Name, Handler: app.Handler, deps: deps, relay: relay}
	for _, c := range app.Consumers {
		consumer, err := deps.Bus.Consume(ctx, c)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", spec.Name, err), unit.stopConsumers(ctx), relay.Stop(ctx))
		}
		unit.consumers = append(unit.consumers, consumer)
	}
	if deps.AskForEnded {
		app.Followers = append(app.Followers, EndedTokens(deps.Verifier, deps.askForEnded))
	}
	for _, c := range app.Followers {
		follower, err := deps.Bus.Follow(ctx, c)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", spec.Name, err), unit.stopConsumers(ctx), relay.Stop(ctx))
		}
		unit.followers = append(unit.followers, follower)
	}
	forget := deps.DueTask(DueWork{
		Name: "forget answers", Every: time.Minute, Due: rest.DueAnswers,
		Do: func(ctx context.Context, id string) error { return rest.ForgetAnswer(ctx, deps.Store, id) },
	})
	unit.tasks = startTasks(ctx, deps.Log, append(app.Tasks, forget, deps.resealTask()))
	return unit, nil
}

var errBehind = errors.New("what others have told is not known yet")

// Ready reports what keeps the service from serving; nil if nothing does. NATS may be away for a while, since events
// wait in the store; for good it may not: what others do at an event stands still meanwhile. Followers need it until
// they have caught up.
func (u *Unit) Ready(ctx context.Context) error {
	if err := u.deps.Store.Ping(ctx); err != nil {
		return fmt.Errorf("%s: store: %w", u.Name, err)
	}
	for _, f := range u.followers {
		if err := f.Ready(); err != nil {
			return fmt.Errorf("%s: %w: %w", u.Name, errBehind, err)
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

// Stop takes no more events, ends tasks, hands NATS the events that it does not have yet, and closes the store. Requests must have
// ended before.
func (u *Unit) Stop(ctx context.Context) error {
	err := u.stopConsumers(ctx)
	u.tasks.stop()
	return errors.Join(err, u.relay.Stop(ctx), u.deps.Store.Close())
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
