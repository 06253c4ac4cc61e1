package gateway

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// classes are the values of the label class; "aborted" stands for responses that broke off, or that never came
// because the client had gone.
var classes = [...]string{"aborted", "1xx", "2xx", "3xx", "4xx", "5xx"}

// ownService is the value of the label service for what the gateway answers itself.
const ownService = "gateway"

// metrics are bound to their labels in advance, so that a request costs no look-up of labels.
type metrics struct {
	durations   map[string]*[len(classes)]prometheus.Observer // service → class
	rateLimited prometheus.Counter
}

func newMetrics(registry prometheus.Registerer, services []string, inFlight, streams *atomic.Int64) (*metrics, error) {
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "idp_gateway_request_duration_seconds",
		Help:    "Time until the response ended, by service and class of status.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"service", "class"})
	m := &metrics{
		durations: map[string]*[len(classes)]prometheus.Observer{},
		rateLimited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "idp_gateway_rate_limited_total", Help: "Requests answered 429 by the gateway.",
		}),
	}
	for _, service := range append(services, ownService) {
		var bound [len(classes)]prometheus.Observer
		for i, class := range classes {
			bound[i] = durations.WithLabelValues(service, class)
		}
		m.durations[service] = &bound
	}
	running := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "idp_gateway_requests_in_flight", Help: "Requests being served.",
	}, func() float64 { return float64(inFlight.Load()) })
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "idp_gateway_event_streams_open", Help: "Event streams (Server-Sent Events) that are open.",
	}, func() float64 { return float64(streams.Load()) })
	for _, c := range []prometheus.Collector{durations, m.rateLimited, running, open} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) observe(service string, status int, took time.Duration) {
	class := status / 100
	if class >= len(classes) {
		class = 0
	}
	m.durations[service][class].Observe(took.Seconds())
}
