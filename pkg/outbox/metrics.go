package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
)

// scrapeWithin bounds the time that a scrape may wait for the store.
const scrapeWithin = time.Second

// metrics asks the store at each scrape, so that the numbers are right even while the relay hangs.
type metrics struct {
	relay     *Relay
	published prometheus.Counter
	failures  prometheus.Counter
	backlog   *prometheus.Desc
	oldest    *prometheus.Desc
}

func newMetrics(r *Relay) *metrics {
	return &metrics{
		relay: r,
		published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "idp_outbox_published_total", Help: "Events that JetStream has acknowledged."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "idp_outbox_publish_failures_total",
			Help: "Failed attempts to publish an event; each event is tried again."}),
		backlog: prometheus.NewDesc("idp_outbox_backlog", "Events that JetStream does not have yet.", nil, nil),
		oldest: prometheus.NewDesc("idp_outbox_oldest_age_seconds",
			"How long the oldest event has waited; 0 without one.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.published.Desc()
	ch <- m.failures.Desc()
	ch <- m.backlog
	ch <- m.oldest
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	ch <- m.published
	ch <- m.failures
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWithin)
	defer cancel()
	// If the store does not answer, the metric has a gap.
	if n, err := m.relay.backlog(ctx); err == nil {
		ch <- prometheus.MustNewConstMetric(m.backlog, prometheus.GaugeValue, float64(n))
	}
	if since, err := m.relay.waiting(ctx); err == nil {
		age := time.Duration(0)
		if !since.IsZero() {
			age = max(0, time.Since(since))
		}
		ch <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, age.Seconds())
	}
}

// made returns when a UUIDv7 was made (RFC 9562 §5.7: its first 48 bits are milliseconds); now for any other id.
func made(id string) time.Time {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 {
		return time.Now()
	}
	var ms int64
	for _, b := range u[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms)
}
