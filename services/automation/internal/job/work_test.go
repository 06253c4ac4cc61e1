package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/pkg/work"
)

type runnerFunc func(context.Context, Call) (Outcome, error)

func (f runnerFunc) Run(ctx context.Context, c Call) (Outcome, error) { return f(ctx, c) }

// newJobs returns use cases that call webhooks by run.
func newJobs(t *testing.T, run runnerFunc) (*Jobs, *basic.Clock) {
	t.Helper()
	keys, err := secret.ParseKeyring(secret.NewKey())
	require.NoError(t, err)
	clk := basic.NewClock()
	return New(Deps{
		Store: basic.Store(t, clk, Collections()...), Keys: keys, Log: basic.Log(t),
		Runners: map[string]Runner{Webhook: run}, Metrics: prometheus.NewRegistry(),
	}), clk
}

// newRun creates a job and triggers it.
func newRun(t *testing.T, ctx context.Context, s *Jobs, code string) (run string) {
	t.Helper()
	j, err := s.Create(ctx, "", Profile{
		Code: code, Name: "Job", Schedule: Schedule{Type: manual},
		Target: Target{Type: Webhook, URL: "https://jobs.test"},
	})
	require.NoError(t, err)
	sub, err := s.Trigger(ctx, j.ID, nil)
	require.NoError(t, err)
	return sub.ID
}

// carryOut carries out runs until none is due.
func (s *Jobs) carryOut(t *testing.T) {
	t.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = s.Queue.Once(t.Context())
		require.NoError(t, err)
	}
}

// found returns a stored run.
func found(t *testing.T, ctx context.Context, s *Jobs, id string) *SubJob {
	t.Helper()
	doc, err := subJobs.Find(ctx, s.Store, id)
	require.NoError(t, err)
	sub, err := doc.Value()
	require.NoError(t, err)
	return sub
}

// silent is an engine that does not list what is due while failing.
type silent struct {
	docstore.Engine
	failing atomic.Bool
	asked   atomic.Int64
}

func (e *silent) Due(ctx context.Context, def *docstore.Def, before int64, limit int) ([]docstore.Ref, error) {
	if e.failing.Load() {
		e.asked.Add(1)
		return nil, errors.New("the disk is slow")
	}
	return e.Engine.Due(ctx, def, before, limit)
}

// While a call is in progress, a list that fails is tried again, and runs that are due then begin beside it.
func TestAFailedListStopsNoRuns(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(request.System(t.Context(), "acme"))
	defer stop()
	long, quick := make(chan struct{}), make(chan struct{})
	var begun atomic.Bool
	s, clk := newJobs(t, func(ctx context.Context, c Call) (Outcome, error) {
		if !begun.Swap(true) {
			close(long)
			<-ctx.Done()
			return Outcome{}, ctx.Err()
		}
		close(quick)
		return Outcome{}, nil
	})
	engine := &silent{Engine: basic.Engine(t, basic.Place{})}
	var err error
	s.Store, err = docstore.Open(ctx, engine, clk, Collections()...)
	require.NoError(t, err)
	s.Queue.Store = s.Store
	newRun(t, ctx, s, "long")
	worked := make(chan error)
	go func() { worked <- s.Queue.Run(ctx) }()
	<-long
	engine.failing.Store(true)
	newRun(t, ctx, s, "quick")
	wait.Until(t, func() bool { return engine.asked.Load() > 1 })
	engine.failing.Store(false)
	<-quick
	stop()
	require.NoError(t, <-worked)
}

