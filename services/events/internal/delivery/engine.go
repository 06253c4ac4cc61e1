// Package delivery sends events to subscriptions' receivers. The stream is the queue: a subscription has a place in it,
// and only events that failed, and later events of the same records, have rows of their own: see deploy/adr/0032.
package delivery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/replicas"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

const (
	places      = 1024        // the most tries of all subscriptions at the same time; tenants take turns
	ofTenant    = places / 8  // of one tenant: a receiver may take 15 s for each
	waitForWork = time.Second // how often workers that ended or could not start are tried again
)

// Config is what an Engine needs.
type Config struct {
	Store    *docstore.Store
	Stream   *stream.Log
	Group    *replicas.Group
	Sender   *Sender
	Clock    clock.Clock
	Log      *slog.Logger
	Metrics  prometheus.Registerer
	Schedule []time.Duration // the pauses before the second and later tries, each varied by a tenth
}

// Engine runs a worker for each active subscription that belongs to this replica.
type Engine struct {
	store    *docstore.Store
	stream   *stream.Log
	group    *replicas.Group
	sender   *Sender
	clock    clock.Clock
	logger   *slog.Logger
	schedule []time.Duration
	gate     *fair.Semaphore
	metrics  metrics

	workers map[docstore.Ref]*running // only Run uses it
	later   map[docstore.Ref]bool     // subscriptions whose worker could not start yet or has ended

	ended chan docstore.Ref // subscriptions whose worker has ended
}

type running struct {
	revision int64 // of the subscription that the worker has loaded
	cancel   context.CancelFunc
	done     chan struct{}
}

// change is an event about a subscription.
type change struct {
	docstore.Ref
	sequence int64
}

func (r *running) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

type metrics struct {
	tries   *prometheus.CounterVec
	workers prometheus.Gauge
}

// New makes an engine.
func New(c Config) *Engine {
	gate := fair.NewSemaphore("deliveries", places, fair.Any)
	gate.Share(ofTenant)
	return &Engine{
		store: c.Store, stream: c.Stream, group: c.Group, sender: c.Sender, clock: c.Clock, logger: c.Log,
		schedule: c.Schedule, gate: gate,
		workers: map[docstore.Ref]*running{}, later: map[docstore.Ref]bool{}, ended: make(chan docstore.Ref),
		metrics: metrics{
			tries: telemetry.Counters(c.Metrics, prometheus.CounterOpts{
				Name: "idp_delivery_tries_total", Help: "Attempts to deliver an event to a subscription.",
			}, []string{"type", "outcome"}, telemetry.Combinations(
				[]string{subscription.Webhook, subscription.NATS}, []string{outcome(true), outcome(false)})...),
			workers: telemetry.Register(c.Metrics, prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "idp_delivery_subscriptions", Help: "Active subscriptions that this replica delivers to.",
			})),
		},
	}
}

// Run delivers until ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	if e.stream.Await(ctx) != nil {
		return nil
	}
	from, _, err := e.stream.End() // before the subscriptions, so that no change is missed
	if err != nil {
		return err
	}
	changes := make(chan change, 256)
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also where Run fails: its caller calls it again
	following.Go(func() { e.follow(ctx, from, changes) })
	defer e.stopAll()
	again, known := true, 0
	tidying := time.NewTicker(waitForWork) // however often subscriptions change
	defer tidying.Stop()
	for {
		times, shared := e.group.Changed()
		if again || times != known {
			if err := e.reconcile(ctx); err != nil {
				return err
			}
			again, known = false, times
		}
		select {
		case c := <-changes:
			if again = c == everything; !again && !e.hasLoaded(c) {
				e.restart(ctx, c.Ref)
			}
		case ref := <-e.ended:
			if r := e.workers[ref]; r != nil && r.ended() {
				delete(e.workers, ref)
				e.later[ref] = true
			}
		case <-shared:
		case <-tidying.C:
			e.tidy(ctx)
		case <-ctx.Done():
			return nil
		}
		e.metrics.workers.Set(float64(len(e.workers)))
	}
}

// everything stands for all subscriptions, if follow has missed events.
var everything change

