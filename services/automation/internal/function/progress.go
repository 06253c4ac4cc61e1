package function

import (
	"context"
	"errors"
	"slices"
	"time"

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
	Stream string     `json:"stream"`          // the epoch that the places are of
	Place  int64      `json:"from"`            // the events up to here make no more runs
	Event  string     `json:"event,omitempty"` // the id of the event at Place, if it has made a run
	UpTo   int64      `json:"up_to"`           // if this is greater, the function is behind with the events between
	Next   clock.Time `json:"next"`            // when more events are read for it; zero if it is not behind
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

// moveBack sets the place back, because the stream has lost the events there, in a power cut, and has given their
// places to others. Events after it make runs, if need be a second time.
func (d *progress) moveBack(to int64, now clock.Time) {
	behind := d.isBehind()
	d.Place, d.Event = min(d.Place, to), ""
	if d.Next = now; !behind {
		d.UpTo, d.Next = d.Place, clock.Time{}
	}
}

func (d *progress) isBehind() bool { return d.Place < d.UpTo }

// take selects those of the events that make runs now: the first room of them after the place. The function is behind
// with the others.
func (d *progress) take(events []*stream.Event, room int, now clock.Time) (selected []*stream.Event) {
	seen := map[string]bool{}
	for _, e := range events {
		place := int64(e.Place) //nolint:gosec // a place is far below 2^53
		switch {
		case place <= d.Place || seen[e.ID]: // the stream may have an event twice
		case d.isBehind():
			d.UpTo = max(d.UpTo, place)
		case len(selected) == room:
			if d.Event == "" {
				d.Place = place - 1
			}
			d.UpTo, d.Next = place, now
		default:
			selected, seen[e.ID] = append(selected, e), true
			d.Place, d.Event = place, e.ID
		}
	}
	return selected
}

// read goes on to a place after events were read from the stream.
func (d *progress) read(upTo int64, now clock.Time) {
	d.Place, d.Event = upTo, ""
	if d.Next = now; !d.isBehind() {
		d.UpTo, d.Next = d.Place, clock.Time{}
	}
}

// addRuns stores the runs of the events that the function listens to, which are some of a tenant's events of a batch.
// Each for which it is not run has an entry in the function's log that says why.
func (s *Functions) addRuns(ctx context.Context, f *Function, b *stream.Batch, all, heard []*stream.Event) error {
	add := adding{b: b, all: all, heard: heard}
	refused, err := s.tryAddRuns(ctx, f, add)
	if beyond, is := errors.AsType[*beyondError](err); is {
		add.asked = true
		add.beyond, _, err = s.Stream.Stored(ctx, stream.Reading{
			Stream: b.Epoch, Tenant: f.TenantID, After: beyond.place - 1, UpTo: beyond.place, Limit: 1,
		})
		if err != nil {
			return err
		}
		refused, err = s.tryAddRuns(ctx, f, add)
	}
	if isDuplicate(err) { // the stream has an event twice, and its first run still waits
		add.look = true
		refused, err = s.tryAddRuns(ctx, f, add)
	}
	if err != nil {
		return err
	}
	for _, e := range refused {
		s.noteFailure(ctx, f, LogEntry{Cause: byTrigger, EventID: e.ID}, s.refusal(e))
	}
	return nil
}

func isDuplicate(err error) bool {
	_, is := errors.AsType[*docstore.DuplicateError](err)
	return is
}

// adding is what runs are made of.
type adding struct {
	b          *stream.Batch
	all, heard []*stream.Event // of the tenant, and those that the function listens to
	beyond     []*stream.Event // what the stream has at the place of a beyondError
	asked      bool            // beyond is known
	look       bool            // runs that are there already stay
}

// beyondError reports that events are read again, and the function's place is after the batch.
type beyondError struct{ place uint64 }

func (e *beyondError) Error() string { return "the function's place is after the batch" }

// isMoved reports whether the stream has another event than before at a function's place. That can only be so if events
// are read again. The error is *beyondError.
func (a *adding) isMoved(d *progress) (bool, error) {
	place := uint64(d.Place) //nolint:gosec // it is not negative
	if d.Event == "" || place < a.all[0].Place {
		return false, nil
	}
	at := a.all
	if place > a.b.UpTo {
		if at = a.beyond; !a.asked {
			return false, &beyondError{place}
		}
	}
	return !slices.ContainsFunc(at, func(e *stream.Event) bool { return e.Place == place && e.ID == d.Event }), nil
}

// tryAddRuns stores the runs of events, and returns the events for which the function is not run.
func (s *Functions) tryAddRuns(ctx context.Context, f *Function, a adding) (refused []*stream.Event, err error) {
	err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		refused = nil
		d, before, err := beginProgress(ctx, tx, f.ID, a.b)
		if err != nil {
			return err
		}
		moved, err := a.isMoved(d)
		if err != nil {
			return err
		}
		if moved {
			d.moveBack(int64(a.heard[0].Place)-1, tx.Now) //nolint:gosec // a place is far below 2^53
		}
		waiting, err := runs.Count(ctx, tx.Peek(), docstore.Eq(byFunction, docstore.Text(f.ID)))
		if err != nil {
			return err
		}
		for _, e := range d.take(a.heard, max(0, maxWaiting-int(waiting)), tx.Now) {
			if s.refusal(e) != "" {
				refused = append(refused, e)
				continue
			}
			if err := insertRun(ctx, tx, f.ID, e, a.look); err != nil {
				return err
			}
		}
		return storeProgress(ctx, tx, d, before)
	})
	return refused, err
}

