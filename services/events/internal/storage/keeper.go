package storage

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/replicas"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/services/events/internal/audit"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

const (
	lookEvery = time.Second            // how often the size of a stream is looked at while events come
	tryEvery  = 200 * time.Millisecond // how often a tenant's oldest messages are dropped at most
	roomFor   = 16                     // the part of the share that is made free at a time
	patience  = 2                      // shares; a consumer that is behind holds up the dropping for so long
)

// Config is what a Keeper needs.
type Config struct {
	Share   int64 // bytes of each tenant in each of the streams
	Bus     *bus.Bus
	Store   *docstore.Store
	Stream  *stream.Log
	Group   *replicas.Group
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Keeper keeps the tenants within their shares. One replica does so for each stream. It counts nothing as long as the
// whole stream is smaller than one share.
type Keeper struct {
	Config
	dropped *prometheus.CounterVec
}

// New makes a Keeper.
func New(c Config) *Keeper {
	return &Keeper{c, telemetry.Counters(c.Metrics, prometheus.CounterOpts{
		Name: "idp_storage_dropped_total",
		Help: "Messages that were dropped because their tenant had used up its share of the storage.",
	}, []string{"stream"}, telemetry.Combinations(
		[]string{bus.EventStream, bus.SubscriptionStream, bus.DeadLetterStream})...)}
}

// Events keeps the tenants' events within their shares until ctx ends.
func (k *Keeper) Events(ctx context.Context) error {
	return k.keep(ctx, &watch{Keeper: k, stream: bus.EventStream, drop: k.dropEvents,
		queue: func(bus.Stored) string { return "" }})
}

// Queues does the same for the queues of a tenant's subscriptions over NATS.
func (k *Keeper) Queues(ctx context.Context) error {
	return k.keep(ctx, &watch{Keeper: k, stream: bus.SubscriptionStream, drop: k.dropFromQueues,
		queue: func(m bus.Stored) string { return m.Rest }})
}

// DeadLetters does the same for the tenants' events that a consumer could not handle.
func (k *Keeper) DeadLetters(ctx context.Context) error {
	return k.keep(ctx, &watch{Keeper: k, stream: bus.DeadLetterStream, drop: k.dropDeadLetters,
		queue: func(m bus.Stored) string { return m.Rest }})
}

// keep watches a stream whenever it is large enough and the work is this replica's.
func (k *Keeper) keep(ctx context.Context, w *watch) error {
	ctx = request.System(ctx, request.Platform)
	if k.Stream.Await(ctx) != nil {
		return nil
	}
	for ctx.Err() == nil {
		changed := k.Stream.Changed("")
		_, shared := k.Group.Changed()
		if k.Group.Owns(w.stream) {
			size, _, err := k.Bus.StreamSize(ctx, w.stream)
			if err == nil && size > uint64(k.Share) { //nolint:gosec // a share is not negative
				err = w.run(ctx)
			}
			if err != nil && ctx.Err() == nil {
				k.Log.WarnContext(ctx, "the shares of the storage are counted again", "stream", w.stream, "error", err)
			}
		}
		select {
		case <-changed:
		case <-shared:
		case <-ctx.Done():
		}
		clock.Pause(ctx, lookEvery)
	}
	return nil
}

// watch counts one stream.
type watch struct {
	*Keeper
	stream string
	queue  func(bus.Stored) string

	// drop removes messages of queues up to places, as far as it may. It returns the places up to which it did.
	drop func(ctx context.Context, tenant string, u *usage, upTo map[string]uint64) (map[string]uint64, error)

	ledger *ledger
	over   map[string]time.Time // tenants that use more than their share, and when that was last tried to mend
}

var errSmall = errors.New("the stream is small again")

// run counts until the stream is small again, the work is another replica's, or messages were missed.
func (w *watch) run(ctx context.Context) error {
	w.ledger, w.over = newLedger(w.Share), map[string]time.Time{}
	defer func() { w.ledger = nil }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	messages := make(chan bus.Stored, 512)
	go func() {
		cancel(w.Bus.Sizes(ctx, w.stream, func(m bus.Stored) error {
			select {
			case messages <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case m := <-messages:
			if u := w.ledger.add(m.Tenant, w.queue(m), m.Place, m.Bytes); u.bytes > w.Share {
				w.mend(ctx, m.Tenant)
			}
		case <-look.C:
			if err := w.look(ctx); errors.Is(err, errSmall) {
				return nil
			} else if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look takes what has expired out of the ledger, and tries again what could not be dropped.
func (w *watch) look(ctx context.Context) error {
	size, first, err := w.Bus.StreamSize(ctx, w.stream)
	if err != nil {
		return err
	}
	if size < uint64(w.Share)/2 || !w.Group.Owns(w.stream) { //nolint:gosec // a share is not negative
		return errSmall
	}
	w.ledger.forget(first)
	for tenant := range w.over {
		w.mend(ctx, tenant)
	}
	return nil
}

// mend drops the oldest messages of a tenant that uses more than its share. What it cannot drop now is tried again.
func (w *watch) mend(ctx context.Context, tenant string) {
	u := w.ledger.tenants[tenant]
	if u == nil || u.bytes <= w.Share {
		delete(w.over, tenant)
		return
	}
	if time.Since(w.over[tenant]) < tryEvery || !w.Group.Owns(w.stream) {
		return
	}
	done, err := w.drop(ctx, tenant, u, u.excess(w.target()))
	if w.over[tenant] = time.Now(); err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "a tenant's oldest events are not dropped; trying again", "tenant", tenant, "stream",
			w.stream, "error", err)
	}
	n := int64(0)
	for name, place := range done {
		n += u.forget(name, place+1)
	}
	if n > 0 {
		w.dropped.WithLabelValues(w.stream).Add(float64(n))
		w.Log.WarnContext(ctx, "a tenant has used up its share of the storage: its oldest events are dropped",
			"tenant", tenant, "stream", w.stream, "events", n)
	}
}

// target is how much a tenant keeps when it has used more than its share.
func (k *Keeper) target() int64 { return k.Share - k.Share/roomFor }

// dropEvents drops events that are in the audit log. As long as the tenant uses less than two shares, it also waits for
// the services that are behind.
func (k *Keeper) dropEvents(ctx context.Context, tenant string, u *usage,
	upTo map[string]uint64) (map[string]uint64, error) {
	place := upTo[""]
	written, err := audit.Written(ctx, k.Store, k.Stream)
	if err != nil {
		return nil, err
	}
	place = min(place, written)
	handled, consumer, ok, err := k.Bus.Handled(ctx)
	if err != nil {
		return nil, err
	}
	if ok && handled < place {
		if u.bytes < patience*k.Share {
			place = handled
		} else {
			k.Log.ErrorContext(ctx, "a consumer that is behind loses events that it has not handled: "+
				"their tenant has used up its share of the storage twice", "consumer", consumer, "tenant", tenant)
		}
	}
	if q := u.queues[""]; place < q.segments[0].last {
		return nil, nil // not yet
	}
	return map[string]uint64{"": place}, k.Bus.DropEvents(ctx, tenant, place)
}

// dropFromQueues notes at each subscription what it loses, before it is dropped.
func (k *Keeper) dropFromQueues(ctx context.Context, tenant string, u *usage,
	upTo map[string]uint64) (map[string]uint64, error) {
	there, err := k.Bus.Queues(ctx, tenant)
	if err != nil {
		return nil, err
	}
	for id := range u.queues {
		if there[id] == 0 { // the subscription was deleted
			u.forget(id, math.MaxUint64)
			upTo = u.excess(k.target())
		}
	}
	done := map[string]uint64{}
	ctx = request.System(ctx, tenant)
	for id, place := range upTo {
		unread, err := k.Bus.Unread(ctx, id)
		if err != nil {
			return done, err
		}
		var dropped uint64
		for _, s := range u.queues[id].segments {
			if s.last <= place {
				dropped += uint64(s.messages) //nolint:gosec // not negative
			}
		}
		// What is read is the oldest: of those that stay, none more are unread than there are.
		if stay := there[id] - min(there[id], dropped); unread > stay {
			if err := subscription.NoteDropped(ctx, k.Store, id, min(dropped, unread-stay)); err != nil {
				return done, err
			}
		}
		if err := k.Bus.DropFromQueue(ctx, tenant, id, place); err != nil {
			return done, err
		}
		done[id] = place
	}
	return done, nil
}

// dropDeadLetters first takes out what operators have removed, as if that had been the oldest.
func (k *Keeper) dropDeadLetters(ctx context.Context, tenant string, u *usage,
	_ map[string]uint64) (map[string]uint64, error) {
	there, err := k.Bus.ParkedEvents(ctx, tenant)
	if err != nil {
		return nil, err
	}
	for name := range u.queues {
		u.shorten(name, there[name])
	}
	if u.bytes <= k.Share {
		return nil, nil
	}
	done := map[string]uint64{}
	for name, place := range u.excess(k.target()) {
		if err := k.Bus.DropDeadLetters(ctx, tenant, name, place); err != nil {
			return done, err
		}
		done[name] = place
	}
	return done, nil
}
