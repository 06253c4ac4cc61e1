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
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/services/events/internal/replicas"
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

// place is how far the log, or what is handed on of it, has come, and which replica does the work.
type place struct {
	docstore.Meta        // the id is the work's name
	Owner         string `json:"owner"`
	Epoch         string `json:"epoch"` // of the stream
	Place         uint64 `json:"place"`
	Event         string `json:"event,omitempty"` // the id of the event at Place, if it is known
	Base          int64  `json:"base"`            // what is added to the places of this stream to make ids
}

var places = docstore.Define(docstore.Schema[place]{Name: "audit_place", Noun: "place of the audit log",
	NoIfMatch: true})

// Collections are those that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{entries.Def(), kinds.Def(), places.Def()} }

// id is the id of the entry of the event at a place.
func (p *place) id(place uint64) string {
	return strconv.FormatInt(p.Base+int64(place), 10) //nolint:gosec // a place is far below 2^53
}

var errLost = errors.New("another replica writes the audit log now")

// Writer makes entries of events, and puts them into the log or hands them on. One replica does so at a time.
type Writer struct {
	store  *docstore.Store
	stream *stream.Log
	group  *replicas.Group
	behind prometheus.Gauge
	work   string
	resets int // of the feed, when this replica took the work
	// put puts the entries of events of any tenants somewhere, and saves the place next; errLost if it was taken over.
	put func(ctx context.Context, from place, events []*stream.Event, next uint64) error
}

// NewWriter makes the writer of the log.
func NewWriter(store *docstore.Store, events *stream.Log, group *replicas.Group,
	metrics prometheus.Registerer) *Writer {
	w := &Writer{store: store, stream: events, group: group, work: work}
	w.put = w.add
	w.behind = telemetry.Register(metrics, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "idp_audit_log_behind_events",
		Help: "Events of the stream that this replica has yet to write into the audit log; 0 if another one writes it.",
	}))
	return w
}

// Run writes the log whenever it is this replica's work, until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	ctx = request.System(ctx, request.Platform)
	if w.stream.Await(ctx) != nil {
		return nil
	}
	for ctx.Err() == nil {
		if w.group.Owns(w.work) {
			at, err := w.take(ctx)
			if err == nil {
				err = w.write(ctx, at)
			}
			if ctx.Err() == nil && err != nil && !errors.Is(err, errLost) {
				return err // it is tried again: the metric stays as it is
			}
		}
		w.behind.Set(0)
		clock.Pause(ctx, waitToTake)
	}
	w.behind.Set(0)
	return nil
}

// Written returns the place up to which all events have their entries; 0 if that is not known. Events after it must not
// be dropped.
func Written(ctx context.Context, store *docstore.Store, events *stream.Log) (uint64, error) {
	doc, err := places.Find(request.System(ctx, request.Platform), store, work)
	if apperr.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	at, err := doc.Value()
	if err != nil {
		return 0, err
	}
	if !events.IsEpoch(at.Epoch) {
		return 0, nil
	}
	return at.Place, nil
}