// follow reports the subscriptions that have changed, from their events.
func (e *Engine) follow(ctx context.Context, from uint64, changes chan<- change) {
	report := func(c change) {
		select {
		case changes <- c:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		// Watch ends with InvalidState where events may be missing.
		err := e.stream.Watch(request.System(ctx, ""), from, stream.Types{"event_subscription.*"},
			func(_ string, events []*stream.Event) error {
				for _, event := range events {
					from = event.Place
					report(change{docstore.Ref{Tenant: event.Tenant, ID: event.Subject}, event.Sequence})
				}
				return nil
			})
		if apperr.KindOf(err) == apperr.InvalidState { // the stream no longer has what follows
			if from, _, err = e.stream.End(); err == nil {
				report(everything)
			}
		}
		clock.Pause(ctx, 50*time.Millisecond)
	}
}

// tidy starts workers that could not start before, and stops all while the other replicas may take this one for dead.
func (e *Engine) tidy(ctx context.Context) {
	if !e.group.Alive() {
		e.stopAll()
		return
	}
	for ref := range e.later {
		delete(e.later, ref)
		e.restart(ctx, ref)
	}
}

func (e *Engine) owns(ref docstore.Ref) bool { return e.group.Owns(ref.Tenant + "/" + ref.ID) }

// reconcile starts the workers that are missing, and stops those that belong to other replicas now.
func (e *Engine) reconcile(ctx context.Context) error {
	for ref := range e.workers {
		if !e.owns(ref) {
			e.stop(ref)
		}
	}
	return subscription.EachActive(ctx, e.store, func(ctx context.Context, s *subscription.Subscription) error {
		ref := docstore.Ref{Tenant: s.TenantID, ID: s.ID}
		if e.workers[ref] == nil {
			e.start(ctx, ref)
		}
		return nil
	})
}

// hasLoaded reports whether a worker began with the change already. It goes on: a restart cancels its tries, and what
// the receiver has got would be sent again.
func (e *Engine) hasLoaded(c change) bool {
	r := e.workers[c.Ref]
	return r != nil && c.sequence < docstore.FirstSequence(r.revision+1)
}

// restart stops a subscription's worker and starts another with the stored state.
func (e *Engine) restart(ctx context.Context, ref docstore.Ref) {
	e.stop(ref)
	e.start(request.System(ctx, ref.Tenant), ref)
}

func (e *Engine) stop(ref docstore.Ref) {
	if r := e.workers[ref]; r != nil {
		r.cancel()
		<-r.done
		delete(e.workers, ref)
	}
}

func (e *Engine) stopAll() {
	for _, r := range e.workers {
		r.cancel()
	}
	for ref := range e.workers {
		e.stop(ref)
	}
}

var errTaken = errors.New("another replica still delivers")

// start begins to deliver to a subscription, if it is active and belongs to this replica. If it will only belong to it
// later, the group tells of the change.
func (e *Engine) start(ctx context.Context, ref docstore.Ref) {
	if !e.owns(ref) {
		return
	}
	w, err := e.newWorker(ctx, ref)
	switch {
	case apperr.IsNotFound(err):
		e.sender.Forget(ctx, ref)
		return
	case err == nil && w == nil:
		return
	case err != nil:
		if !errors.Is(err, errTaken) && ctx.Err() == nil {
			e.logger.WarnContext(ctx, "delivery to a subscription cannot start; trying again", "subscription", ref.ID,
				"error", err)
		}
		e.later[ref] = true
		return
	}
	working, cancel := context.WithCancel(ctx)
	r := &running{w.revision, cancel, make(chan struct{})}
	e.workers[ref] = r
	go func() {
		w.run(working)
		cancel()
		close(r.done)
		select {
		case e.ended <- ref:
		case <-ctx.Done():
		}
	}()
}

// newWorker makes this replica the owner of a subscription and loads its state; nil if it is not active.
func (e *Engine) newWorker(ctx context.Context, ref docstore.Ref) (*worker, error) {
	resets := e.stream.Resets()
	_, epoch, err := e.stream.End()
	if err != nil {
		return nil, err
	}
	var (
		sub      *subscription.Subscription
		revision int64
		reached  time.Time
	)
	p, err := docstore.Write(ctx, e.store, func(tx *docstore.Tx) (*subscription.Progress, error) {
		var err error
		if sub, revision, err = subscription.Load(ctx, tx, ref.ID); err != nil || sub.State != subscription.Active {
			return nil, err
		}
		p, err := subscription.ProgressOf.Load(ctx, tx, ref.ID)
		if err != nil {
			return nil, err
		}
		if !e.group.MayTake(p.Owner) {
			return nil, errTaken
		}
		p.Owner, reached = e.group.ID, p.TimeModified.Std()
		_, err = subscription.ProgressOf.Replace(ctx, tx, p)
		return p, err
	})
	if err != nil || p == nil {
		return nil, err
	}
	w := &worker{
		Engine: e, sub: sub, revision: revision, types: sub.EventTypes,
		generation: p.Generation, epoch: epoch, resets: resets, saved: p.Place,
		queue: newQueue(e.schedule), results: make(chan tried, maxAtOnce),
		log: e.logger.With("tenant", ref.Tenant, "subscription", ref.ID),
	}
	w.read, err = e.stream.Back(ctx, stream.Mark{Epoch: p.Epoch, Place: p.Place, Event: p.Event, At: reached})
	if err != nil {
		return nil, err
	}
	if sub.Filter != "" {
		w.filter, err = subscription.Filters.Cached(sub.Filter)
		w.broken = err != nil
	}
	if sub.Delivery.Type == subscription.NATS {
		if err := e.sender.Declare(ctx, sub); err != nil {
			return nil, err
		}
	}
	if w.secrets, err = subscription.Reveal(ctx, e.store, sub); err != nil {
		return nil, err
	}
	return w, w.load(ctx)
}

// load adds the stored rows to the worker's items.
func (w *worker) load(ctx context.Context) error {
	order := []docstore.Order{{Index: byPlace}}
	page, err := rows.Page(ctx, w.store, docstore.Query{Filter: of(w.sub.ID), Sort: order, Limit: 2 * maxRows})
	if err != nil {
		return err
	}
	for _, doc := range page.Docs {
		r, err := doc.Value()
		if err != nil {
			return err
		}
		it := &item{Delivery: r.Delivery, record: r.Record, row: r.ID, due: r.NextTry, stored: true}
		if it.Status == Failed { // the subscription was resumed: the event gets all tries again
			it.Status, it.Tries, it.due = Retrying, 0, w.clock.Now()
		}
		w.queue.add(it, w.clock.Now())
	}
	return nil
}