// The attempt of a function that found no worker does not count: its run waits, and says why.
func TestAFunctionWithoutAWorkerIsTriedLater(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	away := true
	s, clk := newJobs(t, nil)
	s.Functions = existing{}
	s.Runners[Function] = runnerFunc(func(ctx context.Context, _ Call) (Outcome, error) {
		if away {
			return Outcome{}, apperr.Away("the function runtime", errors.New("all are busy"))
		}
		return Outcome{}, nil
	})
	j, err := s.Create(ctx, "", Profile{
		Code: "job", Name: "Job", Schedule: Schedule{Type: manual}, TimeoutSeconds: 60,
		Target: Target{Type: Function, FunctionID: "1"},
	})
	require.NoError(t, err)
	run, err := s.Trigger(ctx, j.ID, nil)
	require.NoError(t, err)
	stored := func() *SubJob { return found(t, ctx, s, run.ID) }
	for range 3 {
		s.carryOut(t)
		sub := stored()
		require.Equal(t, pending, sub.State)
		require.Zero(t, sub.Attempt)
		require.Contains(t, sub.Error, "could not begin the function yet")
		clk.Advance(laterRetry)
	}
	away = false
	s.carryOut(t)
	require.Equal(t, succeeded, stored().State)
	require.EqualValues(t, 1, stored().Attempt)
	require.Empty(t, stored().Error)
}

// A result that clients could not read fails its run.
func TestResultsHaveLimits(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	deep := func(levels int) jsontext.Value {
		return jsontext.Value(strings.Repeat("[", levels) + strings.Repeat("]", levels))
	}
	for i, c := range []struct {
		result jsontext.Value
		reason string
	}{
		{deep(maxLevels), ""},
		{deep(maxLevels + 1), "the result has more than 100 levels"},
		{jsontext.Value(`{"a":` + string(deep(maxLevels)) + `}`), "the result has more than 100 levels"},
		{jsontext.Value(`"` + strings.Repeat("a", maxResult) + `"`), "the result is too large"},
	} {
		s, _ := newJobs(t, func(context.Context, Call) (Outcome, error) { return Outcome{Result: c.result}, nil })
		run := newRun(t, ctx, s, "job")
		s.carryOut(t)
		sub := found(t, ctx, s, run)
		require.Equal(t, c.reason, sub.Error, i)
		require.Equal(t, map[bool]string{true: succeeded, false: failed}[c.reason == ""], sub.State)
	}
}

// existing are Functions of which all exist.
type existing struct{ Functions }

func (existing) Exists(context.Context, *docstore.Tx, string) (bool, error) { return true, nil }

// A process that is stopped gives back runs that it has claimed but not called yet. Another one calls them.
func TestCallsThatHaveNotBegunAreGivenBack(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	called := 0
	s, _ := newJobs(t, func(_ context.Context, c Call) (Outcome, error) {
		called++
		require.EqualValues(t, 1, c.Attempt)
		return Outcome{}, nil
	})
	id := newRun(t, ctx, s, "job")
	stopped, stop := context.WithCancel(ctx)
	begin := s.Queue.States.Begin
	s.Queue.States.Begin = func(ctx context.Context, tx *docstore.Tx, due []*run) ([]*run, error) {
		defer stop()
		return begin(context.WithoutCancel(ctx), tx, due)
	}
	s.Queue.Do = func(_ context.Context, r *run) work.Outcome { return s.attempt(stopped, r) }
	_, err := s.Queue.Once(t.Context())
	require.NoError(t, err)
	require.Zero(t, called)
	sub := found(t, ctx, s, id)
	require.Equal(t, pending, sub.State)
	require.Zero(t, sub.Attempt)
	require.Zero(t, attempts(s, Webhook), "it is none")

	s.Queue.Do, s.Queue.States.Begin = s.attempt, begin
	s.carryOut(t) // at once
	require.Equal(t, succeeded, found(t, ctx, s, id).State)
	require.Equal(t, 1, called)
	require.Equal(t, 1, attempts(s, Webhook))
}

// attempts is how many attempts of a target the metrics count.
func attempts(s *Jobs, target string) (n int) {
	for _, outcome := range outcomes {
		n += int(testutil.ToFloat64(s.attempts.WithLabelValues(target, outcome)))
	}
	return n
}

