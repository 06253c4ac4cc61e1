package audit

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/services/events/internal/feed"
	"github.com/idplatform/idplatform/services/events/internal/share"
)

const (
	// batch is how many events are written in one transaction.
	batch = 500
	// gather is how long events are gathered for one transaction if fewer than batch arrive.
	gather = 250 * time.Millisecond
	// firstID is so large that all ids have the same number of digits: the store compares them as texts.
	firstID = 1 << 40

	work       = "audit log"
	waitToTake = time.Second
)

// place is how far the log has come, and which replica writes it.
type place struct {
	docstore.Meta        // the id is work
	Owner         string `json:"owner"`
	Epoch         string `json:"epoch"` // of the stream
	Place         uint64 `json:"place"`
	Base          int64  `json:"base"` // what is added to the places of this stream to make ids
}

var places = docstore.Define(docstore.Schema[place]{Name: "audit_place", Noun: "place of the audit log", Part: true})

// Collections are those that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{entries.Def(), kinds.Def(), places.Def()} }

// id is the id of the entry of the event at a place.
func (p *place) id(place uint64) string {
	return strconv.FormatInt(p.Base+int64(place), 10) //nolint:gosec // a place is far below 2^53
}

var errLost = errors.New("another replica writes the audit log now")

// Writer makes entries of events. One replica writes at a time.
type Writer struct {
	store  *docstore.Store
	feed   *feed.Feed
	group  *share.Group
	behind prometheus.Gauge
}

// NewWriter makes a writer.
func NewWriter(store *docstore.Store, events *feed.Feed, group *share.Group, metrics prometheus.Registerer) *Writer {
	return &Writer{store, events, group, telemetry.Register(metrics, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "idp_audit_log_behind_events",
		Help: "Events of the stream that this replica has yet to write into the audit log; 0 if another one writes it.",
	}))}
}

// Run writes the log whenever it is this replica's work, until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	ctx = request.System(ctx, request.Platform)
	if w.feed.Await(ctx) != nil {
		return nil
	}
	for ctx.Err() == nil {
		if w.group.Owns(work) {
			if at, err := w.take(ctx); err == nil {
				err = w.write(ctx, at)
				if ctx.Err() == nil && err != nil && !errors.Is(err, errLost) {
					return err
				}
			} else if !errors.Is(err, errLost) && ctx.Err() == nil {
				return err
			}
		}
		clock.Pause(ctx, waitToTake)
	}
	return nil
}

// take makes this replica the writer, and returns where to begin.
func (w *Writer) take(ctx context.Context) (place, error) {
	if err := learnKinds(ctx, w.store); err != nil {
		return place{}, err
	}
	end, epoch, err := w.feed.End()
	if err != nil {
		return place{}, err
	}
	oldest, err := w.feed.Oldest(ctx)
	if err != nil {
		return place{}, err
	}
	return docstore.Write(ctx, w.store, func(tx *docstore.Tx) (place, error) {
		at, err := places.Load(ctx, tx, work)
		if apperr.IsNotFound(err) {
			at = &place{
				Meta: docstore.Meta{ID: work}, Owner: w.group.ID, Epoch: epoch, Place: oldest - 1, Base: firstID,
			}
			_, err = places.Insert(ctx, tx, at)
			return *at, err
		}
		if err != nil {
			return place{}, err
		}
		if !w.group.MayTake(at.Owner) {
			return place{}, errLost
		}
		if at.Epoch != epoch || at.Place > end { // a new stream: its ids follow those of the old one
			at.Base += int64(at.Place) //nolint:gosec // a place is far below 2^53
			at.Epoch, at.Place = epoch, oldest-1
		}
		at.Place = max(at.Place, oldest-1)
		at.Owner = w.group.ID
		_, err = places.Replace(ctx, tx, at)
		return *at, err
	})
}

// write writes until ctx ends or the work is another replica's.
func (w *Writer) write(ctx context.Context, at place) error {
	defer w.release(ctx)
	defer w.behind.Set(0)
	for w.group.Owns(work) {
		changed := w.feed.Changed("")
		events, next, err := w.feed.Read(ctx, "", at.Place, batch)
		if err != nil {
			return err // also if the stream has dropped events: take continues after them
		}
		if len(events) > 0 {
			began := time.Now()
			if err := w.add(ctx, at, events, next); err != nil {
				return err
			}
			clock.Pause(ctx, time.Since(began)) // a writer that is far behind works half of the time
		}
		at.Place = next
		if end, _, err := w.feed.End(); err == nil {
			w.behind.Set(float64(end) - float64(next))
		}
		if len(events) < batch {
			w.await(ctx, changed)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errLost
}

// await waits for an event, and then for others to be written with it.
func (w *Writer) await(ctx context.Context, changed <-chan struct{}) {
	look := time.NewTimer(waitToTake)
	defer look.Stop()
	select {
	case <-changed:
		clock.Pause(ctx, gather)
	case <-look.C:
	case <-ctx.Done():
	}
}

// add writes the entries of events of any tenants together with the place, so that each event has one entry whatever
// happens.
func (w *Writer) add(ctx context.Context, from place, events []*feed.Event, next uint64) error {
	made := map[string][]*Entry{}
	for _, e := range events {
		entry := entryOf(e)
		entry.ID = from.id(e.Place)
		made[e.Tenant] = append(made[e.Tenant], entry)
	}
	return docstore.Do(ctx, w.store, func(tx *docstore.Tx) error {
		at, err := places.Load(ctx, tx, work)
		if err != nil {
			return err
		}
		if at.Owner != w.group.ID || at.Place != from.Place {
			return errLost
		}
		for tenant, list := range made {
			if err := insert(request.System(ctx, tenant), tx, list); err != nil {
				return err
			}
		}
		at.Place = next
		_, err = places.Replace(ctx, tx, at)
		return err
	})
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

// release lets another replica take over at once. If it fails, the others wait until this replica counts as dead.
func (w *Writer) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitToTake)
	defer cancel()
	_ = docstore.Do(ctx, w.store, func(tx *docstore.Tx) error {
		at, err := places.Load(ctx, tx, work)
		if err != nil || at.Owner != w.group.ID {
			return err
		}
		at.Owner = ""
		_, err = places.Replace(ctx, tx, at)
		return err
	})
}