// take makes this replica the writer, and returns where to begin.
func (w *Writer) take(ctx context.Context) (place, error) {
	w.resets = w.stream.Resets()
	_, epoch, err := w.stream.End()
	if err != nil {
		return place{}, err
	}
	oldest, err := w.stream.Oldest(ctx, "")
	if err != nil {
		return place{}, err
	}
	back, err := w.lost(ctx)
	if err != nil {
		return place{}, err
	}
	return docstore.Write(ctx, w.store, func(tx *docstore.Tx) (place, error) {
		at, err := places.Load(ctx, tx, w.work)
		if apperr.IsNotFound(err) {
			at = &place{
				Meta: docstore.Meta{ID: w.work}, Owner: w.group.ID, Epoch: epoch, Place: oldest - 1, Base: firstID,
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
		if back != nil && back.Version != at.Version {
			return place{}, errLost // another replica has written meanwhile
		}
		if back != nil {
			at.moveBack(epoch, back.Place)
		}
		at.Place = max(at.Place, oldest-1)
		at.Owner = w.group.ID
		_, err = places.Replace(ctx, tx, at)
		return *at, err
	})
}

// moveBack sets the place back. The entries from there on have greater ids than those that exist.
func (p *place) moveBack(epoch string, to uint64) {
	last := p.Base + int64(p.Place)      //nolint:gosec // a place is far below 2^53
	p.Base = max(p.Base, last-int64(to)) //nolint:gosec // a place is far below 2^53
	p.Epoch, p.Place, p.Event = epoch, to, ""
}

// lost returns the place from which the stream has to be read again, because it lost its newest events, in a power cut,
// and has given their places to others; nil if it has lost none.
func (w *Writer) lost(ctx context.Context) (*place, error) {
	doc, err := places.Find(ctx, w.store, w.work)
	if apperr.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at, err := doc.Value()
	if err != nil {
		return nil, err
	}
	mark := stream.Mark{Epoch: at.Epoch, Place: at.Place, Event: at.Event, At: at.TimeModified.Std()}
	back, err := w.stream.Back(ctx, mark)
	if err != nil || back == at.Place {
		return nil, err
	}
	at.Place = back
	return at, nil
}

// write writes until ctx ends or the work is another replica's.
func (w *Writer) write(ctx context.Context, at place) error {
	defer w.release(ctx)
	for w.group.Owns(w.work) {
		if w.stream.Resets() != w.resets {
			return errLost // take finds the place again
		}
		changed := w.stream.Changed("")
		events, next, err := w.stream.Read(ctx, "", at.Place, batch)
		if err != nil {
			return err // also if the stream has dropped events: take continues after them
		}
		if len(events) > 0 {
			w.told(at.Place)
			began := time.Now()
			if err := w.put(ctx, at, events, next); err != nil {
				return err
			}
			clock.Pause(ctx, time.Since(began)) // a writer that is far behind works half of the time
		}
		at.Place = next
		// A read is bounded in bytes, too: fewer events than batch may not be all.
		if end, known := w.told(next); !known || next >= end {
			w.await(ctx, changed)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errLost
}

// told sets the metric of a place, and returns the end of the stream.
func (w *Writer) told(place uint64) (end uint64, known bool) {
	end, _, err := w.stream.End()
	if err == nil {
		w.behind.Set(float64(end) - float64(place))
	}
	return end, err == nil
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
func (w *Writer) add(ctx context.Context, from place, events []*stream.Event, next uint64) error {
	made := map[string][]*Entry{}
	for _, e := range events {
		entry := entryOf(e)
		entry.ID = from.id(e.Place)
		made[e.Tenant] = append(made[e.Tenant], entry)
	}
	return docstore.Do(ctx, w.store, func(tx *docstore.Tx) error {
		for tenant, list := range made {
			if err := insert(request.System(ctx, tenant), tx, list); err != nil {
				return err
			}
		}
		return w.save(ctx, tx, from, next)
	})
}

// save saves the place next if this replica still does the work, from the same place; otherwise errLost.
func (w *Writer) save(ctx context.Context, tx *docstore.Tx, from place, next uint64) error {
	at, err := places.Load(ctx, tx, w.work)
	if err != nil {
		return err
	}
	if at.Owner != w.group.ID || at.Place != from.Place {
		return errLost
	}
	at.Place, at.Event = next, w.stream.IDAt(next)
	if w.stream.Resets() != w.resets { // the stored event shows which ones the stream has lost
		return errLost
	}
	_, err = places.Replace(ctx, tx, at)
	return err
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
		at, err := places.Load(ctx, tx, w.work)
		if err != nil || at.Owner != w.group.ID {
			return err
		}
		at.Owner = ""
		_, err = places.Replace(ctx, tx, at)
		return err
	})
}
