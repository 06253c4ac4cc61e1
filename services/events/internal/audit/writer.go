package audit

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/replicas"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

const (
	work   = "audit log"
	export = "audit export"
)

var places = stream.DefinePlaces("audit_place", "place of the audit log")

// Collections are those that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{entries.Def(), kinds.Def(), places.Def()} }

// NewWriter makes the writer of the log.
func NewWriter(store *docstore.Store, events *stream.Log, group *replicas.Group,
	metrics prometheus.Registerer) *stream.Reader {
	return stream.NewReader(stream.ReaderConfig{
		Name: work, Places: places, Log: events, DB: store, Group: group, Background: true, Store: add,
		Behind: telemetry.Register(metrics, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "idp_audit_log_behind_events",
			Help: "Events of the stream that this replica has yet to write into the audit log; 0 if another one " +
				"writes it.",
		})),
	})
}

// Written returns the place up to which all events have their entries; 0 if that is not known. Events after it must not
// be dropped.
func Written(ctx context.Context, store *docstore.Store, events *stream.Log) (uint64, error) {
	return places.Of(ctx, store, events, work)
}

// add writes the entries of events of any tenants.
func add(ctx context.Context, tx *docstore.Tx, b *stream.Batch) error {
	made := map[string][]*Entry{}
	for _, e := range b.Events {
		entry := entryOf(e)
		entry.ID = b.ID(e.Place)
		made[e.Tenant] = append(made[e.Tenant], entry)
	}
	for tenant, list := range made {
		if err := insert(request.System(ctx, tenant), tx, list); err != nil {
			return err
		}
	}
	return nil
}

// insert adds entries, except for events that have one: the stream has an event twice if it was published again after
// the time in which NATS recognizes duplicates.
func insert(ctx context.Context, tx *docstore.Tx, list []*Entry) error {
	found, err := written(ctx, tx, list)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, entry := range found {
		known[entry.Text] = true
	}
	for _, entry := range list {
		if known[entry.EventID] {
			continue
		}
		known[entry.EventID] = true
		if _, err := entries.Insert(ctx, tx, entry); err != nil {
			return err
		}
	}
	return noteKinds(ctx, tx, list)
}

// written lists the ids of the events that have entries, at least those among the events of list.
func written(ctx context.Context, tx *docstore.Tx, list []*Entry) ([]docstore.Indexed, error) {
	ids := make([]docstore.Value, len(list))
	least := list[0].EventID
	for i, entry := range list {
		ids[i] = docstore.Text(entry.EventID)
		least = min(least, entry.EventID)
	}
	// Ids grow with time, so few entries have greater ones than the new events.
	found, err := entries.Texts(ctx, tx, byEvent, docstore.From(byEvent, docstore.Text(least)), len(list))
	if err != nil || len(found) < len(list) {
		return found, err
	}
	return entries.Texts(ctx, tx, byEvent, docstore.In(byEvent, ids...), len(ids))
}
