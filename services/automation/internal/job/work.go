package job

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	duePage      = 500 // due runs that are listed at a time
	claimsAtOnce = 8   // runs of a tenant that one transaction claims

	// waitAfter is when a call to a webhook or worker only waits. Then it has no slot any more.
	waitAfter = 2 * time.Second

	listAgain     = 200 * time.Millisecond // while runs are in progress
	reportTimeout = 5 * time.Second        // to store what became of a run when the process stops
	laterRetry    = 30 * time.Second       // after a function found no worker
)

var (
	slots      = fair.Limits{Most: 128, OfTenant: 32}   // runs that a replica works on at a time
	inProgress = fair.Limits{Most: 2048, OfTenant: 128} // with those that only wait for an answer
)

// Work works on due runs until none is due and none is in progress. Several replicas may do so at the same time.
func (s *Jobs) Work(ctx context.Context) (int, error) {
	var working sync.WaitGroup
	defer working.Wait()
	for failing := false; ; {
		changed, err := s.startDue(ctx, &working)
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case changed == 0 && s.calls.Count() == 0:
			return 0, err
		case err != nil && !failing: // until the calls in progress end, which can take a day, others begin again
			s.Log.ErrorContext(ctx, "runs that are due cannot be listed", "error", err)
		}
		failing = err != nil
		pause := time.NewTimer(listAgain)
		select {
		case <-ctx.Done():
			pause.Stop()
			return 0, ctx.Err()
		case <-s.calls.Ended:
		case <-pause.C:
		}
		pause.Stop()
	}
}

// startDue starts the runs that are due. It returns how many runs have changed.
func (s *Jobs) startDue(ctx context.Context, working *sync.WaitGroup) (changed int, err error) {
	groups, err := s.dueRuns.List(ctx, s.Store, duePage)
	if err != nil {
		return 0, err
	}
	for _, group := range groups {
		n, err := s.startAll(ctx, group, working)
		if changed += n; err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// startAll claims runs of one tenant, as many as may be in progress, and begins their calls one after the other, at the
// pace of s.starts. It returns how many runs the claim has changed.
func (s *Jobs) startAll(ctx context.Context, group []docstore.Ref, working *sync.WaitGroup) (int, error) {
	contexts := map[string]context.Context{} // of the calls, by run
	var ids []string
	for _, ref := range group {
		callCtx, cancel := context.WithCancel(request.System(ctx, ref.Tenant))
		if !s.calls.Add(ref, cancel) {
			cancel()
			continue
		}
		contexts[ref.ID] = callCtx
		ids = append(ids, ref.ID)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	tenant := group[0].Tenant
	claimed, changed := s.claimEach(request.System(ctx, tenant), ids)
	for _, call := range claimed {
		callCtx := contexts[call.SubJobID]
		delete(contexts, call.SubJobID)
		stopped := s.starts.Wait(ctx)
		working.Go(func() {
			defer s.calls.End(docstore.Ref{Tenant: tenant, ID: call.SubJobID})
			if stopped != nil {
				s.giveBack(callCtx, call)
				return
			}
			s.work(callCtx, call)
		})
	}
	for id := range contexts { // no call is to be made
		s.calls.Remove(docstore.Ref{Tenant: tenant, ID: id})
	}
	return changed, ctx.Err()
}

// claimEach claims runs together or, if that fails, each alone, so that one that cannot be claimed delays no others.
func (s *Jobs) claimEach(ctx context.Context, ids []string) (calls []Call, changed int) {
	calls, changed, err := s.claim(ctx, ids)
	if err == nil {
		return calls, changed
	}
	for _, id := range ids {
		one, n, err := s.claim(ctx, []string{id})
		if kind := apperr.KindOf(err); err != nil && ctx.Err() == nil && kind != apperr.NotFound &&
			kind != apperr.VersionMismatch {
			s.Log.ErrorContext(ctx, "a run cannot be claimed", "id", id, "error", err)
		}
		calls, changed = append(calls, one...), changed+n
	}
	return calls, changed
}

// giveBack undoes the claim of a run whose call has not begun when the process is stopped.
func (s *Jobs) giveBack(ctx context.Context, call Call) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
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
		return undo(ctx, tx, sub, r, tx.Now)
	})
	if err != nil && !errors.Is(err, errOver) {
		s.Log.ErrorContext(ctx, "a run cannot be given back", "id", call.SubJobID, "error", err)
	}
}

// undo undoes the claim of a run, which is due again at next. The attempt does not count.
func undo(ctx context.Context, tx *docstore.Tx, sub *SubJob, r *run, next clock.Time) error {
	r.Attempt--
	r.Phase, r.Next = ready, next
	sub.State, sub.Attempt = pending, r.Attempt
	if _, err := runs.Touch(ctx, tx, r); err != nil {
		return err
	}
	_, err := subJobs.Collection.Touch(ctx, tx, sub)
	return err
}

// work makes a call and stores what became of it.
func (s *Jobs) work(ctx context.Context, call Call) {
	outcome, failure := s.call(ctx, call)
	err := s.report(ctx, call.SubJobID, call.Attempt, outcome, failure)
	s.attempts.WithLabelValues(call.Target.Type, outcomeOf(outcome, failure, err)).Inc()
	if err != nil && !errors.Is(err, errOver) {
		s.Log.ErrorContext(ctx, "the outcome of a run cannot be stored", "id", call.SubJobID, "error", err)
	}
}

var (
	errStopped  = errors.New("the process that ran it was stopped")
	errNotBegun = errors.New("the platform could not begin the function yet")
)

// call calls the run's target and renews the lease meanwhile. A call whose lease is lost is broken off. The error is
// errStopped if the call was broken off or not begun, errNotBegun if a function found no worker, which may last as long
// as the call has time, context.DeadlineExceeded if its time is over, and else what the runner says.
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
	ctx, lost := context.WithCancel(ctx)
	defer lost()
	var keeping sync.WaitGroup
	defer keeping.Wait() // after cancel, which ends it
	timed, cancel := context.WithTimeout(ctx, call.Deadline.Sub(s.Store.Now()))
	defer cancel()
	keeping.Go(func() { s.keep(timed, call, lost) })
	defer func() {
		if p := recover(); p != nil {
			s.Log.ErrorContext(ctx, "a run panicked", "id", call.SubJobID, "fault", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			err = errors.New("an internal fault")
		}
	}()
	if call.Target.Type != Function {
		waits := time.AfterFunc(s.waitAfter, func() {
			s.calls.Wait(docstore.Ref{Tenant: call.Tenant, ID: call.SubJobID})
		})
		defer waits.Stop()
	}
	outcome, err = runner.Run(timed, call)
	switch {
	case ctx.Err() == nil && call.Target.Type == Function && apperr.KindOf(err) == apperr.Unavailable:
		return outcome, fmt.Errorf("%w: %w", errNotBegun, err)
	case err == nil || ctx.Err() == nil && timed.Err() == nil:
		return outcome, err
	case ctx.Err() != nil:
		return outcome, errStopped
	}
	return outcome, context.DeadlineExceeded
}

// keep renews the lease of a call until ctx ends. It calls lost if the lease is another's, or has ended because the
// store does not answer.
func (s *Jobs) keep(ctx context.Context, call Call, lost func()) {
	every := s.Lease / 3
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for ends := call.LeaseEnds; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		timed, cancel := context.WithTimeout(ctx, every)
		renewed, err := s.renew(timed, call.SubJobID, call.Attempt)
		cancel()
		switch {
		case err == nil:
			ends = renewed
		case errors.Is(err, errOver) || !s.Store.Now().Before(ends):
			lost()
			return
		}
	}
}
