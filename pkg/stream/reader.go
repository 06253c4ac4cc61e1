package stream

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/replicas"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	eventsAtOnce = 500 // in one Batch
	// gather is how long a Reader waits for other events after one; gatherInBackground if it has time.
	gather             = 5 * time.Millisecond
	gatherInBackground = 250 * time.Millisecond
	waitToTake         = time.Second
	saveEvery          = time.Second
	saveAtRest         = time.Minute // if only other events than the Reader's have come

	// inTime is how long the place may take to be saved: less than it takes until another replica may read.
	inTime = 4 * time.Second

	// pinnedFor is part of the durable consumers that earlier versions made, which cannot be changed.
	pinnedFor = 15 * time.Second
)

// FirstID is smaller than all ids that Batch.ID returns, and so large that they all have the same number of digits: the
// store compares them as texts.
const FirstID = 1 << 40

// readerPlace is how far a Reader has come, and which replica reads.
type readerPlace struct {
	docstore.Meta        // the id is the Reader's name
	Owner         string `json:"owner"`
	Epoch         string `json:"epoch"` // of the stream
	Place         uint64 `json:"place"`
	Event         string `json:"event,omitempty"` // the id of the event at Place, if it is known
	Base          int64  `json:"base"`            // what is added to the places of this stream to make ids
}

// Places is a service's collection of the places of its Readers.
type Places struct {
	docs *docstore.Collection[readerPlace]
}

// DefinePlaces defines the collection. noun names a place in errors.
func DefinePlaces(name, noun string) Places {
	return Places{docstore.Define(docstore.Schema[readerPlace]{Name: name, Noun: noun, NoIfMatch: true})}
}

// Def is what the store must have.
func (p Places) Def() *docstore.Def { return p.docs.Def() }

// Of returns the place up to which a Reader has read; 0 if that is not known.
func (p Places) Of(ctx context.Context, store *docstore.Store, l *Log, name string) (uint64, error) {
	at, err := p.find(request.System(ctx, request.Platform), store, name)
	if err != nil || at == nil || !l.IsEpoch(at.Epoch) {
		return 0, err
	}
	return at.Place, nil
}

// LastID returns Batch.ID of the place up to which a Reader has read; "0" if it has read nothing.
func (p Places) LastID(ctx context.Context, store *docstore.Store, name string) (string, error) {
	at, err := p.find(request.System(ctx, request.Platform), store, name)
	if err != nil || at == nil {
		return "0", err
	}
	return idOf(at.Base, at.Place), nil
}

// find returns nil if there is no place yet.
func (p Places) find(ctx context.Context, store *docstore.Store, name string) (*readerPlace, error) {
	doc, err := p.docs.Find(ctx, store, name)
	if err != nil {
		return nil, apperr.Ignore(err, apperr.NotFound)
	}
	return doc.Value()
}

// Batch is some events of all tenants, in their order, all that there are up to the place UpTo.
type Batch struct {
	Events []*Event
	Epoch  string // of the stream
	UpTo   uint64

	base int64
}

// ID returns a decimal number for the event at a place. It is greater than those of all events that were read before,
// also in another stream, and always has as many digits.
func (b *Batch) ID(place uint64) string {
	return idOf(b.base, place)
}

func idOf(base int64, place uint64) string {
	return strconv.FormatInt(base+int64(place), 10) //nolint:gosec // a place is far below 2^53
}

// ReaderConfig says what a Reader does with the events. It has either Store or Handle.
type ReaderConfig struct {
	Name   string // unique in the service
	Places Places
	Log    *Log
	DB     *docstore.Store
	Group  *replicas.Group
	// Behind gets the number of events that are still to be read, 0 in other replicas; nil: idp_consumer_lag does.
	Behind prometheus.Gauge

	// Background makes it read more events at a time, and rest as long as it works.
	Background bool

	// Store stores what is made of the events, in the transaction that moves the place: once for each event.
	Store func(ctx context.Context, tx *docstore.Tx, b *Batch) error

	// Handle does its work before the place moves, which is saved about once a second. So it gets the same events again
	// after a failure, after the death of a replica, and from another replica that has taken over meanwhile.
	Handle func(ctx context.Context, b *Batch) error

	// Consumer is the name under which JetStream knows the place: see bus.Handled. "" if the platform need not know it.
	Consumer string
}

