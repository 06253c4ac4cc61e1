package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/condition"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

const (
	readAtOnce = 128     // events that are read from the stream at a time
	maxOpen    = 512     // the most events that are neither delivered nor stored as rows
	maxHeld    = 1 << 20 // the bytes of such events in memory from which on no more are read
	maxRows    = 1000    // the most deliveries that wait; then reading stops until some have ended
	maxAtOnce  = 16      // the most tries of a subscription at the same time
	slowAtOnce = 2       // the same if the receiver is slow
	slow       = time.Second

	// stalled is the number of failures in a row after which no new events are tried: the receiver is down, so they
	// wait in the stream.
	stalled = 10

	// A stalled subscription tries another event from time to time: its failures may be those of a few records.
	firstProbe = 5 * time.Second
	lastProbe  = 5 * time.Minute

	saveEvery = 200 * time.Millisecond // how often deliveries are saved

	// An idle subscription costs nothing. So only its place is saved after maxPassed events of its tenant, which are
	// read again after a restart, and otherwise as often as it takes to stay among the events that the stream keeps.
	maxPassed      = 5000
	movesWhileKept = 8
	saveAfter      = 200 // deliveries that are saved without waiting
	awayPause      = time.Second
)

// item is an event on its way to the receiver.
type item struct {
	Delivery
	record string
	row    string        // the id of its row, stored or not
	event  *stream.Event // nil if it must be read from the stream again
	due    clock.Time    // of the next try, if it waits for one
	stored bool          // it has a row
	dirty  bool          // the row is missing or out of date
}

// lane is the events of one record, in their order. Only the first is tried.
type lane struct {
	record string
	items  []*item
	queued bool // in ready, or being tried
}

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

	lanes    map[string]*lane
	open     map[string]*item // by the event's id: neither delivered nor stored
	waiting  map[string]*item // stored
	retries  map[string]*item // failed, and waiting for the next try
	ready    []*lane
	sending  int
	failures int           // in a row
	probe    clock.Time    // when a stalled subscription tries another event
	pace     time.Duration // how long tries take, as a moving average
	results  chan tried

	ended     []Delivery      // not yet saved
	blocked   bool            // events came behind one that waits for another try; they need rows
	deleted   map[string]bool // ids of rows
	delivered int64
	failed    int64
	lastError string
	stopAs    string // the state in which the subscription stops; "" while it goes on
	outdated  bool   // the next event is about a change of the subscription itself, or the Log was reset
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
		if ctx.Err() != nil || w.stopAs != "" || w.outdated {
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
		w.recordTry(r)
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
	for w.sending > 0 {
		w.recordTry(<-w.results)
	}
}

// pause is how long the worker may sleep.
func (w *worker) pause(problem bool) time.Duration {
	pause := max(w.moveAfter-time.Since(w.lastSave), awayPause)
	if w.unsaved() {
		pause = max(0, saveEvery-time.Since(w.lastSave))
	}
	if problem {
		pause = min(pause, awayPause)
	}
	next := w.probe
	if w.failures < stalled {
		next = clock.Time{}
	}
	for _, it := range w.retries {
		if next.IsZero() || it.due.Before(next) {
			next = it.due
		}
	}
	if !next.IsZero() { // at least every second, because the clock of a test may jump
		pause = min(pause, max(10*time.Millisecond, min(next.Sub(w.clock.Now()), time.Second)))
	}
	return pause
}

func (w *worker) unsaved() bool {
	return w.delivered+w.failed > 0 || len(w.ended)+len(w.deleted) > 0 || w.blocked
}

func (w *worker) mustSave() bool {
	since := time.Since(w.lastSave)
	if w.unsaved() && (since >= saveEvery || len(w.ended) >= saveAfter) {
		return true
	}
	return (since >= w.moveAfter || w.passed >= maxPassed) && w.place() > w.saved
}

