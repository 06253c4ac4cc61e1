package function

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
)

// progress is how far a function has come in the stream of events; its id is the function's. So an event makes one run,
// however often it is delivered, and of a function with too many waiting runs only a place in the stream is kept.
//
// The events after From and up to UpTo have no runs yet: the function is behind.
type progress struct {
	docstore.Meta
	Stream  string     `json:"stream"`  // that the places are of
	Handled int64      `json:"handled"` // no event before this place comes again, or makes a run
	Done    []int64    `json:"done"`    // later places whose events have made runs
	From    int64      `json:"from"`
	UpTo    int64      `json:"up_to"`
	Next    clock.Time `json:"next"` // when more events are read from the stream; zero if the function is not behind
}

var progresses = docstore.Define(docstore.Schema[progress]{
	Name: "function_feeds", Noun: "progress", NoIfMatch: true,
	Indexes: []docstore.Index[progress]{
		docstore.ByNumber(byNext, func(d *progress) docstore.Value { return docstore.Moment(d.Next) }),
	},
	Due: func(d *progress) clock.Time { return d.Next },
})

const (
	// maxWaiting is about how many runs of a function wait. Then its events wait in the stream.
	maxWaiting = 100
	// fillAtOnce is how many events of a function are read from the stream in its turn. Up to about maxScanned places
	// are read for them, scanAtOnce at a time.
	fillAtOnce = 50
	scanAtOnce = 500
	maxScanned = 1000
	// maxDone is far more than the events that a consumer has in flight.
	maxDone = 4096
)

// begin makes progress in another stream one in this one.
func (d *progress) begin(stream string) {
	if d.Stream != stream {
		*d = progress{Meta: d.Meta, Stream: stream}
	}
}

func (d *progress) isBehind() bool { return d.From < d.UpTo }

// has reports whether the event at a place has made a run, or never will.
func (d *progress) has(place int64) bool {
	return place < d.Handled || slices.Contains(d.Done, place)
}

// take selects those of the delivered events that make runs now: the first room of them that have made none. The
// function falls behind with the others.
func (d *progress) take(events []stream.Event, room int, now clock.Time) (selected []stream.Event) {
	slices.SortFunc(events, func(a, b stream.Event) int { return cmp.Compare(a.Place, b.Place) })
	for _, e := range events {
		place := int64(e.Place)
		switch {
		case place == 0: // it is replayed
		case d.has(place):
			continue
		case d.isBehind() && place > d.From:
			d.UpTo = max(d.UpTo, place)
			continue
		case room <= 0 && !d.isBehind():
			d.From, d.UpTo, d.Next = place-1, place, now
			continue
		default:
			d.Done = append(d.Done, place)
		}
		selected, room = append(selected, e), room-1
	}
	for _, e := range events {
		d.Handled = max(d.Handled, int64(e.Handled))
	}
	d.prune()
	return selected
}

// prune forgets the places that need not be remembered.
func (d *progress) prune() {
	d.Done = slices.DeleteFunc(d.Done, func(place int64) bool {
		return place < d.Handled && (!d.isBehind() || place <= d.From)
	})
	d.Done = d.Done[max(0, len(d.Done)-maxDone):]
}

// fill reports whether the event at a place, which was read from the stream, makes a run now.
func (d *progress) fill(place int64) bool {
	if slices.Contains(d.Done, place) {
		return false
	}
	d.Done = append(d.Done, place)
	return true
}

// read goes on to a place after events were read from the stream.
func (d *progress) read(upTo int64, now clock.Time) {
	d.From = upTo
	if d.Next = now; !d.isBehind() {
		d.UpTo, d.Next = d.From, clock.Time{}
	}
	d.prune()
}

// arrivals collects the events of a tenant that are delivered at the same time, so that its functions are read once for
// them, and one transaction stores the runs of each.
type arrivals struct {
	mu    sync.Mutex
	lanes map[string]*lane // by tenant
}

type lane struct {
	users   int
	waiting *arrived
	turn    sync.Mutex
}

type arrived struct {
	events []stream.Event
	done   chan struct{}
	err    error
}

