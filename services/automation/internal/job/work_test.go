package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
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
		Runners: map[string]Runner{Webhook: run}, Metrics: prometheus.NewRegistry(), Lease: time.Minute,
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
	newRun(t, ctx, s, "long")
	worked := make(chan error)
	go func() { _, err := s.Work(ctx); worked <- err }()
	<-long
	engine.failing.Store(true)
	newRun(t, ctx, s, "quick")
	wait.Until(t, func() bool { return engine.asked.Load() > 1 })
	engine.failing.Store(false)
	<-quick
	stop()
	require.ErrorIs(t, <-worked, context.Canceled)
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
	stored := func() *SubJob {
		doc, err := subJobs.Find(ctx, s.Store, run.ID)
		require.NoError(t, err)
		sub, err := doc.Value()
		require.NoError(t, err)
		return sub
	}
	for range 3 {
		_, err := s.Work(ctx)
		require.NoError(t, err)
		sub := stored()
		require.Equal(t, pending, sub.State)
		require.Zero(t, sub.Attempt)
		require.Contains(t, sub.Error, "could not begin the function yet")
		clk.Advance(laterRetry)
	}
	away = false
	_, err = s.Work(ctx)
	require.NoError(t, err)
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
		_, err := s.Work(ctx)
		require.NoError(t, err)
		doc, err := subJobs.Find(ctx, s.Store, run)
		require.NoError(t, err)
		sub, err := doc.Value()
		require.NoError(t, err)
		require.Equal(t, c.reason, sub.Error, i)
		require.Equal(t, map[bool]string{true: succeeded, false: failed}[c.reason == ""], sub.State)
	}
}

// existing are Functions of which all exist.
type existing struct{ Functions }

func (existing) Exists(context.Context, *docstore.Tx, string) (bool, error) { return true, nil }

// A process that is stopped gives back runs that it has claimed but not called yet.
func TestCallsThatHaveNotBegunAreGivenBack(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(request.System(t.Context(), "acme"))
	defer stop()
	s, _ := newJobs(t, func(context.Context, Call) (Outcome, error) { stop(); return Outcome{}, nil })
	s.starts = rate.NewLimiter(rate.Every(time.Hour), 1)
	for i := range claimsAtOnce {
		newRun(t, ctx, s, string(rune('a'+i)))
	}
	_, err := s.Work(ctx)
	require.ErrorIs(t, err, context.Canceled)

	after := request.System(t.Context(), "acme")
	states := map[string]int{}
	require.NoError(t, subJobs.Each(after, s.Store, docstore.Filter{}, func(doc SubDoc) error {
		sub, err := doc.Value()
		states[sub.State]++
		if sub.State == pending {
			require.Zero(t, sub.Attempt)
		}
		return err
	}))
	require.Equal(t, map[string]int{succeeded: 1, pending: claimsAtOnce - 1}, states)
	due, err := runs.Due(after, s.Store, 100)
	require.NoError(t, err)
	require.Len(t, due, claimsAtOnce-1, "another replica can take them at once")
}

// Reports that arrive at the same time are stored together. One that is refused, or that cannot be stored, keeps no
// other from being stored.
func TestReportsAreStoredTogether(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	s, _ := newJobs(t, nil)
	var ids []string
	for i := range reportsAtOnce {
		id := newRun(t, ctx, s, string(rune('a'+i)))
		ids = append(ids, id)
		require.True(t, s.calls.Add(docstore.Ref{Tenant: "acme", ID: id}, func() {}))
	}
	calls, _, err := s.claim(ctx, ids)
	require.NoError(t, err)
	require.Len(t, calls, reportsAtOnce)
	const over, lost = 2, 5
	require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		sub, err := subJobs.Load(ctx, tx, ids[lost])
		if err != nil {
			return err
		}
		_, err = subJobs.Collection.Delete(ctx, tx, sub)
		return err
	}))
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		attempt := int64(1)
		if i == over {
			attempt = 2
		}
		all.Go(func() { errs[i] = s.report(ctx, id, attempt, Outcome{Result: jsontext.Value(`{"n":1}`)}, nil) })
	}
	all.Wait()
	for i, id := range ids {
		switch i {
		case over:
			require.ErrorIs(t, errs[i], errOver)
			continue
		case lost:
			require.True(t, apperr.IsNotFound(errs[i]))
			continue
		}
		require.NoError(t, errs[i])
		doc, err := subJobs.Find(ctx, s.Store, id)
		require.NoError(t, err)
		sub, err := doc.Value()
		require.NoError(t, err)
		require.Equal(t, succeeded, sub.State)
	}
	left, err := runs.Count(ctx, s.Store, docstore.Filter{})
	require.NoError(t, err)
	require.EqualValues(t, 2, left)
	require.Empty(t, s.reports.waiting)
}

