package stream

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
)

type metrics struct {
	handled, failed, parked, skipped *prometheus.CounterVec
	lag                              *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"consumer"})
	}
	m := &metrics{
		handled: counter("idp_consumer_handled_total", "Events that were handled."),
		failed:  counter("idp_consumer_failed_tries_total", "Failed attempts to handle an event."),
		parked:  counter("idp_consumer_parked_total", "Events that were parked in IDP_DEADLETTERS."),
		skipped: counter("idp_consumer_skipped_total",
			"Events that are missing in a replica's own state, because they could not be handled, or read (log)."),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "idp_consumer_lag",
			Help: "Events of the stream that are still to be read; 0 if another replica reads them."},
			[]string{"consumer"}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.handled, m.failed, m.parked, m.skipped, m.lag} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of the stream: %w", err)
		}
	}
	return m, nil
}

// begin lets the counters of a consumer exist with 0: one that begins with 1 hides its first increase from rate() of
// Prometheus.
func (m *metrics) begin(consumer string, counters ...*prometheus.CounterVec) {
	for _, c := range append(counters, m.handled, m.failed) {
		c.WithLabelValues(consumer)
	}
}

var tracer = otel.Tracer("github.com/idplatform/idplatform/pkg/stream")
