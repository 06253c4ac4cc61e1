package function

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

var keys, _ = secret.ParseKeyring(secret.NewKey())

func TestMain(m *testing.M) { basic.Main(m) }

// One replica at a time has a run. When its lease ends, the next attempt may begin, and what the replica before reports
// is ignored.
func TestLeases(t *testing.T) {
	t.Parallel()
	clock := basic.NewClock()
	s := New(Deps{Store: basic.Store(t, clock, Collections()...), Log: basic.Log(t)})
	ctx := request.System(t.Context(), "acme")
	run := docstore.Ref{ID: "e.f"}
	b := batch(1)
	b.Events[0].ID = "e"
	for range 2 {
		require.NoError(t, s.addRuns(ctx, &Function{Meta: docstore.Meta{ID: "f"}}, b, b.Events, b.Events))
	}
	due := func(want int) {
		t.Helper()
		refs, err := runs.Due(context.Background(), s.Store, 10)
		require.NoError(t, err)
		require.Len(t, refs, want)
	}
	due(1)
	first, err := s.claim(ctx, run.ID)
	require.NoError(t, err)
	due(0)
	_, err = s.claim(ctx, run.ID)
	require.True(t, apperr.IsNotFound(err))

	clock.Advance(lease)
	due(1)
	second, err := s.claim(ctx, run.ID)
	require.NoError(t, err)
	require.EqualValues(t, 2, second.Attempt)
	require.NoError(t, s.recordOutcome(ctx, first, attempt{}))
	due(0)
	require.NoError(t, s.recordOutcome(ctx, second, attempt{cut: true}), "the replica is stopped")
	due(1)
	third, err := s.claim(ctx, run.ID)
	require.NoError(t, err)
	require.EqualValues(t, 2, third.Attempt, "an attempt that was cut short does not count")
	require.NoError(t, s.recordOutcome(ctx, third, attempt{again: true}))
	due(0)
	clock.Advance(2*firstRetry - time.Millisecond)
	due(0)
	clock.Advance(time.Millisecond)
	due(1)
	for range 2 * maxAttempts { // the platform cannot call it
		fourth, err := s.claim(ctx, run.ID)
		require.NoError(t, err)
		require.EqualValues(t, 3, fourth.Attempt)
		require.NoError(t, s.recordOutcome(ctx, fourth, attempt{later: true}))
		due(0)
		clock.Advance(laterRetry)
		due(1)
	}
	fifth, err := s.claim(ctx, run.ID)
	require.NoError(t, err)
	require.NoError(t, s.recordOutcome(ctx, fifth, attempt{}))
	clock.Advance(time.Hour)
	due(0)
}

// Only what a function's request had says how long its chain is, in the function's tenant.
func TestDepth(t *testing.T) {
	t.Parallel()
	s := New(Deps{Keys: keys})
	fourth := s.origin("acme", "17", 4)
	for from, want := range map[string]int{
		"": 0, "console": 0, "function/17/5": 0, "function/17/5/x": 0, fourth: 4, s.origin("globex", "17", 4): 0,
		strings.Replace(fourth, "/4/", "/5/", 1): 0, strings.Replace(fourth, "17", "18", 1): 0,
	} {
		ctx := request.With(t.Context(), request.Info{Tenant: "acme", PayloadOrigin: from})
		require.Equal(t, want, s.depth(ctx), from)
	}
}

// Later versions must be able to read the stored forms.
func TestStoredForms(t *testing.T) {
	t.Parallel()
	at, err := json.Marshal(progress{Stream: "s", Place: 5, Event: "e", UpTo: 6})
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"","tenant_id":"","version":0,"time_created":null,"time_modified":null,"stream":"s",
		"from":5,"event":"e","up_to":6,"next":null}`, string(at))
	meta := `{"id":"","tenant_id":"","version":0,"time_created":null,"time_modified":null,"function_id":"f",`
	for form, value := range map[string]any{
		`"event_id":"e","payload_origin":"o","request_id":"r","event":{},"attempt":1,"next":null}`: triggeredRun{
			FunctionID: "f", EventID: "e", Origin: "o", RequestID: "r", Event: json.RawMessage(`{}`), Attempt: 1},
		`"content":"AQI="}`: code{FunctionID: "f", Content: []byte{1, 2}},
		`"cause":"event","event_id":"e","attempt":1,"revision":2,"outcome":"failed","logs":null,"duration_ms":3,` +
			`"time_end":null}`: LogEntry{FunctionID: "f", Cause: byTrigger, EventID: "e", Attempt: 1, Revision: 2,
			Outcome: "failed", DurationMS: 3},
	} {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		require.JSONEq(t, meta+form, string(text))
	}
}

// Each attempt is in the function's log, also one that found no worker; the run waits for one, however long. A panic
// does not end the process.
func TestAttemptsThatCallNothing(t *testing.T) {
	t.Parallel()
	clock := basic.NewClock()
	pool := sandbox.NewPool(sandbox.Config{Workers: 1, Metrics: prometheus.NewRegistry()})
	pool.Close()
	s := New(Deps{Store: basic.Store(t, clock, Collections()...), Log: basic.Log(t), Pool: pool, Keys: keys})
	ctx := request.System(t.Context(), "acme")
	require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := functions.Insert(ctx, tx, &Function{
			Meta: docstore.Meta{ID: "f"}, Profile: Profile{Code: "f", Status: Enabled}, Revision: 1,
			Revisions: []Revision{{Revision: 1}},
		})
		return err
	}))
	f := &Function{Meta: docstore.Meta{ID: "f"}}
	run := docstore.Ref{ID: "1.f"}
	first, second := batch(1), batch(2)
	require.NoError(t, s.addRuns(ctx, f, first, first.Events, first.Events))
	for range 2 * maxAttempts {
		require.NoError(t, s.work(ctx, run.ID))
		require.True(t, apperr.IsNotFound(s.work(ctx, run.ID)), "it is due later")
		clock.Advance(laterRetry)
	}
	page, err := s.Logs(ctx, LogFilter{"f", docstore.Paging{Num: 1, Size: 10}})
	require.NoError(t, err)
	require.Len(t, page.Docs, 2*maxAttempts)
	for _, doc := range page.Docs {
		entry, err := doc.Value()
		require.NoError(t, err)
		require.Equal(t, sandbox.Failed, entry.Outcome)
		require.EqualValues(t, 1, entry.Attempt)
	}

	s.Pool = nil
	require.NoError(t, s.addRuns(ctx, f, second, second.Events, second.Events))
	run.ID = "2.f"
	(&Runner{Functions: s}).run(ctx, run.ID)
}