// Reader reads the events of all tenants and keeps its place in the store. One replica reads at a time.
type Reader struct {
	ReaderConfig
	types    Types     // of the events that it reads; none: all
	consumer *Consumer // that handles the events; nil: Store or Handle does

	holds    bool        // this replica may be the owner in the store
	resets   int         // of the Log, when this replica took the work
	place    uint64      // how far it has read
	last     mark        // the last event that it has read
	dispatch *dispatcher // of the consumer, since this replica last began to read
	saved    readerPlace // as it is in the store, while this replica reads
	savedAt  time.Time
	unsaved  bool // events were read after the place that is saved
}

// mark is a place and the id of the event there, which shows later whether it is still the same one.
type mark struct {
	place uint64
	event string
}

// NewReader makes a Reader; Run reads.
func NewReader(c ReaderConfig) *Reader {
	if c.Behind == nil {
		c.Behind = c.Log.metrics.lag.WithLabelValues(c.Name)
	}
	if c.Handle != nil {
		c.Log.metrics.begin(c.Name)
	}
	return &Reader{ReaderConfig: c}
}

var errTaken = errors.New("another replica reads now")

// Run reads whenever it is this replica's work, until ctx ends. After an error of Store, Handle or the store, and when
// the stream no longer has events (*GoneError), it begins again with the place that is saved, after longer and longer
// pauses.
func (r *Reader) Run(ctx context.Context) error {
	ctx = request.System(ctx, request.Platform)
	if r.Log.Await(ctx) != nil {
		return nil
	}
	t := newTroubles(r.Log.log, r.Name)
	for ctx.Err() == nil {
		_, shared := r.Group.Changed()
		if r.Group.Owns(r.Name) {
			began := r.place
			err := r.take(ctx)
			if err == nil {
				err = r.read(ctx)
			}
			if ctx.Err() == nil && err != nil && !errors.Is(err, errTaken) {
				t.meet(ctx, err, r.place > began) // the metric stays as it is
				continue
			}
		}
		r.release(ctx) // again, if it has failed
		r.Behind.Set(0)
		r.wait(ctx, shared)
	}
	r.Behind.Set(0)
	return nil
}

// take makes this replica the one that reads, and finds where to begin.
func (r *Reader) take(ctx context.Context) error {
	resets := r.Log.Resets()
	_, epoch, err := r.Log.End()
	if err != nil {
		return err
	}
	oldest, err := r.Log.Oldest(ctx, "")
	if err != nil {
		return err
	}
	known, back, err := r.lost(ctx)
	if err != nil {
		return err
	}
	first := oldest - 1
	if r.Consumer != "" {
		announced, pinned, err := r.Log.announced(ctx, r.Consumer, r.types)
		if err != nil {
			return err
		}
		if pinned && !known {
			return errTaken // by a replica of an earlier version
		}
		first = max(first, announced)
	}
	inTime, cancel := context.WithTimeout(ctx, inTime)
	defer cancel()
	r.holds = true // also if the result of the transaction stays unknown
	saved, err := docstore.Write(inTime, r.DB, func(tx *docstore.Tx) (readerPlace, error) {
		at, err := r.Places.docs.Load(ctx, tx, r.Name)
		if apperr.IsNotFound(err) {
			at = &readerPlace{
				Meta: docstore.Meta{ID: r.Name}, Owner: r.Group.ID, Epoch: epoch, Place: first, Base: FirstID,
			}
			_, err = r.Places.docs.Insert(ctx, tx, at)
			return *at, err
		}
		if err != nil {
			return readerPlace{}, err
		}
		if !r.Group.MayTake(at.Owner) {
			return readerPlace{}, errTaken
		}
		if back != nil && back.Version != at.Version {
			return readerPlace{}, errTaken // another replica has read meanwhile
		}
		if back != nil {
			at.moveBack(epoch, back.Place)
		}
		if at.Place < oldest-1 {
			at.Place, at.Event = oldest-1, ""
		}
		at.Owner = r.Group.ID
		_, err = r.Places.docs.Replace(ctx, tx, at)
		return *at, err
	})
	if err != nil {
		return err
	}
	r.resets, r.saved, r.savedAt, r.place = resets, saved, time.Now(), saved.Place
	r.last, r.dispatch, r.unsaved = mark{}, nil, false
	return nil
}

// moveBack sets the place back. The ids from there on are greater than those before.
func (p *readerPlace) moveBack(epoch string, to uint64) {
	last := p.Base + int64(p.Place)      //nolint:gosec // a place is far below 2^53
	p.Base = max(p.Base, last-int64(to)) //nolint:gosec // a place is far below 2^53
	p.Epoch, p.Place, p.Event = epoch, to, ""
}