// add adds an event to those that wait. The caller that brings the first of them stores all, when those
// before are stored.
func (a *arrivals) add(key string, e stream.Event, store func([]stream.Event) error) error {
	a.mu.Lock()
	l := a.lanes[key]
	if l == nil {
		l = &lane{}
		a.lanes[key] = l
	}
	l.users++
	batch, first := l.waiting, l.waiting == nil
	if first {
		batch = &arrived{done: make(chan struct{})}
		l.waiting = batch
	}
	batch.events = append(batch.events, e)
	a.mu.Unlock()
	defer a.leave(key, l)
	if !first {
		<-batch.done
		return batch.err
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	a.mu.Lock()
	l.waiting = nil
	a.mu.Unlock()
	defer close(batch.done)
	batch.err = apperr.New(apperr.Internal, "the events were not stored") // after a panic
	batch.err = store(batch.events)
	return batch.err
}

func (a *arrivals) leave(key string, l *lane) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(a.lanes, key)
	}
}

// addRuns stores the runs of events that are delivered to a function.
func (s *Functions) addRuns(ctx context.Context, f *Function, events []stream.Event) error {
	err := s.tryAddRuns(ctx, f, events, false)
	if apperr.KindOf(err) == apperr.AlreadyExists { // a run that a replayed event has made
		err = s.tryAddRuns(ctx, f, events, true)
	}
	return err
}

// tryAddRuns stores the runs of events. With look, those that are there already stay.
func (s *Functions) tryAddRuns(ctx context.Context, f *Function, events []stream.Event, look bool) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		d, err := loadProgress(ctx, tx, f.ID)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Place > 0 {
				d.begin(e.Epoch)
			}
		}
		waiting, err := runs.Count(ctx, tx.Peek(), docstore.Eq(byFunction, docstore.Text(f.ID)))
		if err != nil {
			return err
		}
		for _, e := range d.take(events, maxWaiting-int(waiting), tx.Now) {
			if err := insertRun(ctx, tx, f.ID, &e, look); err != nil {
				return err
			}
		}
		return storeProgress(ctx, tx, d)
	})
}

func loadProgress(ctx context.Context, tx *docstore.Tx, id string) (*progress, error) {
	d, err := progresses.Load(ctx, tx, id)
	if apperr.IsNotFound(err) {
		return &progress{Meta: docstore.Meta{ID: id}}, nil
	}
	return d, err
}

func storeProgress(ctx context.Context, tx *docstore.Tx, d *progress) (err error) {
	if d.Version == 0 {
		_, err = progresses.Insert(ctx, tx, d)
	} else {
		_, err = progresses.Replace(ctx, tx, d)
	}
	return err
}

func deleteFeed(ctx context.Context, tx *docstore.Tx, id string) error {
	d, err := progresses.Load(ctx, tx, id)
	if err != nil {
		return apperr.Ignore(err, apperr.NotFound)
	}
	_, err = progresses.Delete(ctx, tx, d)
	return err
}

// catchUpAll reads events from the stream for functions that are behind, until ctx ends. It does so beside the runs
// that begin, because a stream that is slow or away is no reason for them to wait.
func (r *Runner) catchUpAll(ctx context.Context, room <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-room:
		}
		if err := r.catchUp(ctx); err != nil {
			return err
		}
	}
}

// catchUp reads as many events as there is room for. Other replicas may do so at the same time.
func (r *Runner) catchUp(ctx context.Context) error {
	groups, err := r.behind.List(ctx, r.Store, duePage)
	if err != nil {
		return err
	}
	for _, group := range groups {
		for _, ref := range group {
			ctx := request.System(ctx, ref.Tenant)
			advanced, err := r.fill(ctx, ref.ID)
			if err != nil && ctx.Err() == nil {
				r.Log.WarnContext(ctx, "events of a function still wait", "function", ref.ID, "error", err)
			}
			if advanced { // its runs are due, and it may have room for more
				tell(r.wake)
			}
		}
	}
	return ctx.Err()
}

