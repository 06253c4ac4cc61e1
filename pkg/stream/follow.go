package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	followTries = 4
	pollEvery   = 5 * time.Second
)

// FollowerConfig says what a replica follows and how.
type FollowerConfig struct {
	Name  string // for logs and metrics, unique in the service, such as "ended-tokens"
	Types Types  // of the events that it wants

	// Snapshot brings the replica's state up to date from what the services have stored. It is called before the first
	// event, and again whenever events may have been missed: the stream no longer has them, or was created again. No
	// event is handled meanwhile. Events that are published while it runs come afterwards, so the first events may
	// already be in the snapshot: Handle must drop those that are not newer.
	Snapshot func(ctx context.Context) error

	// Handle is called for one event after the other, in the order of the stream, in every replica. An event that fails
	// is tried four times within about 3 s, and then skipped, logged and counted. The context is request.System of the
	// event's tenant.
	Handle func(ctx context.Context, e Event) error

	// MaxAge makes Ready fail once the follower has heard nothing from NATS for so long; 0: never.
	MaxAge time.Duration

	// Meanwhile is called every few seconds while NATS is away, after the first snapshot: it can bring the state up to
	// date in another way. Its failures are logged. Optional.
	Meanwhile func(ctx context.Context) error

	// Started is called with the follower before it begins; optional.
	Started func(*Follower)

	retry func() backoff.BackOff // followDelays, except in tests
}

// Follower gives a replica all events, unlike a Consumer, which replicas share. It suits state that every replica holds
// in memory. Its place in the stream is not stored: after a restart it begins with a snapshot.
type Follower struct {
	log    *Log
	config FollowerConfig
	forget func() // what Bus.BeforeClose returned
	cancel context.CancelFunc
	done   chan struct{}

	wake chan struct{}

	// The Log's mutex guards these.
	begun  bool      // the first snapshot is complete
	stale  error     // the reason why the state may be out of date; nil once it is up to date
	place  uint64    // the state has all events up to here
	upTo   uint64    // the newest place when the last snapshot was complete
	resets int       // of the Log, when the last snapshot began
	lost   time.Time // when NATS was last heard; zero once the state has what came meanwhile
}

var (
	errNoSnapshot = errors.New("the snapshot is not complete")
	errCatchingUp = errors.New("the follower is catching up with the stream")
	errStopped    = errors.New("the follower has been stopped")
)

// Follow starts a follower and returns; it does not wait for NATS. Ready reports when it has caught up.
func (l *Log) Follow(ctx context.Context, c FollowerConfig) (*Follower, error) {
	if !bus.IsName(c.Name) {
		return nil, fmt.Errorf("%q is not a valid follower name", c.Name)
	}
	if err := c.Types.check(); err != nil {
		return nil, fmt.Errorf("follower %s: %w", c.Name, err)
	}
	if c.Handle == nil || c.Snapshot == nil {
		return nil, fmt.Errorf("follower %s: no handler or no snapshot", c.Name)
	}
	if c.retry == nil {
		c.retry = followDelays
	}
	l.metrics.begin(c.Name, l.metrics.skipped)
	f := &Follower{
		log: l, config: c, done: make(chan struct{}), wake: make(chan struct{}, 1), stale: errNoSnapshot,
		lost: time.Now(),
	}
	if c.Started != nil {
		c.Started(f)
	}
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.forget = l.bus.BeforeClose(func(context.Context) error { f.end(); return nil })
	l.mu.Lock()
	l.followers[f] = true
	l.mu.Unlock()
	go f.run(ctx)
	return f, nil
}

// Stop ends the follower. It cancels the context of a running handler or snapshot, and waits for it. The state gets
// older from then on.
func (f *Follower) Stop() {
	f.forget()
	f.end()
}

func (f *Follower) end() {
	f.cancel()
	<-f.done
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	delete(f.log.followers, f)
	if f.stale = errStopped; f.lost.IsZero() {
		f.lost = time.Now()
	}
}

// Ready returns the reason why the replica's state is not up to date; nil once it has caught up with the stream. When
// NATS is away later the state is as old as Age says: Ready fails from MaxAge on.
func (f *Follower) Ready() error {
	age := f.Age()
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if f.stale != nil {
		return fmt.Errorf("%s: %w", f.config.Name, f.stale)
	}
	if f.config.MaxAge > 0 && age >= f.config.MaxAge {
		return fmt.Errorf("%s: nothing was heard from NATS for %v", f.config.Name, age.Round(time.Second))
	}
	return nil
}

// Age is how old the state may be: how long ago the Log lost NATS, or the stream the events after the follower's place,
// until the follower has handled what came since then; otherwise 0. A connection that is silently broken is noticed
// after bus.Silence, which then counts.
func (f *Follower) Age() time.Duration {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if f.lost.IsZero() {
		return 0
	}
	return max(1, time.Since(f.lost))
}

// hear learns of an event that has come after the one at the place before. The Log's mutex is held.
func (f *Follower) hear(e *entry, before uint64) {
	switch {
	case f.config.Types.Match(e.kind):
		tell(f.wake)
	case f.hasSnapshot() && f.place == before:
		f.place = e.place
		f.refresh()
	}
}

