package audit

import (
	"bytes"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/services/events/internal/replicas"
)

// Target is where the entries of all tenants are handed on to.
type Target interface {
	// Send takes lines, each a JSON object without a newline. It returns nil once they are where they should be.
	Send(ctx context.Context, lines [][]byte) error
}

const (
	export = "audit export"
	// again is the pause after a failure before the same entries are sent again.
	again = 2 * time.Second
)

// NewExporter makes a Writer that hands the entries on instead of keeping them. Its place is kept in the store: after a
// restart, or in another replica, it goes on where it was, and may send again what it sent last.
func NewExporter(store *docstore.Store, events *stream.Log, group *replicas.Group, metrics prometheus.Registerer,
	target Target) *Writer {
	w := &Writer{store: store, stream: events, group: group, work: export}
	w.put = func(ctx context.Context, from place, list []*stream.Event, next uint64) error {
		lines := make([][]byte, len(list))
		for i, e := range list {
			entry := entryOf(e)
			entry.TenantID = e.Tenant
			line, err := inOCSF(entry)
			if err != nil {
				return err
			}
			lines[i] = bytes.TrimSpace(line)
		}
		if err := target.Send(ctx, lines); err != nil {
			clock.Pause(ctx, again)
			return err
		}
		return docstore.Do(ctx, store, func(tx *docstore.Tx) error { return w.save(ctx, tx, from, next) })
	}
	w.behind = telemetry.Register(metrics, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "idp_audit_export_behind_events",
		Help: "Events of the stream that this replica has yet to hand on to IDP_AUDIT_EXPORT; 0 if another one does.",
	}))
	return w
}
