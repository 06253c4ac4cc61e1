package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

const (
	// DefaultMemory is for a program in which only followers read.
	DefaultMemory = 1 << 20

	usualSize      = 4 << 10   // bytes of memory for each event that a Log may keep
	maxPart        = 256 << 10 // bytes of one read
	requestTimeout = 5 * time.Second
)

// Config is what a Log needs.
type Config struct {
	Bus *bus.Bus
	// Memory is how many bytes of the newest events are kept in memory, and one event for each 4 KiB of it; 0 means
	// DefaultMemory.
	Memory  int
	Log     *slog.Logger
	Metrics prometheus.Registerer // may be nil
}

// Log is the platform's log of events as one program reads it. It is safe for concurrent use.
type Log struct {
	bus     *bus.Bus
	js      jetstream.JetStream
	log     *slog.Logger
	metrics *metrics
	trace   propagation.TraceContext
	memory  int
	forget  func() // what Bus.BeforeClose returned
	cancel  context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	epoch  string   // identifies the stream; "" before it was found
	resets int      // how often the stream was another one, or had lost its newest events
	recent []*entry // the newest events, oldest first
	bytes  int
	first  uint64 // recent has every event whose place is at least this
	last   uint64 // the newest place
	lastID string // the id of the event at last; "" if it is not known
	// past is the newest place of each tenant whose events are no longer in memory, of all events after since. So those
	// who have read everything need not look into the stream.
	past  map[string]uint64
	since uint64
	keeps time.Duration // how long the stream keeps events

	lost      time.Time // when NATS was last heard; zero while it is connected and all that came meanwhile is here
	caughtUp  uint64    // the newest place when lost became zero
	changed   map[string]chan struct{}
	followers map[*Follower]bool

	old chunks // what readers behind first have read
}

// entry is a message of the stream. It is decoded when somebody reads it, once for all.
type entry struct {
	place        uint64
	subject      string
	tenant, kind string // of the event: kind is its type without idp.
	payload      []byte
	decode       sync.Once
	event        *Event // nil if the message is not an event
}

// New makes a Log and follows the end of the stream until Close, or until the Bus is closed.
func New(c Config) (*Log, error) {
	m, err := newMetrics(c.Metrics)
	if err != nil {
		return nil, err
	}
	l := &Log{
		bus: c.Bus, js: c.Bus.JetStream(), log: c.Log, metrics: m, memory: c.Memory, done: make(chan struct{}),
		past: map[string]uint64{}, changed: map[string]chan struct{}{}, followers: map[*Follower]bool{},
		lost: time.Now(),
	}
	if l.memory == 0 {
		l.memory = DefaultMemory
	}
	m.skipped.WithLabelValues("log")
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	l.forget = c.Bus.BeforeClose(func(context.Context) error { l.stop(); return nil })
	go l.run(ctx)
	return l, nil
}

// Close ends the reading of the stream's end. Followers and consumers have an end of their own.
func (l *Log) Close() {
	l.forget()
	l.stop()
}

func (l *Log) stop() {
	l.cancel()
	<-l.done
}

// run follows the end of the stream, session after session.
func (l *Log) run(ctx context.Context) {
	defer close(l.done)
	t := newTroubles(l.log, "log")
	for ctx.Err() == nil {
		connected, end, err := l.bus.WhileConnected(ctx)
		if err != nil {
			return
		}
		began := l.end()
		err = l.session(connected)
		l.disconnected(err)
		if connected.Err() == nil {
			t.meet(connected, err, l.end() != began)
		}
		end()
	}
}

func (l *Log) end() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// session follows the stream until ctx ends or the order of messages is no longer certain.
func (l *Log) session(ctx context.Context) error {
	stream, err := l.js.Stream(ctx, bus.EventStream)
	if err != nil {
		return fmt.Errorf("look up the stream: %w", err)
	}
	from, err := l.resume(ctx, stream)
	if err != nil {
		return err
	}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, AckPolicy: jetstream.AckNonePolicy,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: bus.ForgetAfter,
	})
	if err != nil {
		return fmt.Errorf("make a consumer: %w", err)
	}
	defer l.remove(stream, consumer)
	behind := consumer.CachedInfo().NumPending // events that are there already and still to be read
	if behind == 0 {
		l.connected()
	}
	return bus.Each(ctx, consumer, func(m jetstream.Msg, meta *jetstream.MsgMetadata) error {
		l.add(meta.Sequence.Stream, m)
		if behind == 0 {
			return nil
		}
		if behind = min(behind-1, meta.NumPending); behind == 0 {
			l.connected()
		}
		return nil
	})
}

