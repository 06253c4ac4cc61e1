package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/idplatform/idplatform/pkg/condition"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

const (
	saveEvery = 200 * time.Millisecond // how often deliveries are saved

	// An idle subscription costs nothing. So only its place is saved after maxPassed events of its tenant, which are
	// read again after a restart, and otherwise as often as it takes to stay among the events that the stream keeps.
	maxPassed      = 5000
	movesWhileKept = 8
	saveAfter      = 200 // deliveries that are saved without waiting
)

// worker delivers to one subscription. Only its own goroutine uses it, except for try.
type worker struct {
	*Engine
	sub      *subscription.Subscription
	revision int64
	secrets  subscription.Secrets
	types    stream.Types
	filter   *condition.Program // nil selects all
	broken   bool               // the filter cannot be compiled, and selects nothing
	log      *slog.Logger

	generation int64
	epoch      string
	resets     int    // of the Log
	read       uint64 // the place up to which all events were read
	saved      uint64 // the place in the store

	queue     *queue
	results   chan tried
	outdated  bool // the next event is about a change of the subscription itself, or the Log was reset
	lastSave  time.Time
	moveAfter time.Duration // since lastSave
	passed    int           // events that were read since then
}

type tried struct {
	item *item
	Result
}

// run delivers until ctx ends, or the subscription stops, changes or is taken by another replica.
func (w *worker) run(ctx context.Context) {
	w.lastSave = time.Now()
	w.moveAfter = w.stream.Keeps() / movesWhileKept
	w.moveAfter = w.moveAfter/2 + rand.N(w.moveAfter/2+1) // those that start together do not save together
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		changed := w.stream.Changed(w.sub.TenantID)
		problem := w.takeIn(ctx)
		w.start(sending)
		if !w.outdated {
			w.wait(ctx, changed, problem)
		}
		if ctx.Err() != nil || w.queue.stopAs != "" || w.outdated {
			cancel()
			w.finish(ctx)
			return
		}
		if w.mustSave() && !w.save(ctx, false) {
			cancel()
			w.await()
			return
		}
		if time.Since(w.lastSave) >= w.moveAfter { // there was nothing to move
			w.lastSave = time.Now()
		}
	}
}

// wait waits until there may be something to do.
func (w *worker) wait(ctx context.Context, changed <-chan struct{}, problem bool) {
	wake := time.NewTimer(w.pause(problem))
	defer wake.Stop()
	select {
	case r := <-w.results:
		w.record(r)
	case <-changed:
	case <-wake.C:
	case <-ctx.Done():
	}
}

// finish waits for the tries that still run, which are cancelled, and saves for the last time.
func (w *worker) finish(ctx context.Context) {
	w.await()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	w.save(ctx, true)
}

func (w *worker) await() {
	for w.queue.sending > 0 {
		w.record(<-w.results)
	}
}

// record records the result of a try.
func (w *worker) record(r tried) {
	if w.queue.record(r.item, r.Result, w.clock.Now()) {
		w.metrics.tries.WithLabelValues(w.sub.Delivery.Type, outcome(r.Delivered)).Inc()
	}
}

func outcome(delivered bool) string {
	if delivered {
		return "delivered"
	}
	return "failed"
}

// pause is how long the worker may sleep.
func (w *worker) pause(problem bool) time.Duration {
	pause := max(w.moveAfter-time.Since(w.lastSave), awayPause)
	if w.queue.unsaved() {
		pause = max(0, saveEvery-time.Since(w.lastSave))
	}
	if problem {
		pause = min(pause, awayPause)
	}
	if next := w.queue.next(); !next.IsZero() { // at least every second, because the clock of a test may jump
		pause = min(pause, max(10*time.Millisecond, min(next.Sub(w.clock.Now()), time.Second)))
	}
	return pause
}

func (w *worker) mustSave() bool {
	since := time.Since(w.lastSave)
	if w.queue.unsaved() && (since >= saveEvery || len(w.queue.ended) >= saveAfter) {
		return true
	}
	return (since >= w.moveAfter || w.passed >= maxPassed) && w.place() > w.saved
}

