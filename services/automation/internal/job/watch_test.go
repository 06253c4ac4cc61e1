package job

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// A job fires ten minutes after its time. While a replica was there, it was late and not missed, also for a replica
// that came later; if none was there, it was missed.
func TestLateIsNotMissed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ present, another, fires bool }{
		"by load":                       {true, false, true},
		"by load, and by a new replica": {true, true, true},
		"as nobody was there":           {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, clk := newJobs(t, func(context.Context, Call) (Outcome, error) { return Outcome{}, nil })
			ctx := request.System(t.Context(), "acme")
			j, err := s.Create(ctx, "", Profile{
				Code: "j", Name: "Job", Schedule: Schedule{Type: interval, EverySeconds: 3600}, Misfire: skip,
				Target: Target{Type: Webhook, URL: "https://jobs.test"},
			})
			require.NoError(t, err)
			const step = 30 * time.Second
			for passed := time.Duration(0); passed < 70*time.Minute; passed += step {
				if row.present {
					require.NoError(t, s.noteFiring(ctx))
				}
				clk.Advance(step)
			}
			if row.another {
				s = New(Deps{Store: s.Store, Log: s.Log, Metrics: prometheus.NewRegistry()})
			}
			require.NoError(t, s.Fire(ctx, j.ID))
			n := 0
			count := func(docstore.Doc[run]) error { n++; return nil }
			require.NoError(t, runs.Each(ctx, s.Store, docstore.Filter{}, count))
			require.Equal(t, row.fires, n == 1)
		})
	}
}
