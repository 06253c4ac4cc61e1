package job

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	// reportsAtOnce is how many reports of a tenant one transaction stores.
	reportsAtOnce = 8
	// reportDelay is how long a report waits for others while more calls are in progress. With many calls, most of the
	// cost of a report is that of its transaction.
	reportDelay = 25 * time.Millisecond
)

// report is what became of an attempt.
type report struct {
	id      string // of the run
	attempt int64
	outcome Outcome
	failure error
	err     error // why it is not stored; set before the batch is done
}

// batch are reports of a tenant that one transaction stores.
type batch struct {
	reports []*report
	full    chan struct{} // closed when there are reportsAtOnce
	done    chan struct{} // closed when they are stored, or refused
}

// reports collects reports by tenant. The goroutine that brings a batch's first report stores the batch.
type reports struct {
	mu      sync.Mutex
	waiting map[string]*batch // by tenant
}

// join adds a report to the tenant's waiting batch, or to a new one: then it is the first, and its caller stores the
// batch.
func (c *reports) join(tenant string, r *report) (b *batch, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b = c.waiting[tenant]
	if first = b == nil; first {
		b = &batch{full: make(chan struct{}), done: make(chan struct{})}
		c.waiting[tenant] = b
	}
	if b.reports = append(b.reports, r); len(b.reports) == reportsAtOnce {
		close(b.full)
		delete(c.waiting, tenant)
	}
	return b, first
}

// close ends the time in which reports can join a batch.
func (c *reports) close(tenant string, b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[tenant] == b {
		delete(c.waiting, tenant)
	}
}

// report stores what became of an attempt, with reports of other attempts if there are some at the time. The error is
// errOver if the attempt is not the current one, or has failed and its job is deleted; nothing is changed then. It is
// stored even if ctx has ended, which only ends the wait for others.
func (s *Jobs) report(ctx context.Context, id string, attempt int64, o Outcome, failure error) error {
	r := &report{id: id, attempt: attempt, outcome: o, failure: failure}
	tenant := request.Tenant(ctx)
	b, first := s.reports.join(tenant, r)
	if !first {
		<-b.done
		return r.err
	}
	if s.calls.Count() > 1 {
		delay := time.NewTimer(reportDelay)
		select {
		case <-delay.C:
		case <-b.full:
		case <-ctx.Done():
		}
		delay.Stop()
	}
	s.reports.close(tenant, b)
	defer close(b.done)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	s.storeEach(ctx, b.reports)
	return r.err
}

// storeEach stores reports together or, if that fails, each alone, so that one that cannot be stored delays no others.
func (s *Jobs) storeEach(ctx context.Context, all []*report) {
	if s.store(ctx, all) == nil || len(all) == 1 {
		return
	}
	for i := range all {
		_ = s.store(ctx, all[i:i+1])
	}
}

// store stores reports in one transaction and sets their errors. If one cannot be stored, none is; reports of attempts
// that are over are left out.
func (s *Jobs) store(ctx context.Context, all []*report) error {
	err := docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		for _, r := range all {
			if r.err = s.conclude(ctx, tx, r); r.err != nil && !errors.Is(r.err, errOver) {
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
	return err
}

// conclude concludes the attempt of a report.
func (s *Jobs) conclude(ctx context.Context, tx *docstore.Tx, r *report) error {
	held, err := current(ctx, tx, r.id, r.attempt)
	if err != nil {
		return err
	}
	sub, err := subJobs.Load(ctx, tx, r.id)
	if err != nil {
		return err
	}
	switch {
	case r.failure != nil:
		j, err := find(ctx, tx, held.JobID)
		if apperr.IsNotFound(err) {
			return errOver
		}
		if err != nil {
			return err
		}
		if errors.Is(r.failure, errNotBegun) {
			sub.Error = shorten(r.failure.Error())
			return undo(ctx, tx, sub, held, tx.Now.Add(laterRetry))
		}
		state, failure := failed, r.failure
		if errors.Is(failure, context.DeadlineExceeded) {
			state, failure = timedOut, errors.New("the attempt did not end within timeout_seconds")
		}
		return fail(ctx, tx, j, sub, held, state, failure.Error(), r.outcome.RetryAfter)
	case r.outcome.Accepted:
		held.Phase, held.Next = accepted, held.Deadline
		_, err := runs.Replace(ctx, tx, held)
		return err
	}
	return end(ctx, tx, sub, held, succeeded, r.outcome.Result, "")
}
