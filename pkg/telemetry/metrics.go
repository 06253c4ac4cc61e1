package telemetry

import (
	"errors"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry makes a registry that has the Go runtime's, the process's and the build's metrics.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
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

	// What the vectors hash label values for, bound once: read without a lock, copied to grow.
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

// NewHTTPMetrics registers the metrics with reg; it panics where they are there already.
func NewHTTPMetrics(reg prometheus.Registerer) *HTTPMetrics {
	m := &HTTPMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "idp_http_requests_total", Help: "Requests answered, by operation and HTTP status.",
		}, []string{"operation", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "idp_http_request_duration_seconds", Help: "Time from a request's head to its answer's end, by operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation"}),
	}
	m.bound.Store(&map[outcome]*series{})
	reg.MustRegister(m.requests, m.duration)
	return m
}

// Observe notes an answered request. The operation is one of a fixed set (operation ids), never a client's text: each makes time
// series that stay.
func (m *HTTPMetrics) Observe(operation string, status int, took time.Duration) {
	if status < 100 || status > 999 {
		status = 0 // no such thing in HTTP: don't let it make series without end
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
	s := &series{m.requests.WithLabelValues(key.operation, strconv.Itoa(key.status)), m.duration.WithLabelValues(key.operation)}
	after := maps.Clone(before)
	after[key] = s
	m.bound.Store(&after)
	return s
}

// Register is the collector, registered, or the equal one that has been registered in its place. It panics on one that
// contradicts another: a programming error.
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
