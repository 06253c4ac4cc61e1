package function

import (
	"context"
	"errors"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
)

// progress is how far a function has come in the stream of events; its id is the function's. It moves in the
// transaction that stores the runs of the events before it. So an event makes one run, however often it is read, and of
// a function with too many waiting runs only a place in the stream is kept.
type progress struct {
	docstore.Meta
	Stream string     `json:"stream"` // the epoch that the places are of
	Base   int64      `json:"base"`   // of the last stream.Batch
	Place  int64      `json:"from"`   // the events up to here make no more runs
	UpTo   int64      `json:"up_to"`  // the function is behind if this is greater: the events between wait in the stream
	Next   clock.Time `json:"next"`   // when more events are read for it; zero if it is not behind
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
)

// begin prepares for the events of a batch. In another stream all places are others. In one that has lost its newest
// events, those that are read again may be others: they make runs, if need be a second time.
func (d *progress) begin(epoch string, base int64, first *stream.Event) {
	if d.Stream != epoch {
		*d = progress{Meta: d.Meta, Stream: epoch}
	}
	if d.Base != 0 && d.Base != base && !d.isBehind() {
		d.Place = min(d.Place, int64(first.Place)-1)
	}
	d.Base = base
}

func (d *progress) isBehind() bool { return d.Place < d.UpTo }

// take selects those of the events that make runs now: the first room of them after the place. The function is behind
// with the others.
func (d *progress) take(events []*stream.Event, room int, now clock.Time) (selected []*stream.Event) {
	for _, e := range events {
		place := int64(e.Place) //nolint:gosec // a place is far below 2^53
		switch {
		case place <= d.Place:
		case d.isBehind():
			d.UpTo = max(d.UpTo, place)
		case len(selected) == room:
			d.Place, d.UpTo, d.Next = place-1, place, now
		default:
			selected, d.Place = append(selected, e), place
		}
	}
	return selected
}

// read goes on to a place after events were read from the stream.
func (d *progress) read(upTo int64, now clock.Time) {
	d.Place = upTo
	if d.Next = now; !d.isBehind() {
		d.UpTo, d.Next = d.Place, clock.Time{}
	}
}

// addRuns stores the runs of those events of a batch that the function listens to. Each for which it is not run has an
// entry in the function's log that says why.
func (s *Functions) addRuns(ctx context.Context, f *Function, b *stream.Batch, events []*stream.Event) error {
	refused, err := s.tryAddRuns(ctx, f, b, events, false)
	if apperr.KindOf(err) == apperr.AlreadyExists { // the stream has an event twice, and its first run still waits
		refused, err = s.tryAddRuns(ctx, f, b, events, true)
	}
	if err != nil {
		return err
	}
	for _, e := range refused {
		s.noteFailure(ctx, f, LogEntry{Cause: byTrigger, EventID: e.ID}, s.refusal(e))
	}
	return nil
}

// tryAddRuns stores the runs of events, and returns the events for which the function is not run. With look, runs that
// are there already stay.
func (s *Functions) tryAddRuns(ctx context.Context, f *Function, b *stream.Batch, events []*stream.Event,
	look bool) (refused []*stream.Event, err error) {
	err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		refused = nil
		d, err := loadProgress(ctx, tx, f.ID)
		if err != nil {
			return err
		}
		d.begin(b.Epoch, b.Base, events[0])
		before := *d
		waiting, err := runs.Count(ctx, tx.Peek(), docstore.Eq(byFunction, docstore.Text(f.ID)))
		if err != nil {
			return err
		}
		for _, e := range d.take(events, max(0, maxWaiting-int(waiting)), tx.Now) {
			if s.refusal(e) != "" {
				refused = append(refused, e)
				continue
			}
			if err := insertRun(ctx, tx, f.ID, e, look); err != nil {
				return err
			}
		}
		if d.Place == before.Place && d.UpTo == before.UpTo {
			return nil // all were there
		}
		return storeProgress(ctx, tx, d)
	})
	return refused, err
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

func deleteProgress(ctx context.Context, tx *docstore.Tx, id string) error {
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
func (s *Functions) following(ctx context.Context, f *Function, d *progress) (events []*stream.Event, next uint64,
	err error) {
	r := stream.Reading{Stream: d.Stream, Tenant: d.TenantID, After: uint64(d.Place), UpTo: uint64(d.UpTo)}
	heard := 0 // refused or not
	for r.Limit = fillAtOnce; heard < fillAtOnce && r.After < r.UpTo && r.After-uint64(d.Place) < maxScanned; {
		read, next, err := s.Stream.Stored(ctx, r)
		if err != nil && r.After > uint64(d.Place) {
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
			if why := s.refusal(e); why != "" {
				s.noteFailure(ctx, f, LogEntry{Cause: byTrigger, EventID: e.ID}, why)
			} else {
				events = append(events, e)
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

// hears reports whether the function listens to events of this type.
func (f *Function) hears(e *stream.Event) bool {
	listens := f.listensTo()
	return slices.ContainsFunc(patterns(e.Type), func(p string) bool { return slices.Contains(listens, p) })
}

// advance stores the runs of events that were read from the stream up to a place, unless another replica has done so.
// Without a place it drops what the function is behind with.
func (s *Functions) advance(ctx context.Context, before *progress, events []*stream.Event, upTo *uint64) error {
	err := s.tryAdvance(ctx, before, events, upTo, false)
	if apperr.KindOf(err) == apperr.AlreadyExists { // see addRuns
		err = s.tryAdvance(ctx, before, events, upTo, true)
	}
	return apperr.Ignore(err, apperr.NotFound)
}

func (s *Functions) tryAdvance(ctx context.Context, before *progress, events []*stream.Event, upTo *uint64,
	look bool) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		d, err := progresses.Load(ctx, tx, before.ID)
		if err != nil || d.Stream != before.Stream || d.Place != before.Place || !d.isBehind() {
			return err
		}
		place := d.UpTo
		if upTo != nil {
			place = int64(*upTo)
		}
		for _, e := range events {
			if err := insertRun(ctx, tx, d.ID, e, look); err != nil {
				return err
			}
		}
		d.read(place, tx.Now)
		_, err = progresses.Replace(ctx, tx, d)
		return err
	})
}
