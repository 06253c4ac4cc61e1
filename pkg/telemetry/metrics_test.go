package telemetry

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestObserve(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m := NewHTTPMetrics(reg)
	m.Observe("get-user", 200, 3*time.Millisecond)
	m.Observe("get-user", 200, 2*time.Second)
	m.Observe("get-user", 404, time.Minute)
	m.Observe("list-users", 7, 0)
	m.Observe("list-users", -1, 0)

	require.InDelta(t, 2, testutil.ToFloat64(m.requests.WithLabelValues("get-user", "200")), 0)
	require.InDelta(t, 1, testutil.ToFloat64(m.requests.WithLabelValues("get-user", "404")), 0)
	require.InDelta(t, 2, testutil.ToFloat64(m.requests.WithLabelValues("list-users", "0")), 0)
	families, err := reg.Gather()
	require.NoError(t, err)
	require.Equal(t, "idp_http_request_duration_seconds", families[0].GetName())
	h := families[0].GetMetric()[0].GetHistogram()
	require.EqualValues(t, 3, h.GetSampleCount())
	require.InDelta(t, 62.003, h.GetSampleSum(), 1e-9)
	within := map[float64]uint64{}
	for _, b := range h.GetBucket() {
		within[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	require.Subset(t, within, map[float64]uint64{.0025: 0, .005: 1, 1: 1, 2.5: 2, 30: 2})
}

// No count is lost when many goroutines meet new series at the same time.
func TestObserveConcurrently(t *testing.T) {
	t.Parallel()
	m := NewHTTPMetrics(prometheus.NewRegistry())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 500 {
				m.Observe(fmt.Sprint("op-", i%50), 200+i%3, time.Millisecond)
			}
		})
	}
	wg.Wait()
	require.Len(t, *m.bound.Load(), 150)
	total := 0.0
	for key := range *m.bound.Load() {
		total += testutil.ToFloat64(m.requests.WithLabelValues(key.operation, fmt.Sprint(key.status)))
	}
	require.InDelta(t, 8*500, total, 0)
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	families, err := NewRegistry().Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	require.True(t, names["go_goroutines"])
	require.True(t, names["go_build_info"])
	require.Panics(t, func() { reg := NewRegistry(); NewHTTPMetrics(reg); NewHTTPMetrics(reg) })
}

func BenchmarkObserve(b *testing.B) {
	m := NewHTTPMetrics(prometheus.NewRegistry())
	for i := range 100 {
		for _, status := range []int{200, 400, 404} {
			m.Observe(fmt.Sprint("operation-", i), status, time.Millisecond)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Observe("operation-42", 200, 3*time.Millisecond)
	}
}

// Prometheus sees the first increase of a counter only if it has been there with 0.
func TestCountersBeginWithZero(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	counters := Counters(registry, prometheus.CounterOpts{Name: "tries_total", Help: "Tries."},
		[]string{"type", "outcome"}, Combinations([]string{"nats", "webhook"}, []string{"done", "failed"})...)
	counters.WithLabelValues("nats", "done").Inc()
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`# HELP tries_total Tries.
# TYPE tries_total counter
tries_total{outcome="done",type="nats"} 1
tries_total{outcome="failed",type="nats"} 0
tries_total{outcome="done",type="webhook"} 0
tries_total{outcome="failed",type="webhook"} 0
`)))
}