// lost returns the place from which the stream has to be read again, because it lost its newest events, in a power cut,
// and has given their places to others; nil if it has lost none. known tells whether there is a place.
func (r *Reader) lost(ctx context.Context) (known bool, back *readerPlace, err error) {
	at, err := r.Places.find(ctx, r.DB, r.Name)
	if err != nil || at == nil {
		return false, nil, err
	}
	before, err := r.Log.Back(ctx, Mark{
		Epoch: at.Epoch, Place: at.Place, Event: at.Event, At: at.TimeModified.Std(),
	})
	if err != nil || before == at.Place {
		return true, nil, err
	}
	at.Place = before
	return true, at, nil
}

// read reads until ctx ends or the work is another replica's.
func (r *Reader) read(ctx context.Context) error {
	defer r.release(ctx)
	if r.Consumer != "" {
		r.Log.announce(ctx, r.Consumer, r.types, r.place) // who read before may have saved it and not told it
	}
	if r.consumer != nil {
		var end func()
		r.dispatch, end = r.consumer.begin(ctx)
		defer end()
	}
	for r.Group.Owns(r.Name) {
		if r.Log.Resets() != r.resets {
			return errTaken // take finds the place again
		}
		wake, isFull := r.Log.Changed(""), r.dispatch != nil && r.dispatch.full()
		if isFull {
			wake = r.dispatch.freed
		} else if err := r.readOnce(ctx); err != nil {
			return err
		}
		if err := r.saveIfDue(ctx); err != nil {
			return err
		}
		// A read is bounded in bytes, too: fewer events than eventsAtOnce may not be all.
		if end, known := r.tellBehind(r.place); isFull || !known || r.place >= end {
			r.await(ctx, wake)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errTaken
}

// readOnce reads some events and works on them.
func (r *Reader) readOnce(ctx context.Context) error {
	limit := eventsAtOnce
	if r.consumer != nil {
		limit = r.consumer.config.enough
	}
	events, next, err := r.Log.read(ctx, selection{types: r.types}, r.place, limit)
	if err != nil {
		return err // also if the stream has dropped events: take continues after them
	}
	if len(events) > 0 {
		r.tellBehind(r.place)
		began := time.Now()
		b := &Batch{Events: events, Epoch: r.saved.Epoch, UpTo: next, base: r.saved.Base}
		last := events[len(events)-1]
		if err := r.put(ctx, b, mark{last.Place, last.ID}); err != nil {
			return err
		}
		r.last, r.unsaved = mark{last.Place, last.ID}, true
		if r.Background { // one that is far behind works half of the time
			clock.Pause(ctx, time.Since(began))
		}
	}
	r.place = next
	return nil
}

// done returns a place up to which all work is done, with the event there: the newest one that is known.
func (r *Reader) done() mark {
	if r.dispatch != nil {
		if before, holds := r.dispatch.done(); holds {
			return before
		}
	}
	if id := r.Log.IDAt(r.place); id != "" {
		return mark{r.place, id}
	}
	return r.last // there are no others of its types up to r.place
}

// saveIfDue saves the place from time to time; with Store, put does.
func (r *Reader) saveIfDue(ctx context.Context) error {
	due := saveEvery
	if !r.unsaved {
		due = saveAtRest
	}
	if r.Store != nil || time.Since(r.savedAt) < due {
		return nil
	}
	done := r.done()
	if done.place <= r.saved.Place {
		return nil
	}
	if err := r.save(ctx, done, nil); err != nil {
		return err
	}
	r.unsaved = done.place < r.last.place
	return nil
}

// tellBehind sets the metric of a place, and returns the end of the stream.
func (r *Reader) tellBehind(place uint64) (end uint64, known bool) {
	end, _, err := r.Log.End()
	if err == nil {
		r.Behind.Set(float64(end) - float64(place))
	}
	return end, err == nil
}

// await waits for an event, and then for others to be read with it.
func (r *Reader) await(ctx context.Context, changed <-chan struct{}) {
	switch changed := r.wait(ctx, changed); {
	case !changed || r.consumer != nil:
	case r.Background:
		clock.Pause(ctx, gatherInBackground)
	default:
		clock.Pause(ctx, gather)
	}
}

// wait waits until a channel is closed, but not for long. It reports whether it was.
func (r *Reader) wait(ctx context.Context, closed <-chan struct{}) bool {
	look := time.NewTimer(waitToTake)
	defer look.Stop()
	select {
	case <-closed:
		return true
	case <-look.C:
	case <-ctx.Done():
	}
	return false
}

// put works on a batch. With Store, it also moves the place, to the last event.
func (r *Reader) put(ctx context.Context, b *Batch, last mark) error {
	if r.dispatch != nil {
		before := r.last
		for _, e := range b.Events {
			r.dispatch.add(&delivery{event: *e, subject: subjectOf(e.Tenant, e.Type), payload: e.JSON, before: before})
			before = mark{e.Place, e.ID}
		}
		return nil
	}
	if r.Handle != nil {
		err := r.Handle(ctx, b)
		if err != nil {
			r.Log.metrics.failed.WithLabelValues(r.Name).Add(float64(len(b.Events)))
		} else {
			r.Log.metrics.handled.WithLabelValues(r.Name).Add(float64(len(b.Events)))
		}
		return err
	}
	return r.save(ctx, last, func(tx *docstore.Tx) error { return r.Store(ctx, tx, b) })
}

// save saves the place, with what is made of the events before it, if this replica still reads, from the same place;
// otherwise the error is errTaken.
func (r *Reader) save(ctx context.Context, at mark, with func(tx *docstore.Tx) error) error {
	if r.consumer != nil { // whose handlers go on meanwhile
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, inTime)
		defer cancel()
	}
	saved, err := docstore.Write(ctx, r.DB, func(tx *docstore.Tx) (readerPlace, error) {
		if with != nil {
			if err := with(tx); err != nil {
				return readerPlace{}, err
			}
		}
		return r.move(ctx, tx, at)
	})
	if err != nil {
		return err
	}
	r.saved, r.savedAt = saved, time.Now()
	if r.Consumer != "" {
		r.Log.announce(ctx, r.Consumer, r.types, at.place)
	}
	return nil
}

// move moves the place in the store.
func (r *Reader) move(ctx context.Context, tx *docstore.Tx, to mark) (readerPlace, error) {
	at, err := r.Places.docs.Load(ctx, tx, r.Name)
	if err != nil {
		return readerPlace{}, err
	}
	if at.Owner != r.Group.ID || at.Place != r.saved.Place {
		return readerPlace{}, errTaken
	}
	at.Place, at.Event = to.place, to.event
	if r.Log.Resets() != r.resets { // the stored event shows which ones the stream has lost
		return readerPlace{}, errTaken
	}
	_, err = r.Places.docs.Replace(ctx, tx, at)
	return *at, err
}

// release lets another replica take over at once, from where this one has read. If it fails, Run calls it again; others
// take over when this replica counts as dead.
func (r *Reader) release(ctx context.Context) {
	if !r.holds {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitToTake)
	defer cancel()
	err := docstore.Do(ctx, r.DB, func(tx *docstore.Tx) error {
		at, err := r.Places.docs.Load(ctx, tx, r.Name)
		if err != nil || at.Owner != r.Group.ID {
			return err
		}
		at.Owner = ""
		done := r.done()
		if at.Place == r.saved.Place && r.Log.Resets() == r.resets && done.place > at.Place {
			at.Place, at.Event = done.place, done.event
		}
		_, err = r.Places.docs.Replace(ctx, tx, at)
		return err
	})
	r.holds = err != nil
}

// announced returns the place up to which JetStream knows that a consumer of events of some types has handled them all;
// 0 if it is new. pinned tells whether a replica of an earlier version gets its events.
func (l *Log) announced(ctx context.Context, consumer string, of Types) (place uint64, pinned bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := l.js.CreateOrUpdateConsumer(ctx, bus.EventStream, jetstream.ConsumerConfig{
		Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1, FilterSubjects: of.subjects(),
		// bus.Handled knows the platform's consumers by this policy.
		PriorityPolicy: jetstream.PriorityPolicyPinned, PriorityGroups: []string{"active"}, PinnedTTL: pinnedFor,
	})
	if err != nil {
		return 0, false, apperr.Away("the event stream", err)
	}
	info := found.CachedInfo()
	for _, group := range info.PriorityGroups {
		pinned = pinned || group.PinnedClientID != ""
	}
	return info.AckFloor.Stream, pinned, nil
}

// announce tells JetStream up to which place all events are handled: it sets the acknowledged place of a durable
// consumer. After a failure, the next place is told.
func (l *Log) announce(ctx context.Context, consumer string, of Types, place uint64) {
	reset, cancel := context.WithTimeout(ctx, saveEvery)
	_, err := l.js.ResetConsumerToSequence(reset, bus.EventStream, consumer, place+1)
	cancel()
	if err != nil { // JetStream does not answer if it has no such consumer
		_, _, err = l.announced(ctx, consumer, of)
	}
	if err != nil {
		l.log.Debug("the place of a reader was not told to NATS", "reader", consumer, "error", err)
	}
}
