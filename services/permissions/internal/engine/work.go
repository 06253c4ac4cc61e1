package engine

import (
	"context"
	"sync"
	"time"
)

// Work is what the questions of one request cost together. It is for one goroutine. Questions about one identity, one
// after the other, look only once for what reaches it.
type Work struct {
	pause func(ctx context.Context, took time.Duration) error

	units int       // since the last pause
	look  int       // at how many units the clock is looked at
	since time.Time // the last pause

	reach reach
	state *State // that reach is of
	who   Identity
	known bool

	candidates []*Resource // see State.candidates
}

const (
	// slice is how long the questions of a request work between two pauses.
	slice = 200 * time.Microsecond
	// leastUnits of work, each some tens of nanoseconds, are always done between pauses: the time of less work has
	// passed while others had the processor.
	leastUnits = 2000
	// unitsALook are done between looks at the clock after that.
	unitsALook = 500
	// maxKept is for how many candidates memory is kept between requests.
	maxKept = 1000
)

var works = sync.Pool{New: func() any { return new(Work) }}

// NewWork begins the work of a request; Done ends it. pause, which may be nil, is called each time that the work has
// kept a processor for about a fifth of a millisecond, with the time that it was, so that others can go on meanwhile.
// Its error ends the question.
func NewWork(pause func(ctx context.Context, took time.Duration) error) *Work {
	w := works.Get().(*Work)
	w.pause, w.units, w.look, w.state = pause, 0, leastUnits, nil
	if pause != nil {
		w.since = time.Now()
	}
	return w
}

// Done ends the work: nothing that it was part of may go on.
func (w *Work) Done() {
	w.reach.forget()
	if clear(w.candidates); cap(w.candidates) > maxKept {
		w.candidates = nil
	}
	w.state, w.pause = nil, nil
	works.Put(w)
}

// spend notes units of work, and pauses when it is time.
func (w *Work) spend(ctx context.Context, units int) error {
	if w.units += units; w.units < w.look {
		return nil
	}
	w.look = w.units + unitsALook
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if w.pause == nil {
		return nil
	}
	took := time.Since(w.since)
	if took < slice {
		return nil
	}
	err := w.pause(ctx, took)
	w.units, w.look, w.since = 0, leastUnits, time.Now()
	return err
}

// reached is what reaches an identity in a state. It reports whether the identity is known.
func (w *Work) reached(s *State, who Identity) (*reach, bool) {
	if w.state != s || w.who != who {
		w.known = s.reach(&w.reach, who)
		w.state, w.who = s, who
	}
	return &w.reach, w.known
}
