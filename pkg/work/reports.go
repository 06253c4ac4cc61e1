package work

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// reportDelay is how long an outcome waits for others while more attempts are in progress. With many of them, most of
// the cost of an outcome is that of its transaction.
const reportDelay = 25 * time.Millisecond

// report is what became of an attempt.
type report[T any] struct {
	item    *T // as Do has left it
	attempt int64
	outcome Outcome
	err     error // why it is not stored; set before the batch is done
}

// batch are reports of a tenant, with the same key of With, that one transaction stores.
type batch[T any] struct {
	reports []*report[T]
	full    chan struct{} // closed when there are as many as are stored together
	done    chan struct{} // closed when they are stored, or refused
}

type batchKey struct{ tenant, key string }

// reports collects reports. The goroutine that brings a batch's first report stores the batch.
type reports[T any] struct {
	mu      sync.Mutex
	waiting map[batchKey]*batch[T]
}

// join adds a report to the waiting batch of a key, or to a new one: then it is the first, and its caller stores the
// batch.
func (c *reports[T]) join(of batchKey, r *report[T], most int) (b *batch[T], first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b = c.waiting[of]
	if first = b == nil; first {
		b = &batch[T]{full: make(chan struct{}), done: make(chan struct{})}
		c.waiting[of] = b
	}
	if b.reports = append(b.reports, r); len(b.reports) == most {
		close(b.full)
		delete(c.waiting, of)
	}
	return b, first
}

// close ends the time in which reports can join a batch.
func (c *reports[T]) close(of batchKey, b *batch[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[of] == b {
		delete(c.waiting, of)
	}
}

// store stores what became of an attempt and sets the report's error, with reports of other attempts if there are some
// at the time. It is stored even if ctx has ended, which only ends the wait for others.
func (q *Queue[T, I]) store(ctx context.Context, r *report[T]) {
	of := batchKey{request.Tenant(ctx), r.outcome.key}
	b, first := q.reports.join(of, r, q.Together)
	if !first {
		<-b.done
		return
	}
	if q.Together > 1 && q.attempts.Count() > 1 {
		delay := time.NewTimer(reportDelay)
		select {
		case <-delay.C:
		case <-b.full:
		case <-ctx.Done():
		}
		delay.Stop()
	}
	q.reports.close(of, b)
	defer close(b.done)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if of.key != "" {
		ctx = docstore.InTurn(ctx, of.key)
	}
	stored, refused := q.settle(ctx, b.reports)
	if stored || len(b.reports) == 1 {
		return
	}
	for i, r := range b.reports { // each alone, so that one that cannot be stored delays no others
		// What may have been stored, and undoes the claim, could undo that of another replica.
		if refused || r.outcome.kind != notStarted {
			q.settle(ctx, b.reports[i:i+1])
		}
	}
}

// settle stores reports in one transaction and sets their errors. If one cannot be stored, none is; reports of attempts
// that are over are left out. With refused certainly none is stored; otherwise the commit failed, and nobody knows.
func (q *Queue[T, I]) settle(ctx context.Context, all []*report[T]) (stored, refused bool) {
	ids := make([]string, len(all))
	for i, r := range all {
		ids[i] = I(r.item).queued().ID
	}
	err := docstore.Do(ctx, q.Store, func(tx *docstore.Tx) (err error) {
		defer func() { refused = err != nil }()
		items, err := q.Items.LoadMany(ctx, tx, ids)
		if err != nil {
			return err
		}
		for _, r := range all {
			r.err = ErrOver
			i := slices.IndexFunc(items, func(item *T) bool {
				return I(item).queued().ID == I(r.item).queued().ID
			})
			if i < 0 {
				continue
			}
			if r.err = q.end(ctx, tx, items[i], r); r.err != nil && !errors.Is(r.err, ErrOver) {
				return r.err
			}
		}
		return nil
	})
	if err != nil {
		for _, r := range all {
			r.err = err
		}
	}
	return err == nil, refused
}

// end stores what becomes of an item. The error is ErrOver if the attempt is not the current one.
func (q *Queue[T, I]) end(ctx context.Context, tx *docstore.Tx, item I, r *report[T]) error {
	o := &r.outcome
	if o.store != nil {
		if err := o.store(ctx, tx); err != nil {
			return err
		}
	}
	if !q.holds(item, r.attempt) {
		return ErrOver
	}
	if q.States != nil {
		return q.States.End(ctx, tx, item, r.item)
	}
	at := item.queued()
	switch o.kind {
	case retry:
		at.Next = tx.Now.Add(q.Pause(at.Attempt))
	case notStarted:
		at.Attempt, at.Next = at.Attempt-1, tx.Now.Add(o.after)
	default:
		_, err := q.Items.Delete(ctx, tx, item)
		return err
	}
	_, err := q.Items.Replace(ctx, tx, item)
	return err
}