// leaveBehind leaves a function behind with events whose runs cannot be stored.
func (s *Functions) leaveBehind(ctx context.Context, f *Function, b *stream.Batch, events []*stream.Event) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		d, before, err := beginProgress(ctx, tx, f.ID, b)
		if err != nil {
			return err
		}
		d.take(events, 0, tx.Now)
		return storeProgress(ctx, tx, d, before)
	})
}

// beginProgress loads a function's progress in the stream of a batch, and what it was before.
func beginProgress(ctx context.Context, tx *docstore.Tx, id string, b *stream.Batch) (d *progress, before progress,
	err error) {
	if d, err = loadProgress(ctx, tx, id); err != nil {
		return nil, progress{}, err
	}
	if before = *d; d.Stream != b.Epoch { // all places are others
		*d = progress{Meta: d.Meta, Stream: b.Epoch}
	}
	return d, before, nil
}

func loadProgress(ctx context.Context, tx *docstore.Tx, id string) (*progress, error) {
	d, err := progresses.Load(ctx, tx, id)
	if apperr.IsNotFound(err) {
		return &progress{Meta: docstore.Meta{ID: id}}, nil
	}
	return d, err
}

func storeProgress(ctx context.Context, tx *docstore.Tx, d *progress, before progress) (err error) {
	if *d == before {
		return nil // all events were there
	}
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
func (r *Runner) catchUpAll(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for failing := false; ; {
		err := r.catchUp(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			r.Log.ErrorContext(ctx, "functions that are behind cannot be listed", "error", err)
		}
		if failing = err != nil; failing {
			clock.Pause(ctx, lookAgain)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.room:
		case <-look.C:
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
				tell(r.room)
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
	return err == nil && next > uint64(d.Place), err
}

// following reads the next events that a function is behind with, at most fillAtOnce, and returns those that it runs
// for. Up to the place next there are no others; there may be more even if there are fewer. It fails only if nothing
// could be read.
func (s *Functions) following(ctx context.Context, f *Function, d *progress) (events []*stream.Event, next uint64,
	err error) {
	r := stream.Reading{Stream: d.Stream, Tenant: d.TenantID, After: uint64(d.Place), UpTo: uint64(d.UpTo)}
	heard, seen := 0, map[string]bool{} // heard: refused or not
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
			} else if !seen[e.ID] { // the stream may have it twice
				events, seen[e.ID] = append(events, e), true
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
	if isDuplicate(err) { // see addRuns
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
		if n := len(events); n > 0 && int64(events[n-1].Place) == place {
			d.Event = events[n-1].ID
		}
		_, err = progresses.Replace(ctx, tx, d)
		return err
	})
}