// remove removes a session's consumer, which JetStream would do after bus.ForgetAfter.
func (l *Log) remove(stream jetstream.Stream, consumer jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := stream.DeleteConsumer(ctx, consumer.CachedInfo().Name); err != nil {
		l.log.Debug("the consumer of the log of events was not removed", "error", err)
	}
}

// resume returns the place to follow the stream from: after the newest event in memory if the stream has it, and
// otherwise after the stream's end. A server may lose its newest events in a power cut, and give their places to
// others.
func (l *Log) resume(ctx context.Context, stream jetstream.Stream) (from uint64, err error) {
	info := stream.CachedInfo()
	state, epoch := info.State, bus.Epoch(info)
	l.mu.Lock()
	last, lastID := l.last, l.lastID
	kept := max(state.FirstSeq, bus.Dropped(info.Config, "")+1) // from here on the stream has all events
	same := l.epoch == epoch && kept <= last+1 && last <= state.LastSeq
	l.mu.Unlock()
	there := ""
	if same && lastID != "" {
		if there, err = idAt(ctx, stream, last); err != nil {
			return 0, err
		}
	}
	if same = same && (there == "" || there == lastID); !same {
		last = state.LastSeq
		if lastID, err = idAt(ctx, stream, last); err != nil {
			return 0, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keeps = info.Config.MaxAge
	if !same {
		l.epoch, l.last, l.lastID = epoch, last, lastID
		l.reset(last + 1)
		l.old.clear()
	}
	return last + 1, nil
}

// idAt returns the id of the event at a place; "" if the stream does not have it.
func idAt(ctx context.Context, stream jetstream.Stream, place uint64) (string, error) {
	if place == 0 {
		return "", nil
	}
	m, err := stream.GetMsg(ctx, place)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at the newest event: %w", err)
	}
	return m.Header.Get(nats.MsgIdHdr), nil
}

// reset forgets the events in memory: the next one is at first.
func (l *Log) reset(first uint64) {
	l.recent, l.bytes, l.first = nil, 0, first
	l.past, l.since = map[string]uint64{}, first-1
	l.resets++
	for of, changed := range l.changed {
		close(changed)
		delete(l.changed, of)
	}
	for f := range l.followers {
		f.miss()
	}
}

func (l *Log) add(place uint64, m jetstream.Msg) {
	e := &entry{place: place, subject: m.Subject(), payload: m.Data()}
	e.tenant, e.kind, _ = strings.Cut(strings.TrimPrefix(e.subject, bus.EventsPrefix), ".")
	l.mu.Lock()
	defer l.mu.Unlock()
	if place > l.last+1 { // events were dropped before they came here
		l.reset(place)
	}
	before := l.last
	l.last, l.lastID = place, m.Headers().Get(nats.MsgIdHdr)
	l.recent = append(l.recent, e)
	l.bytes += len(e.payload)
	drop := 0
	for len(l.recent)-drop > l.memory/usualSize || l.bytes > l.memory {
		oldest := l.recent[drop]
		l.bytes -= len(oldest.payload)
		l.first = oldest.place + 1
		l.past[oldest.tenant] = oldest.place
		drop++
	}
	clear(l.recent[:drop])
	l.recent = l.recent[drop:] // append moves the rest from time to time
	for _, of := range []string{e.tenant, ""} {
		if changed := l.changed[of]; changed != nil {
			close(changed)
			delete(l.changed, of)
		}
	}
	for f := range l.followers {
		f.hear(e, before)
	}
}

// tell leaves a value in a channel that has room for one.
func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// connected notes that a session has read what was in the stream when it began, and disconnected that it has ended.
func (l *Log) connected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost, l.caughtUp = time.Time{}, l.last
	for f := range l.followers {
		f.refresh()
	}
}

func (l *Log) disconnected(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost.IsZero() {
		if l.lost = time.Now(); errors.Is(err, jetstream.ErrNoHeartbeat) {
			l.lost = l.lost.Add(-bus.Silence)
		}
	}
	for f := range l.followers {
		if f.lost.IsZero() {
			f.lost = l.lost
		}
	}
}

// Changed returns a channel that is closed when there is another event of the tenant, or of any tenant for "". Call it
// before Read, so that no event is missed.
func (l *Log) Changed(tenant string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.changed[tenant]
	if changed == nil {
		changed = make(chan struct{})
		l.changed[tenant] = changed
	}
	return changed
}

var errNotYet = apperr.Away("the event stream", errors.New("the end of the stream is not known yet"))

// End returns the newest place and the stream's epoch. The error is apperr.Unavailable.
func (l *Log) End() (place uint64, epoch string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch == "" {
		return 0, "", errNotYet
	}
	return l.last, l.epoch, nil
}

