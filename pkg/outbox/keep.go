package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// keep notes messages that JetStream has acknowledged.
func (r *Relay) keep(seqs []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) == 0 {
		r.keptFrom = time.Now()
	}
	for _, seq := range seqs {
		r.kept[seq] = true
	}
	if len(seqs) > 0 {
		r.progress = time.Now()
	}
}

func (r *Relay) progressed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = time.Now()
}

// notKept leaves out acknowledged messages. There are any only if a message before them was not accepted.
func (r *Relay) notKept(messages []docstore.Message) []docstore.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(messages, func(m docstore.Message) bool { return r.kept[m.Seq] })
}

// isDue reports whether the store should now remove the kept messages.
func (r *Relay) isDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.kept) > 0 && (len(r.kept) >= maxKept || time.Since(r.keptFrom) >= r.publisher.Keep())
}

// forget makes JetStream sync the kept messages to disk, and then removes them from the store. It does so even when the
// relay is being stopped, so that less is sent twice.
func (r *Relay) forget(ctx context.Context) error {
	r.mu.Lock()
	seqs := make([]int64, 0, len(r.kept))
	for seq := range r.kept {
		seqs = append(seqs, seq)
	}
	r.mu.Unlock()
	if len(seqs) == 0 {
		return nil
	}
	slices.Sort(seqs)
	ctx = context.WithoutCancel(ctx)
	syncing, cancel := context.WithTimeout(ctx, syncWithin)
	defer cancel()
	if err := r.publisher.Sync(syncing); err != nil {
		return fmt.Errorf("make published events durable: %w", err)
	}
	for part := range slices.Chunk(seqs, batchSize) { // in parts: one long transaction would delay others
		forgetting, cancel := context.WithTimeout(ctx, forgetWithin) // each waits behind other writers
		err := r.store.Published(forgetting, part)
		cancel()
		if err != nil {
			return fmt.Errorf("forget published events: %w", err)
		}
		r.mu.Lock()
		for _, seq := range part {
			delete(r.kept, seq)
		}
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = 0 // so that a message with a lower number that was committed late is found
	return nil
}

// waiting returns when the oldest message that JetStream does not have was made; the zero time if there is none.
func (r *Relay) waiting(ctx context.Context) (time.Time, error) {
	r.mu.Lock()
	after := r.after
	r.mu.Unlock()
	first, err := r.store.Pending(ctx, after, 1)
	if err != nil || len(first) == 0 {
		return time.Time{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept[first[0].Seq] {
		return time.Time{}, nil
	}
	return made(first[0].ID), nil
}

// backlog counts the messages that JetStream does not have.
func (r *Relay) backlog(ctx context.Context) (int64, error) {
	r.mu.Lock()
	kept := int64(len(r.kept))
	r.mu.Unlock()
	n, err := r.store.Backlog(ctx)
	return max(0, n-kept), err
}

// ErrStuck reports that events wait and are not published.
var ErrStuck = errors.New("events are not published")

// Stuck returns ErrStuck if events wait and JetStream has accepted none for longer than atMost. A backlog that shrinks
// is not stuck.
func (r *Relay) Stuck(ctx context.Context, atMost time.Duration) error {
	r.mu.Lock()
	still := time.Since(r.progress)
	r.mu.Unlock()
	if still <= atMost {
		return nil
	}
	since, err := r.waiting(ctx)
	if err != nil {
		return fmt.Errorf("look at the outbox: %w", err)
	}
	if age := time.Since(since); !since.IsZero() && age > atMost {
		return fmt.Errorf("%w: NATS has accepted none for %s, and the oldest has waited for %s",
			ErrStuck, still.Round(time.Second), age.Round(time.Second))
	}
	return nil
}