// takeIn reads events from the stream as long as there is room. It reports whether the stream could not be read.
func (w *worker) takeIn(ctx context.Context) (problem bool) {
	for {
		w.outdated = w.stream.Resets() != w.resets
		limit := w.room()
		if w.outdated || limit == 0 {
			return false
		}
		before := w.read
		events, next, err := w.stream.Read(ctx, w.sub.TenantID, before, limit)
		if gone := (*stream.GoneError)(nil); errors.As(err, &gone) {
			w.lastError = fmt.Sprintf("events before place %d are no longer kept and were not delivered: "+
				"they are too old, or the tenant has used up its share of the storage", gone.First)
			w.log.WarnContext(ctx, "a subscription lost events that the stream no longer has", "first", gone.First)
			w.read, w.failed = gone.First-1, w.failed+1
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

// take adds an event of the stream, unless it is on its way already: the stream has it again if it had lost it.
func (w *worker) take(ctx context.Context, e *stream.Event) {
	cursor := stream.Cursor(w.epoch, e.Place, e.ID)
	if it := w.waiting[e.ID]; it != nil {
		if it.Cursor != cursor {
			it.Place, it.Cursor, it.dirty, w.blocked = e.Place, cursor, true, true
		}
		return
	}
	if w.open[e.ID] == nil && w.selects(ctx, e) {
		w.add(&item{
			Delivery: Delivery{EventID: e.ID, EventType: e.Type, Place: e.Place, Cursor: cursor},
			record:   e.Record(), row: rowID(w.sub.ID, e.ID), event: e,
		})
	}
}

// isOutdatedBy reports whether an event is about a change of the subscription that the worker does not have. The change
// applies to later events in the stream, which another worker delivers.
func (w *worker) isOutdatedBy(e *stream.Event) bool {
	return e.Source == subscription.EventSource && e.Subject == w.sub.ID &&
		e.Sequence >= docstore.FirstSequence(w.revision+1)
}

// room is how many events may be read now.
func (w *worker) room() int {
	switch {
	case len(w.open) >= maxOpen || len(w.waiting) >= maxRows || w.held() >= maxHeld:
		return 0
	case w.failures < stalled:
		return readAtOnce
	case len(w.open) > 0 || w.probe.After(w.clock.Now()):
		return 0
	}
	return 1
}

// held is the size of the events in memory that are neither delivered nor stored as rows.
func (w *worker) held() (bytes int) {
	for _, it := range w.open {
		if it.event != nil {
			bytes += len(it.event.JSON)
		}
	}
	return bytes
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

func (w *worker) add(it *item) {
	l := w.lanes[it.record]
	if l == nil {
		l = &lane{record: it.record}
		w.lanes[it.record] = l
	}
	l.items = append(l.items, it)
	if it.stored {
		w.waiting[it.EventID] = it
	} else {
		w.open[it.EventID] = it
		w.blocked = w.blocked || l.blocked()
	}
	if len(l.items) == 1 {
		w.enqueue(l)
	}
}

// blocked reports whether the lane's first event waits for another try.
func (l *lane) blocked() bool { return !l.queued && l.items[0].Tries > 0 }

// enqueue schedules the try of a lane's first event: now, or when it is due.
func (w *worker) enqueue(l *lane) {
	if l.queued {
		return
	}
	first := l.items[0]
	if first.Status == Retrying && first.due.After(w.clock.Now()) {
		w.retries[first.EventID] = first
		return
	}
	delete(w.retries, first.EventID)
	l.queued = true
	w.ready = append(w.ready, l)
}

// start begins tries.
func (w *worker) start(ctx context.Context) {
	for _, it := range w.retries {
		if !it.due.After(w.clock.Now()) {
			w.enqueue(w.lanes[it.record])
		}
	}
	limit := maxAtOnce
	if w.pace > slow || w.failures >= stalled {
		limit = slowAtOnce
	}
	for len(w.ready) > 0 && w.sending < limit && ctx.Err() == nil {
		it := w.ready[0].items[0]
		w.ready = w.ready[1:]
		w.sending++
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