// What became of a call depends on what ended it: the target, the time, or the process.
func TestTheEndOfACall(t *testing.T) {
	t.Parallel()
	away := apperr.Away("the function runtime", errors.New("all are busy"))
	const goesOn, stops, takesLong = 0, 1, 2
	for name, c := range map[string]struct {
		target string
		what   int
		answer error
		want   error
	}{
		"a result at the stop":        {Webhook, stops, nil, nil},
		"a late result":               {Webhook, takesLong, nil, nil},
		"stopped":                     {Webhook, stops, context.Canceled, errStopped},
		"out of time":                 {Webhook, takesLong, context.DeadlineExceeded, context.DeadlineExceeded},
		"a function without a worker": {Function, takesLong, away, errNotBegun},
		"a function without a worker at the stop": {Function, stops, away, errStopped},
		"a webhook that is away":                  {Webhook, goesOn, away, away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(request.System(t.Context(), "acme"))
			defer stop()
			timed, cancel := ctx, func() {}
			if c.what == takesLong {
				timed, cancel = context.WithTimeout(ctx, 10*time.Millisecond)
			}
			defer cancel()
			s, _ := newJobs(t, nil)
			s.Runners[c.target] = runnerFunc(func(ctx context.Context, _ Call) (Outcome, error) {
				switch c.what {
				case stops:
					stop()
				case takesLong:
					<-ctx.Done()
				}
				return Outcome{}, c.answer
			})
			_, err := s.call(timed, Call{Tenant: "acme", Target: Target{Type: c.target}})
			require.ErrorIs(t, err, c.want)
		})
	}
}

// A run whose replica died while it made the call fails, and so does one whose result never comes.
func TestAttemptsThatNeverEnd(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	var (
		s   *Jobs
		clk *basic.Clock
	)
	s, clk = newJobs(t, func(_ context.Context, c Call) (Outcome, error) {
		if c.Name == "accepted" {
			return Outcome{Accepted: true}, nil
		}
		_, err := s.UpdateSubJob(ctx, "", c.JobID, c.SubJobID, func(p *Progress) error { p.Name = "x"; return nil })
		if err != nil {
			return Outcome{}, err
		}
		clk.Advance(time.Hour) // the lease has ended, and the time
		return Outcome{}, nil
	})
	lost := newRun(t, ctx, s, "lost")
	s.carryOut(t)
	require.Equal(t, succeeded, found(t, ctx, s, lost).State, "nobody else has it")
	for _, step := range []struct {
		phase  phase
		state  string
		reason string
	}{
		{leased, failed, "the process that ran it has stopped or stood still"},
		{accepted, timedOut, "no result arrived within timeout_seconds"},
	} {
		id := newRun(t, ctx, s, string(step.phase))
		require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
			r, err := runs.Load(ctx, tx, id)
			if err != nil {
				return err
			}
			r.Phase, r.Attempt, r.Next = step.phase, 1, tx.Now.Add(time.Minute)
			_, err = runs.Replace(ctx, tx, r)
			return err
		}))
		s.carryOut(t)
		require.False(t, found(t, ctx, s, id).isOver(), "its time has not come")
		clk.Advance(time.Minute)
		s.carryOut(t)
		sub := found(t, ctx, s, id)
		require.Equal(t, []string{step.state, step.reason}, []string{sub.State, sub.Error})
	}
}

// A call that panics fails its attempt.
func TestACallThatPanics(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	s, _ := newJobs(t, func(context.Context, Call) (Outcome, error) { panic("oops") })
	id := newRun(t, ctx, s, "job")
	s.carryOut(t)
	require.Equal(t, failed, found(t, ctx, s, id).State)
	require.Equal(t, "an internal fault", found(t, ctx, s, id).Error)
}