// refresh notes when the state has what the Log has read since NATS was away. The Log's mutex is held.
func (f *Follower) refresh() {
	if f.hasSnapshot() && f.log.lost.IsZero() && f.place >= max(f.upTo, f.log.caughtUp) {
		f.stale, f.lost = nil, time.Time{}
	}
}

func (f *Follower) hasSnapshot() bool {
	return f.begun && f.resets == f.log.resets && f.stale != errNoSnapshot //nolint:errorlint // it is set as it is
}

// miss notes that the stream does not have the events after the follower's place. The Log's mutex is held.
func (f *Follower) miss() {
	if f.stale = errNoSnapshot; f.lost.IsZero() {
		f.lost = time.Now()
	}
	tell(f.wake)
}

// at returns the follower's place, and whether it must take a snapshot.
func (f *Follower) at() (place uint64, missed bool) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.place, !f.hasSnapshot()
}

func (f *Follower) run(ctx context.Context) {
	var others sync.WaitGroup
	defer close(f.done)
	defer others.Wait()
	if f.config.Meanwhile != nil {
		others.Go(func() { f.pollWhileAway(ctx) })
	}
	t := newTroubles(f.log.log, f.config.Name)
	for ctx.Err() == nil {
		began, _ := f.at()
		if err := f.follow(ctx); ctx.Err() == nil {
			now, _ := f.at()
			t.meet(ctx, err, now != began)
		}
	}
}

// pollWhileAway calls Meanwhile as long as NATS is away.
func (f *Follower) pollWhileAway(ctx context.Context) {
	every := time.NewTicker(pollEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		f.log.mu.Lock()
		due := f.hasSnapshot() && !f.lost.IsZero()
		f.log.mu.Unlock()
		if !due {
			continue
		}
		if err := f.config.Meanwhile(ctx); err != nil && ctx.Err() == nil {
			f.log.log.Warn("a follower without NATS could not bring its state up to date", "follower", f.config.Name,
				"error", err)
		}
	}
}

// follow handles events until ctx ends or they cannot be read. It takes a snapshot at first, and whenever the stream
// does not have the events after the follower's place.
func (f *Follower) follow(ctx context.Context) error {
	if err := f.log.Await(ctx); err != nil {
		return err
	}
	for {
		place, missed := f.at()
		if missed {
			connected, end, err := f.log.bus.WhileConnected(ctx)
			if err != nil {
				return err
			}
			err = f.snapshot(connected)
			if end(); err != nil {
				return err
			}
			continue
		}
		events, next, err := f.log.read(ctx, selection{types: f.config.Types, whole: true}, place, readAtOnce)
		if _, gone := errors.AsType[*GoneError](err); gone {
			f.log.mu.Lock()
			f.miss()
			f.log.mu.Unlock()
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := f.handle(ctx, *e); err != nil {
				return err
			}
			f.advance(e.Place)
		}
		if end := f.advance(next); next < end {
			continue
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// advance notes that the state has all events up to a place, and returns the newest place.
func (f *Follower) advance(place uint64) (end uint64) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.place = max(f.place, place)
	f.refresh()
	if f.hasSnapshot() {
		f.log.metrics.lag.WithLabelValues(f.config.Name).Set(float64(f.log.last) - float64(f.place))
	}
	return f.log.last
}

// snapshot takes a snapshot, and sets the place after which events are handled: the newest one before it was taken.
func (f *Follower) snapshot(ctx context.Context) error {
	f.log.mu.Lock()
	resets, place, again := f.log.resets, f.log.last, f.begun
	f.log.mu.Unlock()
	if again {
		f.log.log.Warn(
			"a follower begins again with a snapshot: the stream does not have the events that it has not seen",
			"follower", f.config.Name)
	}
	began := time.Now()
	if err := f.config.Snapshot(ctx); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	took := time.Since(began).Round(time.Millisecond)
	upTo, err := f.log.newestPlace(ctx)
	if err != nil {
		return err
	}
	f.log.log.Info("a follower's snapshot is complete", "follower", f.config.Name, "took", took)
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.begun, f.resets, f.place, f.upTo, f.stale = true, resets, place, upTo, errCatchingUp
	return nil
}

// handle passes an event to the handler, or skips it. It fails only when ctx ends.
func (f *Follower) handle(ctx context.Context, e Event) error {
	wait := f.config.retry()
	for try := 1; ; try++ {
		err := f.call(ctx, e)
		if err == nil {
			f.log.metrics.handled.WithLabelValues(f.config.Name).Inc()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.log.metrics.failed.WithLabelValues(f.config.Name).Inc()
		if try == followTries {
			f.log.metrics.skipped.WithLabelValues(f.config.Name).Inc()
			f.log.log.Error("an event is skipped", "follower", f.config.Name, "type", e.Type, "event", e.ID,
				"error", err)
			return nil
		}
		clock.Pause(ctx, wait.NextBackOff())
	}
}

// call turns a panic into an error.
func (f *Follower) call(ctx context.Context, e Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx = request.With(ctx, request.Info{ID: e.RequestID, PayloadOrigin: e.PayloadOrigin})
	return f.config.Handle(request.System(ctx, e.Tenant), e)
}

// followDelays are 0.1 s, 0.5 s and 2.5 s, each varied at random by up to a tenth.
func followDelays() backoff.BackOff {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier, wait.MaxInterval, wait.RandomizationFactor = 100*time.Millisecond, 5,
		5*time.Second, 0.1
	return wait
}
