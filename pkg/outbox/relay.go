package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Store is the part of *docstore.Store that the relay uses.
type Store interface {
	// Pending lists messages that are not yet Published and whose Seq is greater than after, oldest first.
	Pending(ctx context.Context, after int64, limit int) ([]docstore.Message, error)
	// Published removes messages.
	Published(ctx context.Context, seqs []int64) error
	// Appended receives a signal after new messages; signals may be merged or missing.
	Appended() <-chan struct{}
	// Backlog returns the number of pending messages.
	Backlog(ctx context.Context) (int64, error)
}

// Publisher is the part of *bus.Bus that the relay uses.
type Publisher interface {
	// Publish sends messages together and waits for JetStream to acknowledge them. It returns an error for each
	// message, nil if JetStream has stored it. It must return soon after ctx ends.
	Publish(ctx context.Context, messages []docstore.Message) []error
	// Sync returns when everything acknowledged before the call survives a power failure.
	Sync(ctx context.Context) error
	// Keep is how long acknowledged messages may be collected for one Sync; 0 if Sync has nothing to do.
	Keep() time.Duration
}

const (
	batchSize    = 512
	maxKept      = 4096             // messages; at full speed they are synced more often than once each Keep
	pollEvery    = 5 * time.Second  // for what a replica that has died leaves; Appended tells about this process's own
	pollKept     = time.Second      // while messages are kept, to remove them from the store
	lasting      = 30 * time.Second // a failure for this long is more than a restart of NATS
	syncWithin   = 5 * time.Second
	forgetWithin = 2 * time.Second // for the last calls after the time to stop has passed
	takeOver     = 3 * time.Second // the age from which a message of another process is published by all
)

// Relay publishes a store's messages to JetStream, and removes them from the store when JetStream cannot lose them any
// more. After a power failure the store may still have messages that JetStream had acknowledged: they are sent again
// after the next start, and JetStream drops those that it has. Several replicas may relay the same store: each leaves
// the others' messages to them for a while, and JetStream drops what two send.
type Relay struct {
	store     Store
	publisher Publisher
	log       *slog.Logger
	metrics   *metrics

	poll    time.Duration
	pace    time.Duration // minimum time between batches that are not full, because each costs the store a commit
	backoff backoff.BackOff

	mu       sync.Mutex
	kept     map[int64]bool   // acknowledged by JetStream, not yet removed from the store
	keptFrom time.Time        // when the first of them was acknowledged
	after    int64            // all messages up to here are kept or left; they are not read again
	left     time.Time        // when the first of them was left to the process that appended it; zero if none is
	leftFrom map[string]int64 // by record, the first message that was left
	taken    map[string]bool  // records of which no message is left until all have been read: see overtakes

	progress time.Time // when JetStream last accepted a message, or there was none to send

	troubled time.Time // since when a message is not accepted; zero if all are
	told     bool      // the log says that the trouble lasts

	stopOnce sync.Once
	stopping chan struct{}
	cancel   context.CancelFunc
	done     chan struct{}
}

// StartRelay starts a relay. Its metrics go to reg, which may be nil.
func StartRelay(store Store, publisher Publisher, log *slog.Logger, reg prometheus.Registerer) (*Relay, error) {
	r := newRelay(store, publisher, log)
	if reg != nil {
		if err := reg.Register(r.metrics); err != nil {
			return nil, fmt.Errorf("register the outbox metrics: %w", err)
		}
	}
	r.start()
	return r, nil
}

func newRelay(store Store, publisher Publisher, log *slog.Logger) *Relay {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier, wait.MaxInterval = 50*time.Millisecond, 2, 5*time.Second
	r := &Relay{
		store: store, publisher: publisher, log: log, kept: map[int64]bool{}, progress: time.Now(),
		leftFrom: map[string]int64{}, taken: map[string]bool{},
		poll: pollEvery, pace: 10 * time.Millisecond, backoff: wait,
		stopping: make(chan struct{}), done: make(chan struct{}),
	}
	r.metrics = newMetrics(r)
	return r
}

func (r *Relay) start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go r.run(ctx)
}

// Stop continues until the store has no more messages or ctx ends, and then stops. If messages are left, it returns an
// error; they wait for the next relay. Stop everything that writes first.
func (r *Relay) Stop(ctx context.Context) error {
	r.stopOnce.Do(func() { close(r.stopping) })
	select {
	case <-r.done:
	case <-ctx.Done():
		r.cancel()
		<-r.done
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetWithin)
	defer cancel()
	left, err := r.store.Pending(ctx, 0, 1)
	if err != nil {
		return fmt.Errorf("the outbox after the stop: %w", err)
	}
	if len(left) > 0 {
		return errors.New("the outbox is not empty: its events will be published after the next start")
	}
	return nil
}

