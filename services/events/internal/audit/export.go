package audit

import (
	"bytes"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/replicas"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// Target is where the entries of all tenants are handed on to.
type Target interface {
	// Send takes lines, each a JSON object without a newline. It returns nil once they are where they should be.
	Send(ctx context.Context, lines [][]byte) error
}

// again is the pause after a failure before the same entries are sent again.
const again = 2 * time.Second

// NewExporter makes a reader that hands the entries on instead of keeping them. After a restart, or in another replica,
// it goes on where it was, and may send again what it sent in the last second.
func NewExporter(store *docstore.Store, events *stream.Log, group *replicas.Group, metrics prometheus.Registerer,
	target Target) *stream.Reader {
	return stream.NewReader(stream.ReaderConfig{
		Name: export, Places: places, Log: events, DB: store, Group: group, Background: true,
		Handle: func(ctx context.Context, b *stream.Batch) error {
			lines := make([][]byte, len(b.Events))
			for i, e := range b.Events {
				entry := entryOf(e)
				entry.TenantID = e.Tenant
				line, err := inOCSF(entry)
				if err != nil {
					return err
				}
				lines[i] = bytes.TrimSpace(line)
			}
			err := target.Send(ctx, lines)
			if err != nil {
				clock.Pause(ctx, again)
			}
			return err
		},
		Behind: telemetry.Register(metrics, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "idp_audit_export_behind_events",
			Help: "Events of the stream that this replica has yet to hand on to IDP_AUDIT_EXPORT; 0 if another " +
				"one does.",
		})),
	})
}
