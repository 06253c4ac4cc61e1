package telemetry

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry makes a registry with the metrics of the Go runtime, the process and the build.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	reg.MustRegister(collectors.NewGoCollector(), process, collectors.NewBuildInfoCollector())
	return reg
}

// HTTPMetrics counts and times requests by operation:
//
//	idp_http_requests_total{operation,code}
//	idp_http_request_duration_seconds{operation}
//
// It is safe for concurrent use.
type HTTPMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec

	// bound caches the series by operation and status, because the vectors would hash label values on each call. It is
	// read without a lock, and copied to grow.
	bound atomic.Pointer[map[outcome]*series]
	mu    sync.Mutex
}

type outcome struct {
	operation string
	status    int
}

type series struct {
	requests prometheus.Counter
	duration prometheus.Observer
}

// NewHTTPMetrics registers the metrics with reg. It panics if reg already has them.
func NewHTTPMetrics(reg prometheus.Registerer) *HTTPMetrics {
	m := &HTTPMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "idp_http_requests_total", Help: "Requests answered, by operation and HTTP status.",
		}, []string{"operation", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "idp_http_request_duration_seconds",
			Help:    "Time from the request header to the end of the response, by operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation"}),
	}
	m.bound.Store(&map[outcome]*series{})
	reg.MustRegister(m.requests, m.duration)
	return m
}

// Observe counts an answered request. operation must be one of a fixed set (operation ids), never a client's text:
// each makes time series that stay.
func (m *HTTPMetrics) Observe(operation string, status int, took time.Duration) {
	if status < 100 || status > 999 {
		status = 0 // not an HTTP status: counted as 0, so that it cannot make endless series
	}
	key := outcome{operation, status}
	s := (*m.bound.Load())[key]
	if s == nil {
		s = m.bind(key)
	}
	s.requests.Inc()
	s.duration.Observe(took.Seconds())
}

func (m *HTTPMetrics) bind(key outcome) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := *m.bound.Load()
	if s := before[key]; s != nil {
		return s
	}
	s := &series{
		m.requests.WithLabelValues(key.operation, strconv.Itoa(key.status)),
		m.duration.WithLabelValues(key.operation),
	}
	after := maps.Clone(before)
	after[key] = s
	m.bound.Store(&after)
	return s
}

// Register registers collector and returns it, or returns the equal one that is already registered. It panics if
// collector conflicts with a registered one, which is a programming error.
func Register[C prometheus.Collector](registry prometheus.Registerer, collector C) C {
	err := registry.Register(collector)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return already.ExistingCollector.(C)
	}
	if err != nil {
		panic(err)
	}
	return collector
}

// Counters registers counters by labels. Those of the known values are there with 0 from the start: a counter that
// begins with 1 hides its first increase from rate() and increase() of Prometheus.
func Counters(
	registry prometheus.Registerer, o prometheus.CounterOpts, labels []string, known ...[]string,
) *prometheus.CounterVec {
	counters := Register(registry, prometheus.NewCounterVec(o, labels))
	for _, values := range known {
		counters.WithLabelValues(values...)
	}
	return counters
}

// Combinations are the label values of every combination.
func Combinations(values ...[]string) [][]string {
	all := [][]string{nil}
	for _, next := range values {
		var longer [][]string
		for _, before := range all {
			for _, value := range next {
				longer = append(longer, append(slices.Clone(before), value))
			}
		}
		all = longer
	}
	return all
}