// run relays until ctx ends or, once stopping, until nothing is pending.
func (r *Relay) run(ctx context.Context) {
	defer close(r.done)
	defer r.cancel()
	defer func() { _ = r.forget(ctx) }() // what remains is only sent twice
	stopping := r.stopping
	poll := time.NewTimer(r.poll)
	defer poll.Stop()
	for {
		started := time.Now()
		n, err := r.batch(ctx, stopping == nil)
		if ctx.Err() != nil {
			return
		}
		r.note(err)
		var wait time.Duration
		switch {
		case err != nil:
			wait = r.backoff.NextBackOff()
		case n == batchSize:
			continue
		case n > 0:
			wait = max(0, r.pace-time.Since(started))
		case stopping == nil:
			return
		default: // nothing to do until one of these happens
			poll.Reset(r.untilPoll())
			select {
			case <-r.store.Appended():
			case <-poll.C:
			case <-stopping:
				stopping = nil
			case <-ctx.Done():
			}
			continue
		}
		if stopping = r.rest(ctx, wait, stopping); ctx.Err() != nil {
			return
		}
	}
}

// untilPoll is how long the relay waits for a signal before it looks into the store.
func (r *Relay) untilPoll() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := r.poll
	if len(r.kept) > 0 {
		wait = min(wait, pollKept)
	}
	if !r.left.IsZero() {
		wait = min(wait, max(0, takeOver-time.Since(r.left)))
	}
	return wait
}

// rest waits. When it is time to stop, it returns nil at once.
func (r *Relay) rest(ctx context.Context, wait time.Duration, stopping chan struct{}) chan struct{} {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-stopping:
		return nil
	}
	return stopping
}

// batch relays at most batchSize messages and returns how many it found. The last batch also removes kept messages from
// the store.
func (r *Relay) batch(ctx context.Context, last bool) (int, error) {
	if r.isDue() {
		if err := r.forget(ctx); err != nil {
			return 0, err
		}
	}
	r.lookAgain(last)
	page, err := r.store.Pending(ctx, r.after, batchSize)
	if err != nil {
		return 0, fmt.Errorf("read the outbox: %w", err)
	}
	messages := r.notKept(slices.Clone(page))
	if !last {
		if messages = r.leave(messages); r.overtakes(messages) {
			return batchSize, nil // there is more to read
		}
	}
	if len(messages) == 0 {
		r.progressed()
		r.passed(page)
		switch {
		case len(page) >= batchSize:
			return batchSize, nil
		case last:
			return 0, r.forget(ctx)
		}
		return 0, nil
	}
	if err = r.publish(ctx, messages); err == nil {
		r.passed(page)
	}
	if err != nil || r.publisher.Keep() == 0 {
		// Without the kept messages, those that were not accepted are the first again.
		err = errors.Join(err, r.forget(ctx))
	}
	return min(len(page), batchSize), err
}

// publish sends messages in waves. Each wave has at most one message of a record: what follows a message that was not
// accepted must wait for it.
func (r *Relay) publish(ctx context.Context, messages []docstore.Message) error {
	var failure error
	stuck := map[string]bool{}
	for _, wave := range waves(messages) {
		if len(stuck) > 0 {
			wave = without(wave, stuck)
		}
		if len(wave) == 0 {
			continue
		}
		var acknowledged []int64
		for i, err := range r.publisher.Publish(ctx, wave) {
			if err != nil {
				stuck[wave[i].Record] = true
				failure = err
				continue
			}
			acknowledged = append(acknowledged, wave[i].Seq)
		}
		r.keep(acknowledged)
		r.metrics.published.Add(float64(len(acknowledged)))
		r.metrics.failures.Add(float64(len(wave) - len(acknowledged)))
	}
	if failure != nil {
		return fmt.Errorf("publish: %w", failure)
	}
	return nil
}

// note logs when events are no longer published, that this lasts, and when they are published again, but not each
// attempt.
func (r *Relay) note(err error) {
	switch {
	case err == nil:
		if !r.troubled.IsZero() {
			r.log.Info("events are published again", "after", time.Since(r.troubled).Round(time.Millisecond))
		}
		r.troubled, r.told = time.Time{}, false
		r.backoff.Reset()
	case r.troubled.IsZero():
		r.troubled = time.Now()
		r.log.Warn("events are not published; they are kept and tried again", "error", err)
	case !r.told && time.Since(r.troubled) > lasting:
		r.told = true
		r.log.Error("events are still not published", "after", time.Since(r.troubled).Round(time.Second), "error", err)
	}
}

// waves splits messages so that the nth message of a record is in the nth wave.
func waves(messages []docstore.Message) [][]docstore.Message {
	var list [][]docstore.Message
	seen := make(map[string]int, len(messages))
	for _, m := range messages {
		n := seen[m.Record]
		seen[m.Record] = n + 1
		if n == len(list) {
			list = append(list, nil)
		}
		list[n] = append(list[n], m)
	}
	return list
}

func without(wave []docstore.Message, stuck map[string]bool) []docstore.Message {
	kept := wave[:0]
	for _, m := range wave {
		if !stuck[m.Record] {
			kept = append(kept, m)
		}
	}
	return kept
}