// takeIn reads events from the stream as long as there is room. It reports whether the stream could not be read.
func (w *worker) takeIn(ctx context.Context) (problem bool) {
	for {
		w.outdated = w.stream.Resets() != w.resets
		limit := w.queue.room(w.clock.Now())
		if w.outdated || limit == 0 {
			return false
		}
		before := w.read
		events, next, err := w.stream.Read(ctx, w.sub.TenantID, before, limit)
		if gone := (*stream.GoneError)(nil); errors.As(err, &gone) {
			w.queue.fail(fmt.Sprintf("events before place %d are no longer kept and were not delivered: "+
				"they are too old, or the tenant has used up its share of the storage", gone.First))
			w.log.WarnContext(ctx, "a subscription lost events that the stream no longer has", "first", gone.First)
			w.read = gone.First - 1
			continue
		}
		if err != nil {
			return ctx.Err() == nil
		}
		w.passed += len(events)
		for _, e := range events {
			if w.outdated = w.isOutdatedBy(e); w.outdated {
				return false
			}
			w.read = e.Place
			w.take(ctx, e)
		}
		if w.read = next; next == before {
			return false
		}
	}
}

// take adds an event of the stream, unless it is on its way already.
func (w *worker) take(ctx context.Context, e *stream.Event) {
	cursor := stream.Cursor(w.epoch, e.Place, e.ID)
	if !w.queue.has(e.ID, e.Place, cursor) && w.selects(ctx, e) {
		w.queue.add(&item{
			Delivery: Delivery{EventID: e.ID, EventType: e.Type, Place: e.Place, Cursor: cursor},
			record:   e.Record(), row: rowID(w.sub.ID, e.ID), event: e,
		}, w.clock.Now())
	}
}

// isOutdatedBy reports whether an event is about a change of the subscription that the worker does not have. The change
// applies to later events in the stream, which another worker delivers.
func (w *worker) isOutdatedBy(e *stream.Event) bool {
	return e.Source == subscription.EventSource && e.Subject == w.sub.ID &&
		e.Sequence >= docstore.FirstSequence(w.revision+1)
}

func (w *worker) selects(ctx context.Context, e *stream.Event) bool {
	if w.broken || !w.types.Match(e.Type) {
		return false
	}
	if w.filter == nil {
		return true
	}
	input, err := e.Input(condition.FromJSON)
	if err != nil {
		return false
	}
	holds, err := w.filter.Eval(ctx, map[string]any{"event": input})
	return err == nil && holds
}

// start begins tries.
func (w *worker) start(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for _, it := range w.queue.start(w.clock.Now()) {
		go func() { w.results <- tried{it, w.try(ctx, it)} }()
	}
}

// try sends one event.
func (w *worker) try(ctx context.Context, it *item) Result {
	leave, err := w.gate.Enter(ctx, w.sub.TenantID, 1)
	if err != nil {
		return Result{Away: true}
	}
	defer leave()
	if !w.group.Alive() { // another replica may deliver already
		return Result{Away: true}
	}
	e := it.event
	if e == nil {
		if e, err = w.stream.Find(ctx, w.sub.TenantID, it.Cursor, it.EventID); err != nil {
			return Result{Away: true}
		}
		if e == nil {
			return Result{Lost: true, Error: "the event is no longer kept"}
		}
	}
	if it.stored && it.Again == 0 && !w.selects(ctx, e) {
		return Result{Skipped: true}
	}
	result := w.sender.Send(ctx, w.sub, w.secrets, Message{
		ID: e.ID, TraceParent: e.TraceParent, Payload: e.JSON,
		Occasion: strconv.FormatInt(w.generation, 10) + "." + strconv.FormatInt(it.Again, 10),
	})
	if ctx.Err() != nil && !result.Delivered {
		return Result{Away: true} // it was cancelled
	}
	return result
}
