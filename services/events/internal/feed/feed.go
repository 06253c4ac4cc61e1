// Package feed reads the stream of events by place. One consumer for each replica follows the end of the stream and
// keeps the newest events in memory; readers that are further behind read from JetStream, without a consumer. So a
// reader costs no more than the number of its place.
package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

const (
	maxRecent      = 4096             // events in memory
	maxRecentBytes = 16 << 20         // their size
	maxPart        = 256 << 10        // bytes of one read, as of bus.Read
	keptIdle       = 30 * time.Second // how long JetStream keeps a consumer that nobody uses
)

// Feed gives readers the events of the stream. It is safe for concurrent use.
type Feed struct {
	bus *bus.Bus
	log *slog.Logger

	mu     sync.Mutex
	epoch  string   // identifies the stream; "" before Run has found it
	resets int      // how often the stream was another one, or had lost its newest events
	recent []*Event // the newest events, oldest first
	bytes  int
	first  uint64 // recent has every event whose place is at least this
	last   uint64 // the newest place

	// past is the newest place of each tenant whose events are no longer in memory, of all events after since. So those
	// who have read everything need not look into the stream.
	past  map[string]uint64
	since uint64
	keeps time.Duration // how long the stream keeps events

	changed map[string]chan struct{}

	old chunks // what readers behind first have read
}

// New makes a feed. Run must run for it to have events.
func New(b *bus.Bus, log *slog.Logger) *Feed {
	return &Feed{bus: b, log: log, changed: map[string]chan struct{}{}, past: map[string]uint64{}}
}

// Run follows the end of the stream until ctx ends or the stream must be looked up again.
func (f *Feed) Run(ctx context.Context) error {
	ctx, end := f.whileConnected(ctx)
	defer end()
	err := f.follow(ctx)
	if ctx.Err() != nil {
		return nil // NATS is away, or the service stops
	}
	return err
}

func (f *Feed) follow(ctx context.Context) error {
	stream, err := f.bus.JetStream().Stream(ctx, bus.EventStream)
	if err != nil {
		return fmt.Errorf("look up the stream: %w", err)
	}
	holds, err := f.holdsNewest(ctx, stream)
	if err != nil {
		return err
	}
	from := f.resume(stream.CachedInfo(), holds)
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, AckPolicy: jetstream.AckNonePolicy,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: keptIdle,
	})
	if err != nil {
		return fmt.Errorf("make a consumer: %w", err)
	}
	defer f.forget(ctx, stream, consumer)
	return bus.Each(ctx, consumer, func(m jetstream.Msg, meta *jetstream.MsgMetadata) error {
		f.add(meta.Sequence.Stream, m.Subject(), m.Data())
		return nil
	})
}

// forget removes the consumer if NATS is there; otherwise JetStream removes it after keptIdle.
func (f *Feed) forget(ctx context.Context, stream jetstream.Stream, consumer jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if f.bus.JetStream().Conn().IsConnected() {
		_ = stream.DeleteConsumer(ctx, consumer.CachedInfo().Name)
	}
}

// holdsNewest reports whether the stream has the newest event in memory at its place. Otherwise it has lost events, and
// may have given their places to others.
func (f *Feed) holdsNewest(ctx context.Context, stream jetstream.Stream) (bool, error) {
	f.mu.Lock()
	var newest *Event
	if len(f.recent) > 0 {
		newest = f.recent[len(f.recent)-1]
	}
	f.mu.Unlock()
	if newest == nil || newest.Place < stream.CachedInfo().State.FirstSeq {
		return true, nil
	}
	m, err := stream.GetMsg(ctx, newest.Place)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return newest.Place <= stream.CachedInfo().State.LastSeq, nil // it was removed
	}
	if err != nil {
		return false, fmt.Errorf("look at the newest event: %w", err)
	}
	return m.Header.Get(nats.MsgIdHdr) == newest.ID || bytes.Equal(m.Data, newest.JSON), nil
}

// resume returns the place to follow the stream from: after the newest event in memory if the stream is the same, and
// otherwise after the stream's end.
func (f *Feed) resume(info *jetstream.StreamInfo, holds bool) (from uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := info.State
	epoch := bus.Epoch(info)
	f.keeps = info.Config.MaxAge
	if !holds || f.epoch != epoch || state.FirstSeq > f.last+1 || state.LastSeq < f.last {
		f.epoch, f.recent, f.bytes = epoch, nil, 0
		f.resets++
		f.first, f.last = state.LastSeq+1, state.LastSeq
		f.past, f.since = map[string]uint64{}, f.last
		f.old.clear()
		f.wake("")
	}
	return f.last + 1
}

