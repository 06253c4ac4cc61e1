package job

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	places       = 128 // runs that a replica works on at a time
	tenantPlaces = 64  // of these, those of one tenant
	window       = 500 // due runs that are looked at together
	startsAtOnce = 8   // runs of a tenant that one transaction claims

	lookAgain = 200 * time.Millisecond
	lastWords = 5 * time.Second // to store what became of the runs when the process stops
)

// crew is what this replica is working on.
type crew struct {
	mu      sync.Mutex
	calls   map[docstore.Ref]context.CancelFunc
	tenants map[string]int
	ended   chan struct{} // receives a signal after a run
	due     turns[run]
}

func newCrew() *crew {
	return &crew{
		calls: map[docstore.Ref]context.CancelFunc{}, tenants: map[string]int{}, ended: make(chan struct{}, 1),
		due: turns[run]{of: runs, by: byNext, group: startsAtOnce, others: 16},
	}
}

// enter takes a place for a run. It fails if there is none, or the run has one already.
func (c *crew) enter(ref docstore.Ref, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, busy := c.calls[ref]; busy || len(c.calls) == places || c.tenants[ref.Tenant] == tenantPlaces {
		return false
	}
	c.calls[ref] = cancel
	c.tenants[ref.Tenant]++
	return true
}

func (c *crew) leave(ref docstore.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[ref]()
	delete(c.calls, ref)
	if c.tenants[ref.Tenant]--; c.tenants[ref.Tenant] == 0 {
		delete(c.tenants, ref.Tenant)
	}
	select {
	case c.ended <- struct{}{}:
	default:
	}
}

func (c *crew) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// cancel ends the call of a run, if this replica makes one.
func (c *crew) cancel(ref docstore.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stop, ok := c.calls[ref]; ok {
		stop()
	}
}

// Work works on due runs until there are none, and none is being worked on. Several replicas can do so at a time.
func (s *Jobs) Work(ctx context.Context) (int, error) {
	var working sync.WaitGroup
	defer working.Wait()
	for {
		due, err := s.crew.due.list(ctx, s.Store, window)
		if err != nil {
			return 0, err
		}
		started := 0
		for _, group := range due {
			n, err := s.startAll(ctx, group, &working)
			if err != nil {
				return 0, err
			}
			started += n
		}
		if started == 0 && s.crew.size() == 0 {
			return 0, nil
		}
		pause := time.NewTimer(lookAgain)
		select {
		case <-ctx.Done():
			pause.Stop()
			return 0, ctx.Err()
		case <-s.crew.ended:
		case <-pause.C:
		}
		pause.Stop()
	}
}

