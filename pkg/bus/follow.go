package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	followTries = 4
	followIdle  = 30 * time.Second
	pollEvery   = 5 * time.Second

	firstReminder, lastReminder = 10 * time.Second, 5 * time.Minute
)

// reminder says when to tell again that something lasts: after longer and longer pauses.
type reminder struct {
	told  time.Time
	pause time.Duration
}

func (r *reminder) due(now time.Time) bool {
	if now.Sub(r.told) < r.pause {
		return false
	}
	*r = reminder{now, min(2*r.pause, lastReminder)}
	return true
}

// FollowerConfig says what a replica follows and how.
type FollowerConfig struct {
	Name     string   // for logs and metrics, unique in the service, such as "ended-tokens"
	Subjects []string // filter of events, such as "idp.events.*.user.*"

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
	bus    *Bus
	config FollowerConfig
	cancel context.CancelFunc
	done   chan struct{}

	// State of the running session.
	place   uint64    // the last stream sequence that is in the replica's state
	created time.Time // creation time of the stream that place is in; zero before the first snapshot
	event   string    // the id of the event at place; "" if it is not known
	begun   bool      // the first snapshot has been announced

	mu    sync.Mutex
	stale error     // the reason why the state may be out of date; nil once it is up to date
	lost  time.Time // when NATS was last heard; zero once a session has read what came meanwhile
}

var errNoSnapshot = errors.New("the snapshot is not complete")

// Follow starts a follower and returns; it does not wait for NATS. Ready reports when it has caught up.
func (b *Bus) Follow(ctx context.Context, c FollowerConfig) (*Follower, error) {
	if !word.MatchString(c.Name) {
		return nil, fmt.Errorf("%q is not a valid follower name", c.Name)
	}
	if err := checkSubjects(c.Subjects); err != nil {
		return nil, fmt.Errorf("follower %s: %w", c.Name, err)
	}
	if c.Handle == nil || c.Snapshot == nil {
		return nil, fmt.Errorf("follower %s: no handler or no snapshot", c.Name)
	}
	if c.retry == nil {
		c.retry = followDelays
	}
	b.metrics.begin(c.Name, b.metrics.skipped)
	f := &Follower{bus: b, config: c, done: make(chan struct{}), stale: errNoSnapshot, lost: time.Now()}
	if c.Started != nil {
		c.Started(f)
	}
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go f.run(ctx)
	b.mu.Lock()
	b.followers = append(b.followers, f)
	b.mu.Unlock()
	return f, nil
}

// Ready returns the reason why the replica's state is not up to date; nil once it has caught up with the stream. When
// NATS is away later the state is as old as Age says: Ready fails from MaxAge on.
func (f *Follower) Ready() error {
	age := f.Age()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stale != nil {
		return fmt.Errorf("%s: %w", f.config.Name, f.stale)
	}
	if f.config.MaxAge > 0 && age >= f.config.MaxAge {
		return fmt.Errorf("%s: nothing was heard from NATS for %v", f.config.Name, age.Round(time.Second))
	}
	return nil
}

// Age is how old the state may be: how long ago the follower lost NATS, until it has read the events since then; 0
// while it is connected. A connection that is silently broken is noticed after two heartbeats, which then count.
func (f *Follower) Age() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost.IsZero() {
		return 0
	}
	return max(1, time.Since(f.lost))
}

// caughtUp notes that a session has read what was in the stream when it began, and disconnected that it has ended.
func (f *Follower) caughtUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale, f.lost = nil, time.Time{}
}

func (f *Follower) disconnected(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.lost.IsZero() {
		return
	}
	if f.lost = time.Now(); errors.Is(err, jetstream.ErrNoHeartbeat) {
		f.lost = f.lost.Add(-2 * heartbeat)
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
		f.mu.Lock()
		begun, away := f.stale != errNoSnapshot, !f.lost.IsZero() //nolint:errorlint // it is set as it is
		f.mu.Unlock()
		if !begun || !away {
			continue
		}
		if err := f.config.Meanwhile(ctx); err != nil && ctx.Err() == nil {
			f.bus.log.Warn("a follower without NATS could not bring its state up to date", "follower", f.config.Name,
				"error", err)
		}
	}
}

// Stop ends the follower. It cancels the context of a running handler or snapshot, and waits for it.
func (f *Follower) Stop() {
	f.bus.mu.Lock()
	f.bus.followers = slices.DeleteFunc(f.bus.followers, func(other *Follower) bool { return other == f })
	f.bus.mu.Unlock()
	f.cancel()
	<-f.done
}

func (f *Follower) setStale(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = err
}

func (f *Follower) run(ctx context.Context) {
	var others sync.WaitGroup
	defer close(f.done)
	defer others.Wait()
	if f.config.Meanwhile != nil {
		others.Go(func() { f.pollWhileAway(ctx) })
	}
	wait, troubled, remind := patience(), false, reminder{}
	for ctx.Err() == nil {
		connected, cancel, err := f.bus.link.wait(ctx)
		if err != nil {
			return
		}
		began := f.place
		err = f.session(connected)
		f.disconnected(err)
		if connected.Err() == nil {
			if !troubled {
				f.bus.log.Warn("a follower lost its session and continues where it stopped",
					"follower", f.config.Name, "error", err)
				remind = reminder{time.Now(), firstReminder}
			} else if remind.due(time.Now()) {
				f.bus.log.Warn("a follower still waits", "follower", f.config.Name, "error", err)
			}
			if troubled = f.place == began; !troubled {
				wait.Reset()
			}
			clock.Pause(connected, wait.NextBackOff())
		}
		cancel()
	}
}

