package engine

import (
	"context"
	"sync"
	"time"
)

// Work is the work for all questions of one request. It is for one goroutine. For questions about one identity, one
// after the other, what reaches the identity is found only once.
type Work struct {
	pause func(ctx context.Context, took time.Duration) error

	units int       // since the last pause
	look  int       // at how many units spend looks at the clock
	since time.Time // the last pause

	reach reach
	state *State   // reach is of this state,
	who   Identity // and of this identity
	known bool     // whether the state knows the identity

	candidates []*Resource // see State.candidates
}

const (
	// slice is how long the questions of a request work between two pauses.
	slice = 200 * time.Microsecond
	// leastUnits of work, each some tens of nanoseconds, are always done between pauses. If less work has taken longer
	// than slice, others had the processor meanwhile.
	leastUnits = 2000
	// unitsALook are done between further looks at the clock.
	unitsALook = 500
	// maxKept is the number of candidates for which memory is kept between requests.
	maxKept = 1000
)

var works = sync.Pool{New: func() any { return new(Work) }}

// NewWork begins the work of a request; Done ends it. pause, which may be nil, is called whenever the work has used a
// processor for about a fifth of a millisecond, with the exact time, so that others can work meanwhile. An error of
// pause ends the question.
func NewWork(pause func(ctx context.Context, took time.Duration) error) *Work {
	w := works.Get().(*Work)
	w.pause, w.units, w.look, w.state = pause, 0, leastUnits, nil
	if pause != nil {
		w.since = time.Now()
	}
	return w
}

// Done ends the work. Its questions must have been answered.
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

// reached is what reaches an identity in a state, and whether the state knows the identity.
func (w *Work) reached(s *State, who Identity) (*reach, bool) {
	if w.state != s || w.who != who {
		w.known = s.reach(&w.reach, who)
		w.state, w.who = s, who
	}
	return &w.reach, w.known
}
