package automation_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/automation"
)

// Two replicas run a function once for each of many events.
func TestReplicasRunEachEventOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	runEachOnce(t, []*testkit.Service{s, s.Replica(automation.Spec(automation.DefaultConfig()))}, 300)
}

// BenchmarkManyEvents runs a function once for each of as many events as -benchtime says, such as 20000x, by one
// replica and by two.
func BenchmarkManyEvents(b *testing.B) {
	b.Run("one replica", func(b *testing.B) { runEachOnce(b, []*testkit.Service{start(b)}, b.N) })
	b.Run("two replicas", func(b *testing.B) {
		s := start(b)
		runEachOnce(b, []*testkit.Service{s, s.Replica(automation.Spec(automation.DefaultConfig()))}, b.N)
	})
}

// runEachOnce makes events by several clients of each replica, all at once, and requires that a function that listens
// to them runs once for each.
func runEachOnce(tb testing.TB, replicas []*testkit.Service, events int) {
	var ran sync.Map // the number of runs, by event
	var runs atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		key, _ := io.ReadAll(r.Body)
		n, _ := ran.LoadOrStore(string(key), new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		runs.Add(1)
	}))
	tb.Cleanup(hook.Close)
	at, err := url.Parse(hook.URL)
	require.NoError(tb, err)
	functionsOf(replicas[0], "acme").Post(functionsPath, javascript(
		`async function main(event, {env}) { await fetch(env.HOOK, {method: "POST", body: event.id}) }`,
		on("kv_object.created"), object{"allowed_hosts": []any{at.Host}, "env": object{"HOOK": hook.URL},
			"limits": object{"timeout_ms": 25_000}})).OK(nil)

	const clients = 4
	began := time.Now()
	var making sync.WaitGroup
	var made atomic.Int64
	for _, s := range replicas {
		for range clients {
			c := kvOf(s, "acme")
			making.Go(func() {
				for n := made.Add(1); n <= int64(events); n = made.Add(1) {
					c.Post(objectsPath, object{"key": fmt.Sprint(n), "value": n}).OK(nil)
				}
			})
		}
	}
	making.Wait()
	tb.Logf("%d events after %s", events, time.Since(began).Round(time.Millisecond))
	for seen := int64(0); seen < int64(events); seen = runs.Load() {
		wait.Until(tb, func() bool { return runs.Load() > seen })
	}
	tb.Logf("all have run after %s", time.Since(began).Round(time.Millisecond))
	if os.Getenv("IDP_TEST_MONGO_URI") == "" { // Stored is for SQLite
		wait.Until(tb, func() bool { return len(testkit.Stored(tb, replicas[0], "acme", "function_runs")) == 0 })
	}
	different := 0
	ran.Range(func(event, n any) bool {
		different++
		require.EqualValues(tb, 1, n.(*atomic.Int64).Load(), "runs for the event %s", event)
		return true
	})
	require.Equal(tb, events, different)
	if b, ok := tb.(*testing.B); ok {
		b.ReportMetric(float64(events)/time.Since(began).Seconds(), "runs/s")
		b.ReportMetric(0, "ns/op")
	}
}