// session follows the stream until ctx ends or the order of messages is no longer certain.
func (f *Follower) session(ctx context.Context) error {
	stream, err := f.bus.js.Stream(ctx, EventStream)
	if err != nil {
		return fmt.Errorf("look at the stream: %w", err)
	}
	if err := f.resume(ctx, stream); err != nil {
		return err
	}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubjects:    f.config.Subjects,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       f.place + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: followIdle,
	})
	if err != nil {
		return fmt.Errorf("make a consumer: %w", err)
	}
	defer f.forget(stream, consumer)
	from, behind := f.place, consumer.CachedInfo().NumPending // events that are there already and still to be read
	if behind == 0 {
		f.caughtUp()
	}
	return Each(ctx, consumer, func(m jetstream.Msg, meta *jetstream.MsgMetadata) error {
		if err := f.handle(ctx, m); err != nil {
			return err
		}
		f.event, f.place = m.Headers().Get(nats.MsgIdHdr), meta.Sequence.Stream
		f.bus.metrics.lag.WithLabelValues(f.config.Name).Set(float64(meta.NumPending))
		if behind == 0 {
			return nil
		}
		if behind = min(behind-1, meta.NumPending); behind == 0 {
			if err := f.checkKept(ctx, stream, from); err != nil {
				return err
			}
			f.caughtUp()
		}
		return nil
	})
}

// resume takes a snapshot if the stream no longer has the events after the follower's place, or has another event
// there: a server may lose its newest events in a power cut.
func (f *Follower) resume(ctx context.Context, stream jetstream.Stream) error {
	info := stream.CachedInfo()
	state := info.State
	if f.created.Equal(info.Created) && oldestKept(info) <= f.place+1 && f.place <= state.LastSeq {
		there, err := idAt(ctx, stream, f.place)
		if err != nil || there == "" || f.event == "" || there == f.event {
			return err
		}
	}
	if f.created.IsZero() {
		if !f.begun { // it begins again and again while the other service is away
			f.bus.log.Info("a follower begins with a snapshot", "follower", f.config.Name)
		}
		f.begun = true
	} else {
		f.bus.log.Warn(
			"a follower begins again with a snapshot: the stream does not have the events that it has not seen",
			"follower", f.config.Name)
	}
	f.setStale(errNoSnapshot)
	event, err := idAt(ctx, stream, state.LastSeq)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := f.config.Snapshot(ctx); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	f.bus.log.Info("a follower's snapshot is complete", "follower", f.config.Name, "took", time.Since(began).
		Round(time.Millisecond))
	f.place, f.created, f.event = state.LastSeq, info.Created, event
	f.setStale(errors.New("the follower is catching up with the stream"))
	return nil
}

// oldestKept returns the first place from which on the stream has all events of all tenants.
func oldestKept(info *jetstream.StreamInfo) uint64 {
	return max(info.State.FirstSeq, Dropped(info.Config, "")+1)
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

// checkKept checks that the stream has dropped nothing after a place while the follower caught up.
func (f *Follower) checkKept(ctx context.Context, stream jetstream.Stream, from uint64) error {
	info, err := stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("look at the stream: %w", err)
	}
	if oldestKept(info) > from+1 {
		f.created = time.Time{}
		return errors.New("the stream dropped events while they were read")
	}
	return nil
}

// handle passes an event to the handler, or skips it. It fails only when ctx ends.
func (f *Follower) handle(ctx context.Context, message jetstream.Msg) error {
	e, err := Decode(message.Subject(), message.Data())
	wait := f.config.retry()
	for try := 1; err == nil; try++ {
		if err = f.call(ctx, e); err == nil {
			f.bus.metrics.handled.WithLabelValues(f.config.Name).Inc()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.bus.metrics.failed.WithLabelValues(f.config.Name).Inc()
		if try == followTries {
			break
		}
		err = nil
		clock.Pause(ctx, wait.NextBackOff())
	}
	f.bus.metrics.skipped.WithLabelValues(f.config.Name).Inc()
	f.bus.log.Error("an event is skipped", "follower", f.config.Name, "subject", message.Subject(), "event", e.ID,
		"error", err)
	return nil
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

// forget removes the session's consumer, which JetStream would remove after followIdle.
func (f *Follower) forget(stream jetstream.Stream, consumer jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := stream.DeleteConsumer(ctx, consumer.CachedInfo().Name); err != nil {
		f.bus.log.Debug("a follower's consumer was not removed", "follower", f.config.Name, "error", err)
	}
}

// followDelays are 0.1 s, 0.5 s and 2.5 s, each varied at random by up to a tenth.
func followDelays() backoff.BackOff {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier, wait.MaxInterval, wait.RandomizationFactor = 100*time.Millisecond, 5,
		5*time.Second, 0.1
	return wait
}