// A report does not wait for others when the process stops.
func TestAReportAtTheStop(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(request.System(t.Context(), "acme"))
	s, _ := newJobs(t, nil)
	for _, id := range []string{"1", "2"} {
		require.True(t, s.calls.Add(docstore.Ref{Tenant: "acme", ID: id}, func() {}))
	}
	id := newRun(t, ctx, s, "job")
	_, _, err := s.claim(ctx, []string{id})
	require.NoError(t, err)
	stop()
	require.NoError(t, s.report(ctx, id, 1, Outcome{}, errStopped))
}

// A process that stands still between a claim and its call does not make the call once the lease has ended.
func TestACallIsNotBegunAfterItsLease(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	called := 0
	s, clk := newJobs(t, func(context.Context, Call) (Outcome, error) { called++; return Outcome{}, nil })
	late, lost := newRun(t, ctx, s, "late"), newRun(t, ctx, s, "lost")
	calls, _, err := s.claim(ctx, []string{late, lost})
	require.NoError(t, err)
	require.Len(t, calls, 2)
	clk.Advance(time.Minute)
	_, _, err = s.claim(ctx, []string{lost}) // another replica does so
	require.NoError(t, err)
	for _, call := range calls {
		s.work(ctx, call)
	}
	require.Zero(t, called)
	for id, reason := range map[string]string{
		late: "the process that ran it was stopped", lost: "the process that ran it has stopped or stood still",
	} {
		doc, err := subJobs.Find(ctx, s.Store, id)
		require.NoError(t, err)
		sub, err := doc.Value()
		require.NoError(t, err)
		require.Equal(t, failed, sub.State)
		require.Equal(t, reason, sub.Error)
	}
}

// A replica whose store does not answer breaks a call off when its lease ends: another replica may begin the next
// attempt then.
func TestACallIsBrokenOffWhenItsLeaseCannotBeRenewed(t *testing.T) {
	t.Parallel()
	var clk *basic.Clock
	s, clk := newJobs(t, func(ctx context.Context, _ Call) (Outcome, error) {
		clk.Advance(time.Minute)
		<-ctx.Done()
		return Outcome{}, ctx.Err()
	})
	s.Lease = 15 * time.Millisecond // of real time; by the store's clock it is longer
	now := s.Store.Now()
	call := Call{SubJobID: "1", Target: Target{Type: Webhook}, Deadline: now.Add(time.Hour),
		LeaseEnds: now.Add(time.Minute)}
	_, err := s.call(t.Context(), call) // each write fails, because the context has no tenant
	require.ErrorIs(t, err, errStopped)
}

// The runs of a deleted job that its task has not removed yet are not worked on, again and again or otherwise.
func TestRunsOfADeletedJob(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(request.System(t.Context(), "acme"), time.Minute)
	defer cancel()
	called := 0
	s, _ := newJobs(t, func(context.Context, Call) (Outcome, error) { called++; return Outcome{}, nil })
	due, begun := newRun(t, ctx, s, "due"), newRun(t, ctx, s, "begun")
	calls, _, err := s.claim(ctx, []string{begun})
	require.NoError(t, err)
	require.Len(t, calls, 1)
	for _, id := range []string{due, begun} {
		doc, err := subJobs.Find(ctx, s.Store, id)
		require.NoError(t, err)
		sub, err := doc.Value()
		require.NoError(t, err)
		n, err := s.DeleteMany(ctx, []string{sub.JobID})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	_, err = s.Work(ctx) // until there is nothing to do
	require.NoError(t, err)
	require.Zero(t, called)
	require.ErrorIs(t, s.report(ctx, begun, calls[0].Attempt, Outcome{}, errors.New("no answer")), errOver)
}

// Old runs that go on do not keep newer ones that are over from being forgotten.
func TestFinishedRunsAreForgottenBesideUnfinishedOnes(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	s, _ := newJobs(t, nil)
	j, err := s.Create(ctx, "", Profile{
		Code: "job", Name: "Job", Schedule: Schedule{Type: manual},
		Target: Target{Type: Webhook, URL: "https://jobs.test"},
	})
	require.NoError(t, err)
	const unfinished = 3
	for i := range unfinished + keptRuns + 10 {
		sub, err := s.Trigger(ctx, j.ID, nil)
		require.NoError(t, err)
		if i < unfinished {
			continue
		}
		_, _, err = s.claim(ctx, []string{sub.ID})
		require.NoError(t, err)
		require.NoError(t, s.report(ctx, sub.ID, 1, Outcome{}, nil))
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
	s.starts = rate.NewLimiter(rate.Inf, 1)
	for _, tenant := range []string{"slow", "sluggish"} {
		for i := range slots.Most/2 + 1 {
			newRun(t, request.System(ctx, tenant), s, fmt.Sprint("j", i))
		}
	}
	worked := make(chan error)
	go func() { _, err := s.Work(ctx); worked <- err }()
	wait.Until(t, func() bool { return s.calls.Count() > slots.Most })
	newRun(t, request.System(ctx, "quick"), s, "j")
	select {
	case <-quick:
	case <-time.After(time.Minute):
		t.Error("the third tenant's run has not begun")
	}
	stop()
	<-worked
}