// Keeps returns how long the stream keeps events.
func (l *Log) Keeps() time.Duration {
	const always = 365 * 24 * time.Hour
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keeps == 0 {
		return always
	}
	return l.keeps
}

// IsEpoch reports whether a stored place or a cursor is of the present stream.
func (l *Log) IsEpoch(epoch string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return epoch != "" && epoch == l.epoch
}

// Resets is how often the stream was another one than before, or had lost its newest events: a reader must then find
// its place again.
func (l *Log) Resets() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resets
}

// Await waits until the end of the stream is known. The error is ctx's.
func (l *Log) Await(ctx context.Context) error {
	for {
		changed := l.Changed("")
		if _, _, err := l.End(); err == nil {
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
// limit, and about 256 KiB. Up to the place next there are no others. The error is *GoneError or apperr.Unavailable.
func (l *Log) Read(ctx context.Context, tenant string, after uint64, limit int) (events []*Event, next uint64,
	err error) {
	return l.read(ctx, selection{tenant: tenant}, after, limit)
}

// selection is which events a reader wants.
type selection struct {
	tenant string // "" for all
	types  Types
	whole  bool // see Reading
}

func (s selection) wants(e *entry) bool {
	return (s.tenant == "" || s.tenant == e.tenant) && s.types.Match(e.kind)
}

const fewEvents = 10

func (l *Log) read(ctx context.Context, of selection, after uint64, limit int) (events []*Event, next uint64,
	err error) {
	l.mu.Lock()
	if l.epoch == "" {
		l.mu.Unlock()
		return nil, 0, errNotYet
	}
	if after+1 >= l.first || of.tenant != "" && after >= l.since && l.past[of.tenant] <= after {
		found, next := l.remembered(of, after, limit)
		l.mu.Unlock()
		return l.decoded(found), next, nil
	}
	upTo, resets := l.first-1, l.resets
	l.mu.Unlock()
	if known := l.old.find(of, after); known != nil {
		events, next = known.from(after, limit)
		return of.types.among(events), next, nil
	}
	ahead := limit
	if limit >= fewEvents { // the reader will probably continue
		ahead = max(limit, readAtOnce)
	}
	stored, next, err := l.Stored(ctx, Reading{
		Tenant: of.tenant, Whole: of.whole, After: after, UpTo: upTo, Limit: ahead,
	})
	if err != nil || next <= after {
		return nil, next, err
	}
	read := &chunk{tenant: of.tenant, whole: of.whole, after: after, next: next, events: stored}
	l.mu.Lock()
	if l.resets == resets && limit >= fewEvents {
		l.old.add(read, l.memory)
	}
	l.mu.Unlock()
	events, next = read.from(after, limit)
	return of.types.among(events), next, nil
}

func (l *Log) remembered(of selection, after uint64, limit int) (found []*entry, next uint64) {
	i := sort.Search(len(l.recent), func(i int) bool { return l.recent[i].place > after })
	size := 0
	for _, e := range l.recent[i:] {
		if !of.wants(e) {
			continue
		}
		size += len(e.payload)
		if found = append(found, e); len(found) == limit || size >= maxPart {
			return found, e.place
		}
	}
	return found, max(after, l.last)
}

// decoded leaves out what is not an event.
func (l *Log) decoded(entries []*entry) (events []*Event) {
	for _, e := range entries {
		if event := l.decode(e); event != nil {
			events = append(events, event)
		}
	}
	return events
}

// decode returns the event of an entry; nil if the message is none.
func (l *Log) decode(e *entry) *Event {
	e.decode.Do(func() {
		e.event = l.eventOf(e.subject, e.place, e.payload)
	})
	return e.event
}

// eventOf returns nil if a message is not an event, and notes that.
func (l *Log) eventOf(subject string, place uint64, payload []byte) *Event {
	event, err := Decode(subject, payload)
	if err != nil {
		l.metrics.skipped.WithLabelValues("log").Inc()
		l.log.Error("a message of the stream is not an event", "subject", subject, "place", place, "error", err)
		return nil
	}
	event.Place, event.input = place, &input{}
	return &event
}

// IDAt returns the id of the event at a place if it is one of the newest; otherwise "".
func (l *Log) IDAt(place uint64) string {
	if e := l.newest(place); e != nil {
		return e.ID
	}
	return ""
}

// newest returns the event at a place if it is one of the newest; otherwise nil.
func (l *Log) newest(place uint64) *Event {
	l.mu.Lock()
	i := sort.Search(len(l.recent), func(i int) bool { return l.recent[i].place >= place })
	var found *entry
	if i < len(l.recent) && l.recent[i].place == place {
		found = l.recent[i]
	}
	l.mu.Unlock()
	if found == nil {
		return nil
	}
	return l.decode(found)
}