// What a worker has reported stands, although its call goes on.
func TestAResultDuringTheCall(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	var s *Jobs
	s, clk := newJobs(t, func(callCtx context.Context, c Call) (Outcome, error) {
		_, err := s.Finish(ctx, Ticket(c.CallbackToken), c.JobID, c.SubJobID, Report{State: failed, Error: "busy"})
		require.NoError(t, err)
		<-callCtx.Done() // it is broken off
		return Outcome{Result: jsontext.Value("1")}, nil
	})
	j, err := s.Create(ctx, "", Profile{
		Code: "job", Name: "Job", Schedule: Schedule{Type: manual}, Retry: Retry{Max: 1, BackoffSeconds: 60},
		Target: Target{Type: Webhook, URL: "https://jobs.test"},
	})
	require.NoError(t, err)
	run, err := s.Trigger(ctx, j.ID, nil)
	require.NoError(t, err)
	for _, state := range []string{pending, failed} {
		s.carryOut(t)
		sub := found(t, ctx, s, run.ID)
		require.Equal(t, []string{state, "busy"}, []string{sub.State, sub.Error})
		clk.Advance(time.Minute)
	}
}

// The runs of a deleted job that its task has not removed yet are not worked on, again and again or otherwise.
func TestRunsOfADeletedJob(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(request.System(t.Context(), "acme"), time.Minute)
	defer cancel()
	called := 0
	var s *Jobs
	deleteJob := func(run string) {
		n, err := s.DeleteMany(ctx, []string{found(t, ctx, s, run).JobID})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	s, clk := newJobs(t, func(_ context.Context, c Call) (Outcome, error) {
		called++
		deleteJob(c.SubJobID)
		return Outcome{}, errors.New("no answer")
	})
	due := newRun(t, ctx, s, "due")
	deleteJob(due)
	newRun(t, ctx, s, "begun")
	for range 3 {
		s.carryOut(t) // until there is nothing to do
		clk.Advance(time.Minute)
	}
	require.Equal(t, 1, called)
}

// Old runs that go on do not keep newer ones that are over from being forgotten.
func TestFinishedRunsAreForgottenBesideUnfinishedOnes(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	const unfinished = 3
	called := 0
	s, _ := newJobs(t, func(context.Context, Call) (Outcome, error) {
		called++
		return Outcome{Accepted: called <= unfinished}, nil
	})
	j, err := s.Create(ctx, "", Profile{
		Code: "job", Name: "Job", Schedule: Schedule{Type: manual},
		Target: Target{Type: Webhook, URL: "https://jobs.test"},
	})
	require.NoError(t, err)
	for range unfinished + keptRuns + 10 {
		_, err := s.Trigger(ctx, j.ID, nil)
		require.NoError(t, err)
		s.carryOut(t)
	}
	n, err := subJobs.Count(ctx, s.Store, docstore.Eq(byState, docstore.Text(succeeded)))
	require.NoError(t, err)
	require.LessOrEqual(t, n, int64(keptRuns))
}

// Webhooks of two tenants never answer. That delays no run of a third one.
func TestSlowWebhooksHoldNoSlots(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	quick := make(chan struct{})
	s, _ := newJobs(t, func(ctx context.Context, c Call) (Outcome, error) {
		if c.Tenant == "quick" {
			close(quick)
			return Outcome{}, nil
		}
		<-ctx.Done()
		return Outcome{}, ctx.Err()
	})
	s.waitAfter = time.Millisecond
	s.Queue.Starts = rate.NewLimiter(rate.Inf, 1)
	for _, tenant := range []string{"slow", "sluggish"} {
		for i := range places.Most/2 + 1 {
			newRun(t, request.System(ctx, tenant), s, fmt.Sprint("j", i))
		}
	}
	worked := make(chan error)
	go func() { worked <- s.Queue.Run(ctx) }()
	wait.Until(t, func() bool { return s.Queue.Count() > places.Most })
	newRun(t, request.System(ctx, "quick"), s, "j")
	select {
	case <-quick:
	case <-time.After(time.Minute):
		t.Error("the third tenant's run has not begun")
	}
	stop()
	<-worked
}
