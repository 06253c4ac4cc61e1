package function

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/work"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

var keys, _ = secret.ParseKeyring(secret.NewKey())

func TestMain(m *testing.M) { basic.Main(m) }

// An event that is read again makes no second run.
func TestEventsAreReadAgain(t *testing.T) {
	t.Parallel()
	s := New(Deps{Store: basic.Store(t, basic.NewClock(), Collections()...), Log: basic.Log(t)})
	ctx := request.System(t.Context(), "acme")
	b := batch(1)
	for range 2 {
		require.NoError(t, s.addRuns(ctx, &Function{Meta: docstore.Meta{ID: "f"}}, b, b.Events, b.Events))
	}
	due, err := runs.Due(t.Context(), s.Store, 10)
	require.NoError(t, err)
	require.Len(t, due, 1)
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
			FunctionID: "f", EventID: "e", Origin: "o", RequestID: "r", Event: json.RawMessage(`{}`),
			Item: work.Item{Attempt: 1}},
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

// Each attempt is in the function's log, also one that found no worker; the run waits for one, however long.
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
	b := batch(1)
	require.NoError(t, s.addRuns(ctx, f, b, b.Events, b.Events))
	queue := NewRunner(s, 1, prometheus.NewRegistry()).queue
	for range 2 * maxAttempts {
		for _, due := range []int{1, 0} { // then it is due later
			n, err := queue.Once(t.Context())
			require.NoError(t, err)
			require.Equal(t, due, n)
		}
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
}

// A run whose process died in each attempt is over, and the function's log says so.
func TestARunThatIsLost(t *testing.T) {
	t.Parallel()
	s := New(Deps{Store: basic.Store(t, basic.NewClock(), Collections()...), Log: basic.Log(t)})
	ctx := request.System(t.Context(), "acme")
	f := &Function{Meta: docstore.Meta{ID: "f"}, Profile: Profile{Code: "f", Status: Enabled}}
	require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := functions.Insert(ctx, tx, f)
		return err
	}))
	b := batch(1)
	require.NoError(t, s.addRuns(ctx, f, b, b.Events, b.Events))
	require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		found, err := runs.LoadWhere(ctx, tx, docstore.Filter{}, "", 1)
		require.NoError(t, err)
		found[0].Attempt = maxAttempts
		_, err = runs.Replace(ctx, tx, found[0])
		return err
	}))
	n, err := NewRunner(s, 1, prometheus.NewRegistry()).queue.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	page, err := s.Logs(ctx, LogFilter{"f", docstore.Paging{Num: 1, Size: 10}})
	require.NoError(t, err)
	require.Len(t, page.Docs, 1)
	entry, err := page.Docs[0].Value()
	require.NoError(t, err)
	require.EqualValues(t, maxAttempts, entry.Attempt)
	require.Equal(t, sandbox.Failed, entry.Outcome)
	left, err := runs.Count(ctx, s.Store, docstore.Filter{})
	require.NoError(t, err)
	require.Zero(t, left)
}