// fill makes runs of the next events that a function is behind with. It reports whether the function is less behind.
func (s *Functions) fill(ctx context.Context, id string) (advanced bool, err error) {
	doc, err := progresses.Find(ctx, s.Store, id)
	if err != nil {
		return false, apperr.Ignore(err, apperr.NotFound)
	}
	d, err := doc.Value()
	if err != nil {
		return false, err
	}
	f, err := s.listener(ctx, id)
	if err != nil {
		return false, err
	}
	if f == nil {
		return false, s.advance(ctx, d, nil, nil)
	}
	waiting, err := runs.Count(ctx, s.Store, docstore.Eq(byFunction, docstore.Text(id)))
	if err != nil || waiting > maxWaiting-fillAtOnce {
		return false, err
	}
	events, next, err := s.following(ctx, f, d)
	if gone := (*stream.GoneError)(nil); errors.As(err, &gone) {
		s.noteFailure(ctx, f, LogEntry{Cause: byTrigger}, "the stream no longer has events that were to run")
		next, err = min(gone.First-1, uint64(d.UpTo)), nil
	}
	if err == nil {
		err = s.advance(ctx, d, events, &next)
	}
	return err == nil, err
}

// following reads the next events that a function is behind with, at most fillAtOnce, and returns those that it runs
// for. Up to the place next there are no others; there may be more even if there are fewer. It fails only if nothing
// could be read.
func (s *Functions) following(ctx context.Context, f *Function, d *progress) (events []stream.Event, next uint64,
	err error) {
	r := stream.Reading{Stream: d.Stream, Tenant: d.TenantID, After: uint64(d.From), UpTo: uint64(d.UpTo)}
	heard := 0 // refused or not
	for r.Limit = fillAtOnce; heard < fillAtOnce && r.After < r.UpTo && r.After-uint64(d.From) < maxScanned; {
		read, next, err := s.Stream.Stored(ctx, r)
		if err != nil && r.After > uint64(d.From) {
			break // what was read before makes its runs first
		}
		if err != nil {
			return nil, 0, err
		}
		r.After = next
		for _, e := range read {
			if !f.hears(e) {
				continue
			}
			if !s.refuse(ctx, f, e) {
				events = append(events, *e)
			}
			if heard++; heard == fillAtOnce {
				r.After = e.Place
				break
			}
		}
		r.Limit = scanAtOnce // most events are of other types
	}
	return events, r.After, nil
}

// listener returns a function that listens to events, nil if it no longer does.
func (s *Functions) listener(ctx context.Context, id string) (*Function, error) {
	doc, err := functions.Find(ctx, s.Store, id)
	if err != nil {
		return nil, apperr.Ignore(err, apperr.NotFound)
	}
	f, err := doc.Value()
	if err != nil || len(f.listensTo()) == 0 {
		return nil, err
	}
	return f, nil
}

// runnable returns those of the events that the function runs for.
func (s *Functions) runnable(ctx context.Context, f *Function, events []stream.Event) []stream.Event {
	return slices.DeleteFunc(events, func(e stream.Event) bool { return !f.hears(&e) || s.refuse(ctx, f, &e) })
}

// hears reports whether the function listens to events of this type.
func (f *Function) hears(e *stream.Event) bool {
	listens := f.listensTo()
	return slices.ContainsFunc(patterns(e.Type), func(p string) bool { return slices.Contains(listens, p) })
}

// advance stores the runs of events that were read from the stream up to a place, unless another replica has done so.
// Without a place it drops what the function is behind with.
func (s *Functions) advance(ctx context.Context, before *progress, events []stream.Event, upTo *uint64) error {
	err := docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		d, err := progresses.Load(ctx, tx, before.ID)
		if err != nil || d.Stream != before.Stream || d.From != before.From || !d.isBehind() {
			return err
		}
		place := d.UpTo
		if upTo != nil {
			place = int64(*upTo)
		}
		for _, e := range events {
			if !d.fill(int64(e.Place)) {
				continue
			}
			if err := insertRun(ctx, tx, d.ID, &e, false); err != nil {
				return err
			}
		}
		d.read(place, tx.Now)
		_, err = progresses.Replace(ctx, tx, d)
		return err
	})
	return apperr.Ignore(err, apperr.NotFound)
}
