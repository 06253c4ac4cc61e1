package automation_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// BenchmarkConnections makes objects, and runs of a function that events trigger, by 1, 4 and 16 clients at once.
func BenchmarkConnections(b *testing.B) {
	s, c := writes.Start(b)
	s.ByConnections(b, c, changes(b, s, c)...)
	functionsOf(s, "acme").Post(functionsPath, javascript("function main() {}", on("kv_object.created"))).OK(nil)
	s.ByConnections(b, c, triggeredRuns(b, s))
}

func changes(testing.TB, *testkit.Service, *testkit.Client) []testkit.Change {
	return []testkit.Change{
		{Name: "new objects in one bucket", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			return c.Post(objectsPath, object{"key": fmt.Sprint("new-", n), "value": n})
		}},
		{Name: "changes of objects in one bucket", Do: func(c *testkit.Client, connection, n int) *testkit.Answer {
			return put(c, at(fmt.Sprint("of-", connection)), object{"value": n})
		}},
	}
}

// triggeredRuns makes an event for each run, and waits while many runs have not ended.
func triggeredRuns(b *testing.B, s *testkit.Service) testkit.Change {
	const mostWaiting = 64
	calls := telemetry.Register(s.Deps.Metrics, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "idp_function_calls_total", Help: "Calls of functions by their outcome.",
	}, []string{"outcome"})).WithLabelValues("succeeded")
	ended := func() int {
		var m dto.Metric
		require.NoError(b, calls.Write(&m))
		return int(m.GetCounter().GetValue())
	}
	before := ended()
	var events atomic.Int64
	return testkit.Change{Name: "triggered runs", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
		answer := c.Post(objectsPath, object{"key": fmt.Sprint("run-", n), "value": n})
		events.Add(1)
		wait.Until(b, func() bool { return int(events.Load())-(ended()-before) < mostWaiting })
		return answer
	}}
}
