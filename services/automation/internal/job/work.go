package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/work"
)

const (
	together = 8 // runs of a tenant that one transaction claims or ends

	// waitAfter is when a call to a webhook or worker only waits. Then it has no place any more.
	waitAfter = 2 * time.Second

	laterRetry = 30 * time.Second // after a function found no worker
)

var (
	places     = fair.Limits{Most: 128, OfTenant: 32}   // runs that a replica works on at a time
	inProgress = fair.Limits{Most: 2048, OfTenant: 128} // with those that only wait for an answer
)

func (s *Jobs) newQueue() *work.Queue[run, *run] {
	return work.NewQueue[run](work.Config[run]{
		Name: "run jobs", Items: runs, Store: s.Store, Log: s.Log, Metrics: s.Metrics,
		Places: places, InProgress: inProgress, Together: together, Starts: rate.NewLimiter(perSecond, 1),
		Deadline: func(r *run) clock.Time { return r.Deadline },
		States:   &work.States[run]{Begin: s.beginDue, Running: (*run).isLeased, End: s.conclude},
		Do:       s.attempt, Ended: s.count,
	})
}

// count counts an attempt that has ended.
func (s *Jobs) count(r *run, stored error) {
	if errors.Is(r.failure, errGivenBack) {
		return
	}
	s.attempts.WithLabelValues(r.call.Target.Type, outcomeOf(r.outcome, r.failure, stored)).Inc()
}

var (
	errStopped   = errors.New("the process that ran it was stopped")
	errGivenBack = errors.New("the process was stopped before the call")
	errNotBegun  = errors.New("the platform could not begin the function yet")
)

// attempt makes the call of a run. What became of it is left in the run, for conclude.
func (s *Jobs) attempt(ctx context.Context, r *run) work.Outcome {
	r.failure = errors.New("an internal fault") // if the call panics
	r.outcome, r.failure = s.call(ctx, r.call)
	switch {
	case r.failure == nil:
		return work.Done()
	case errors.Is(r.failure, errGivenBack), errors.Is(r.failure, errNotBegun):
		return work.NotStarted(nil, 0)
	}
	return work.Retry(nil)
}

// call calls a run's target. The error is errGivenBack if ctx had ended before the call, errStopped if it has broken
// the call off, errNotBegun if a function found no worker, which may last as long as the call has time,
// context.DeadlineExceeded if its time is over, and else what the runner says.
func (s *Jobs) call(ctx context.Context, call Call) (outcome Outcome, err error) {
	runner, ok := s.Runners[call.Target.Type]
	if !ok {
		return Outcome{}, fmt.Errorf("there is nothing that runs targets of the type %s", call.Target.Type)
	}
	if call.Target.Secret.IsSet() {
		call.Secret, err = jobs.Reveal(ctx, s.Store, call.JobID, targetSecret)
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return Outcome{}, errGivenBack
	case err != nil:
		s.Log.ErrorContext(ctx, "a target's secret cannot be read", "job", call.JobID, "error", err)
		return Outcome{}, errors.New("the target's secret cannot be read")
	}
	if call.Target.Type != Function {
		waits := time.AfterFunc(s.waitAfter, func() {
			s.Queue.LeavePlace(docstore.Ref{Tenant: call.Tenant, ID: call.SubJobID})
		})
		defer waits.Stop()
	}
	outcome, err = runner.Run(ctx, call)
	switch stopped := errors.Is(ctx.Err(), context.Canceled); {
	case !stopped && call.Target.Type == Function && apperr.KindOf(err) == apperr.Unavailable:
		return outcome, fmt.Errorf("%w: %w", errNotBegun, err)
	case err == nil || ctx.Err() == nil:
		return outcome, err
	case stopped:
		return outcome, errStopped
	}
	return outcome, context.DeadlineExceeded
}
