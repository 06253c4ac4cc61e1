package delivery

import (
	"math/rand/v2"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
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

	awayPause = time.Second
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

// blocked reports whether the lane's first event waits for another try.
func (l *lane) blocked() bool { return !l.queued && l.items[0].Tries > 0 }

// queue is what a subscription has to deliver: which event is tried next and when, and what is to be stored. It has no
// clock, store or goroutine of its own.
//
//	add ──▶ a lane of its record ──▶ ready ──start──▶ being tried ──record──▶ ended
//	            ▲                      ▲                   │ it has failed
//	            │ hold: it has a row   └── it is due ──────┤
//	            └── those behind it ◀──────────────────────┘
type queue struct {
	schedule []time.Duration // the pauses between tries
	vary     func(time.Duration) time.Duration

	lanes    map[string]*lane
	open     map[string]*item // by the event's id: neither delivered nor stored
	waiting  map[string]*item // stored
	retries  map[string]*item // failed, and waiting for the next try
	ready    []*lane
	sending  int
	failures int           // in a row
	probe    clock.Time    // when a stalled subscription tries another event
	pace     time.Duration // how long tries take, as a moving average

	// What is not saved yet.
	ended     []Delivery
	blocked   bool            // events came behind one that waits for another try; they need rows
	deleted   map[string]bool // ids of rows
	delivered int64
	failed    int64

	lastError string
	stopAs    string // the state in which the subscription stops; "" while it goes on
}

func newQueue(schedule []time.Duration) *queue {
	return &queue{
		schedule: schedule, vary: jitter, lanes: map[string]*lane{}, open: map[string]*item{},
		waiting: map[string]*item{}, retries: map[string]*item{}, deleted: map[string]bool{},
	}
}

// jitter varies a pause by up to a tenth, so that retries do not come at the same moment.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}

// room is how many events may be read now.
func (q *queue) room(now clock.Time) int {
	switch {
	case len(q.open) >= maxOpen || len(q.waiting) >= maxRows || q.held() >= maxHeld:
		return 0
	case q.failures < stalled:
		return readAtOnce
	case len(q.open) > 0 || q.probe.After(now):
		return 0
	}
	return 1
}

// held is the size of the events in memory that are neither delivered nor stored as rows.
func (q *queue) held() (bytes int) {
	for _, it := range q.open {
		if it.event != nil {
			bytes += len(it.event.JSON)
		}
	}
	return bytes
}

// has reports whether an event is on its way already: the stream has it again, at another place, if it had lost it.
func (q *queue) has(event string, place uint64, cursor string) bool {
	if it := q.waiting[event]; it != nil {
		if it.Cursor != cursor {
			it.Place, it.Cursor, it.dirty, q.blocked = place, cursor, true, true
		}
		return true
	}
	return q.open[event] != nil
}

// add adds an event behind the earlier ones of its record.
func (q *queue) add(it *item, now clock.Time) {
	l := q.lanes[it.record]
	if l == nil {
		l = &lane{record: it.record}
		q.lanes[it.record] = l
	}
	l.items = append(l.items, it)
	if it.stored {
		q.waiting[it.EventID] = it
	} else {
		q.open[it.EventID] = it
		q.blocked = q.blocked || l.blocked()
	}
	q.enqueue(l, now)
}

// enqueue schedules the try of a lane's first event, now or when it is due, unless it is scheduled or being tried.
func (q *queue) enqueue(l *lane, now clock.Time) {
	if l.queued {
		return
	}
	first := l.items[0]
	if first.Status == Retrying && first.due.After(now) {
		q.retries[first.EventID] = first
		return
	}
	delete(q.retries, first.EventID)
	l.queued = true
	q.ready = append(q.ready, l)
}

// start returns the events that are to be tried now. Each must come back to record.
func (q *queue) start(now clock.Time) (all []*item) {
	for _, it := range q.retries {
		q.enqueue(q.lanes[it.record], now)
	}
	limit := maxAtOnce
	if q.pace > slow || q.failures >= stalled {
		limit = slowAtOnce
	}
	for len(q.ready) > 0 && q.sending < limit {
		all = append(all, q.ready[0].items[0])
		q.ready = q.ready[1:]
		q.sending++
	}
	return all
}

// next is when an event that waits is due, or when a stalled subscription tries another one; zero: there is none.
func (q *queue) next() clock.Time {
	next := q.probe
	if q.failures < stalled {
		next = clock.Time{}
	}
	for _, it := range q.retries {
		if next.IsZero() || it.due.Before(next) {
			next = it.due
		}
	}
	return next
}

// record records the result of a try. It reports whether the try counts: the event was sent.
func (q *queue) record(it *item, r Result, now clock.Time) bool {
	q.sending--
	l := q.lanes[it.record]
	l.queued = false
	if r.Away {
		it.due = now.Add(awayPause)
		if it.Status == "" {
			it.Status = Retrying
		}
		q.retries[it.EventID] = it
		return false
	}
	if r.Skipped {
		q.drop(it, l, now)
		return false
	}
	q.pace = (7*q.pace + r.Took) / 8
	it.Tries++
	it.ResponseCode, it.Error, it.DurationMS, it.Time = r.Code, r.Error, r.Took.Milliseconds(), now
	it.NextTry = clock.Time{}
	if r.Lost {
		q.fail(it.EventType + " " + it.EventID + ": " + r.Error)
		it.Status = Failed
		q.end(it, l, now)
		return false
	}
	if r.Delivered {
		q.failures = 0
		q.delivered++
		it.Status = Delivered
		q.end(it, l, now)
		return true
	}
	q.failures++
	if q.failures >= stalled {
		q.probe = now.Add(min(firstProbe<<min(q.failures-stalled, 6), lastProbe))
	}
	q.fail(it.EventType + " " + it.EventID + ": " + r.Error)
	it.dirty, it.event = true, nil
	switch {
	case r.Gone:
		it.Status, q.stopAs = Failed, subscription.Disabled
	case it.Tries > len(q.schedule):
		it.Status, q.stopAs = Failed, subscription.Failing
	default:
		it.Status = Retrying
		it.NextTry = now.Add(max(q.vary(q.schedule[it.Tries-1]), r.RetryAfter))
		it.due = it.NextTry
		q.retries[it.EventID] = it
	}
	return true
}

func (q *queue) fail(reason string) {
	q.failed++
	q.lastError = reason
}

// end moves an event to the log, and goes on with the next of its record.
func (q *queue) end(it *item, l *lane, now clock.Time) {
	q.ended = append(q.ended, it.Delivery)
	q.drop(it, l, now)
}

// drop goes on with the next event of a record.
func (q *queue) drop(it *item, l *lane, now clock.Time) {
	it.event = nil
	delete(q.open, it.EventID)
	delete(q.retries, it.EventID)
	if it.stored {
		delete(q.waiting, it.EventID)
		q.deleted[it.row] = true
	}
	if l.items = l.items[1:]; len(l.items) == 0 {
		delete(q.lanes, l.record)
		return
	}
	next := l.items[0]
	if next.Status == Held {
		next.Status = ""
	}
	q.enqueue(l, now)
}

// hold marks the events that wait for a retry, and those behind them, to be stored as rows. So the place can move past
// them.
func (q *queue) hold() {
	for _, l := range q.lanes {
		if !l.blocked() {
			continue
		}
		for i, it := range l.items {
			if i > 0 && it.Status == "" {
				it.Status, it.dirty, it.event = Held, true, nil
			}
			if it.dirty {
				it.stored = true
				delete(q.open, it.EventID)
				q.waiting[it.EventID] = it
			}
		}
	}
}

// place is the place up to which no event is open, given the one up to which all were read.
func (q *queue) place(read uint64) uint64 {
	for _, it := range q.open {
		read = min(read, it.Place-1)
	}
	return read
}

// unsaved reports whether there is something to save beside the place.
func (q *queue) unsaved() bool {
	return q.delivered+q.failed > 0 || len(q.ended)+len(q.deleted) > 0 || q.blocked
}

// saved says that all is saved.
func (q *queue) saved() {
	for _, it := range q.waiting {
		it.dirty = false
	}
	q.ended, q.deleted = nil, map[string]bool{}
	q.delivered, q.failed, q.blocked = 0, 0, false
}