func (f *Feed) add(place uint64, subject string, payload []byte) {
	e, err := NewEvent(place, subject, payload)
	f.mu.Lock()
	defer f.mu.Unlock()
	if place > f.last+1 { // events were dropped before they came here
		f.recent, f.bytes, f.first = nil, 0, place
		f.past, f.since = map[string]uint64{}, place-1
		f.resets++
		f.wake("")
	}
	f.last = place
	if err != nil {
		f.log.Warn("a message of the stream is not an event", "subject", subject, "place", place, "error", err)
		return
	}
	f.recent = append(f.recent, e)
	f.bytes += len(payload)
	drop := 0
	for len(f.recent)-drop > maxRecent || f.bytes > maxRecentBytes {
		f.bytes -= len(f.recent[drop].JSON)
		f.first = f.recent[drop].Place + 1
		f.past[f.recent[drop].Tenant] = f.recent[drop].Place
		drop++
	}
	clear(f.recent[:drop])
	f.recent = f.recent[drop:] // append moves the rest from time to time
	f.wake(e.Tenant)
}

// wake wakes the readers that wait for events of the tenant or of all tenants. For "" it wakes all readers.
func (f *Feed) wake(tenant string) {
	for of, changed := range f.changed {
		if tenant == "" || of == "" || of == tenant {
			close(changed)
			delete(f.changed, of)
		}
	}
}

// Changed returns a channel that is closed when there is another event of the tenant, or of any tenant for "". Call it
// before Read, so that no event is missed.
func (f *Feed) Changed(tenant string) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := f.changed[tenant]
	if changed == nil {
		changed = make(chan struct{})
		f.changed[tenant] = changed
	}
	return changed
}

var errNotYet = apperr.Away("the event stream", errors.New("the end of the stream is not known yet"))

// End returns the newest place and the stream's epoch. The error is apperr.Unavailable.
func (f *Feed) End() (place uint64, epoch string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch == "" {
		return 0, "", errNotYet
	}
	return f.last, f.epoch, nil
}

// Keeps returns how long the stream keeps events.
func (f *Feed) Keeps() time.Duration {
	const always = 365 * 24 * time.Hour
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keeps == 0 {
		return always
	}
	return f.keeps
}

// IsEpoch reports whether a stored place or a cursor is of the present stream.
func (f *Feed) IsEpoch(epoch string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return epoch != "" && epoch == f.epoch
}

// Await waits until the end of the stream is known.
func (f *Feed) Await(ctx context.Context) error {
	for {
		changed := f.Changed("")
		if _, _, err := f.End(); err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Read returns the tenant's events after a place, or those of all tenants for "", in the order of the stream: at most
// limit, and about maxPart bytes. Up to the place next there are no others. The error is *bus.GoneError or
// apperr.Unavailable.
func (f *Feed) Read(ctx context.Context, tenant string, after uint64, limit int) (events []*Event, next uint64,
	err error) {
	f.mu.Lock()
	if f.epoch == "" {
		f.mu.Unlock()
		return nil, 0, errNotYet
	}
	if after+1 >= f.first || tenant != "" && after >= f.since && f.past[tenant] <= after {
		defer f.mu.Unlock()
		events, next = f.remembered(tenant, after, limit)
		return events, next, nil
	}
	upTo, resets := f.first-1, f.resets
	f.mu.Unlock()
	if known := f.old.find(tenant, after); known != nil {
		events, next = known.from(after, limit)
		return events, next, nil
	}
	ahead := limit
	if limit >= fewEvents { // the reader will probably continue
		ahead = max(limit, readAtOnce)
	}
	stored, next, err := f.bus.Read(ctx, bus.Reading{Tenant: tenant, After: after, UpTo: upTo, Limit: ahead})
	if err != nil || next <= after {
		return nil, next, err
	}
	read := &chunk{tenant: tenant, after: after, next: next}
	for _, e := range stored {
		read.events = append(read.events, &Event{Event: e, Place: e.Place.Number})
	}
	f.mu.Lock()
	if f.resets == resets && limit >= fewEvents {
		f.old.add(read)
	}
	f.mu.Unlock()
	events, next = read.from(after, limit)
	return events, next, nil
}

const fewEvents = 10

func (f *Feed) remembered(tenant string, after uint64, limit int) (events []*Event, next uint64) {
	i := sort.Search(len(f.recent), func(i int) bool { return f.recent[i].Place > after })
	size := 0
	for _, e := range f.recent[i:] {
		if tenant != "" && e.Tenant != tenant {
			continue
		}
		size += len(e.JSON)
		if events = append(events, e); len(events) == limit || size >= maxPart {
			return events, e.Place
		}
	}
	return events, max(after, f.last)
}