// startAll claims runs of one tenant, as many as there are places for, and begins to work on them one after the other,
// at the pace of s.starts. It returns how many it has tried to claim.
func (s *Jobs) startAll(ctx context.Context, group []docstore.Ref, working *sync.WaitGroup) (int, error) {
	contexts := map[string]context.Context{} // of the calls, by run
	var ids []string
	for _, ref := range group {
		call, cancel := context.WithCancel(request.System(ctx, ref.Tenant))
		if !s.crew.enter(ref, cancel) {
			cancel()
			continue
		}
		contexts[ref.ID] = call
		ids = append(ids, ref.ID)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	tenant := group[0].Tenant
	for _, call := range s.claimEach(request.System(ctx, tenant), ids) {
		at := contexts[call.SubJobID]
		delete(contexts, call.SubJobID)
		stopped := s.starts.Wait(ctx)
		working.Go(func() {
			defer s.crew.leave(docstore.Ref{Tenant: tenant, ID: call.SubJobID})
			if stopped != nil {
				s.giveBack(at, call)
				return
			}
			s.work(at, call)
		})
	}
	for id := range contexts { // there is nothing to do
		s.crew.leave(docstore.Ref{Tenant: tenant, ID: id})
	}
	return len(ids), ctx.Err()
}

// claimEach claims runs together or, if that fails, each alone, so that one that cannot be claimed delays no others.
func (s *Jobs) claimEach(ctx context.Context, ids []string) []Call {
	calls, err := s.claim(ctx, ids)
	if err == nil {
		return calls
	}
	for _, id := range ids {
		one, err := s.claim(ctx, []string{id})
		if kind := apperr.KindOf(err); err != nil && ctx.Err() == nil && kind != apperr.NotFound &&
			kind != apperr.VersionMismatch {
			s.Log.ErrorContext(ctx, "a run cannot be claimed", "id", id, "error", err)
		}
		calls = append(calls, one...)
	}
	return calls
}

// giveBack undoes the claim of a run whose call has not begun when the process is stopped.
func (s *Jobs) giveBack(ctx context.Context, call Call) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	err := docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		r, err := current(ctx, tx, call.SubJobID, call.Attempt)
		if err != nil {
			return err
		}
		sub, err := subJobs.Load(ctx, tx, r.ID)
		if err != nil {
			return err
		}
		r.Attempt--
		r.Phase, r.Next = ready, tx.Now
		sub.State, sub.Attempt = pending, r.Attempt
		if _, err := runs.Touch(ctx, tx, r); err != nil {
			return err
		}
		_, err = subJobs.Touch(ctx, tx, sub)
		return err
	})
	if err != nil && !errors.Is(err, errOver) {
		s.Log.ErrorContext(ctx, "a run cannot be given back", "id", call.SubJobID, "error", err)
	}
}

// work makes a call and stores what became of it.
func (s *Jobs) work(ctx context.Context, call Call) {
	outcome, failure := s.call(ctx, call)
	// It is stored even if the process is about to stop.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	err := s.report(ctx, call.SubJobID, call.Attempt, outcome, failure)
	s.attempts.WithLabelValues(call.Target.Type, outcomeOf(outcome, failure, err)).Inc()
	if err != nil && !errors.Is(err, errOver) {
		s.Log.ErrorContext(ctx, "the outcome of a run cannot be stored", "id", call.SubJobID, "error", err)
	}
}

var errStopped = errors.New("the process that ran it was stopped")

// call calls the run's target and keeps the lease meanwhile. It ends when the lease is lost.
func (s *Jobs) call(ctx context.Context, call Call) (outcome Outcome, err error) {
	runner, ok := s.Runners[call.Target.Type]
	if !ok {
		return Outcome{}, fmt.Errorf("there is nothing that runs targets of the type %s", call.Target.Type)
	}
	if !s.Store.Now().Before(call.LeaseEnds) { // the process stood still since it claimed the run
		return Outcome{}, errStopped
	}
	if call.Target.Secret.IsSet() {
		if call.Secret, err = jobs.Reveal(ctx, s.Store, call.JobID, targetSecret); err != nil {
			s.Log.ErrorContext(ctx, "a target's secret cannot be read", "job", call.JobID, "error", err)
			return Outcome{}, errors.New("the target's secret cannot be read")
		}
	}
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	timed, cancel := context.WithTimeout(ctx, call.Deadline.Sub(s.Store.Now()))
	defer cancel()
	var keeping sync.WaitGroup
	defer keeping.Wait()
	keeping.Go(func() { s.keep(timed, call, lost) })
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			s.Log.ErrorContext(ctx, "a run panicked", "id", call.SubJobID, "fault", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			err = errors.New("an internal fault")
		}
	}()
	outcome, err = runner.Run(timed, call)
	switch {
	case err == nil || ctx.Err() == nil && timed.Err() == nil:
		return outcome, err
	case ctx.Err() != nil:
		return outcome, errStopped
	}
	return outcome, context.DeadlineExceeded
}

// keep renews the lease of a call until ctx ends.
func (s *Jobs) keep(ctx context.Context, call Call, lost context.CancelCauseFunc) {
	ticker := time.NewTicker(s.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.renew(ctx, call.SubJobID, call.Attempt); errors.Is(err, errOver) {
			lost(err)
			return
		}
	}
}
