package job

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit"
)

type runnerFunc func(context.Context, Call) (Outcome, error)

func (f runnerFunc) Run(ctx context.Context, c Call) (Outcome, error) { return f(ctx, c) }

// newJobs returns use cases whose webhooks are run.
func newJobs(t *testing.T, run runnerFunc) (*Jobs, *testkit.Clock) {
	t.Helper()
	keys, err := secret.ParseKeyring(secret.NewKey())
	require.NoError(t, err)
	clk := testkit.NewClock()
	return New(Deps{
		Store: testkit.Store(t, clk, Collections()...), Keys: keys, Log: testkit.Log(t),
		Runners: map[string]Runner{Webhook: run}, Metrics: prometheus.NewRegistry(), Lease: time.Minute,
	}), clk
}

// newRun triggers a new job.
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

// A process that is stopped gives back the runs that it has claimed and whose calls have not begun.
func TestCallsThatHaveNotBegunAreGivenBack(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(request.System(t.Context(), "acme"))
	defer stop()
	s, _ := newJobs(t, func(context.Context, Call) (Outcome, error) { stop(); return Outcome{}, nil })
	s.starts = rate.NewLimiter(rate.Every(time.Hour), 1)
	for i := range startsAtOnce {
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
	require.Equal(t, map[string]int{succeeded: 1, pending: startsAtOnce - 1}, states)
	due, err := runs.Due(after, s.Store, 100)
	require.NoError(t, err)
	require.Len(t, due, startsAtOnce-1, "another replica can take them at once")
}

// A process that stands still between a claim and its call makes the call no more once the lease has ended.
func TestACallIsNotBegunAfterItsLease(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	called := 0
	s, clk := newJobs(t, func(context.Context, Call) (Outcome, error) { called++; return Outcome{}, nil })
	late, lost := newRun(t, ctx, s, "late"), newRun(t, ctx, s, "lost")
	calls, err := s.claim(ctx, []string{late, lost})
	require.NoError(t, err)
	require.Len(t, calls, 2)
	clk.Advance(time.Minute)
	_, err = s.claim(ctx, []string{lost}) // another replica does so
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
