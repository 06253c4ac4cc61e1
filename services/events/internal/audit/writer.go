package audit

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/events/internal/feed"
	"github.com/idplatform/idplatform/services/events/internal/share"
)

const (
	batch = 500
	// gather is how long events are gathered for one transaction, where fewer than a batch come.
	gather = 250 * time.Millisecond
	// The writer rests so many times as long as it has worked, so that it takes a tenth of a processor, unless it is far
	// behind: the stream keeps what waits, but not for ever.
	rest      = 10
	restLate  = 2
	farBehind = 50_000 // events
	// firstID is so large that all ids have the same number of digits.
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
func Collections() []*docstore.Def { return []*docstore.Def{entries.Def(), places.Def()} }

func numberOf(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64)
	return n
}

var errLost = errors.New("another replica writes the audit log now")

// Writer makes entries of events. One replica writes at a time.
type Writer struct {
	Store *docstore.Store
	Feed  *feed.Feed
	Group *share.Group
}

// Run writes the log whenever it is this replica's work, until ctx ends. It leaves most of the processors' time to
// requests: under load the log comes later.
func (w *Writer) Run(ctx context.Context) error {
	ctx = request.System(ctx, request.Platform)
	for ctx.Err() == nil {
		if w.Group.Owns(work) {
			if at, err := w.take(ctx); err == nil {
				err = w.write(ctx, at)
				if ctx.Err() == nil && err != nil && !errors.Is(err, errLost) {
					return err
				}
			} else if !errors.Is(err, errLost) && ctx.Err() == nil {
				return err
			}
		}
		pause(ctx, waitToTake)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// take makes this replica the writer, and returns where to begin.
func (w *Writer) take(ctx context.Context) (place, error) {
	end, epoch, err := w.Feed.End()
	if err != nil {
		return place{}, err
	}
	oldest, err := w.Feed.Oldest(ctx)
	if err != nil {
		return place{}, err
	}
	return docstore.Write(ctx, w.Store, func(tx *docstore.Tx) (place, error) {
		at, err := places.Load(ctx, tx, work)
		if apperr.IsNotFound(err) {
			at = &place{Meta: docstore.Meta{ID: work}, Owner: w.Group.ID, Epoch: epoch, Place: oldest - 1, Base: firstID}
			_, err = places.Insert(ctx, tx, at)
			return *at, err
		}
		if err != nil {
			return place{}, err
		}
		if !w.Group.MayTake(at.Owner) {
			return place{}, errLost
		}
		if at.Epoch != epoch || at.Place > end { // the stream was lost and began anew; ids go on
			at.Base += int64(at.Place) //nolint:gosec // a place is far below 2^53
			at.Epoch, at.Place = epoch, oldest-1
		}
		at.Place = max(at.Place, oldest-1)
		at.Owner = w.Group.ID
		_, err = places.Replace(ctx, tx, at)
		return *at, err
	})
}

// write writes until ctx ends or the work is another replica's.
func (w *Writer) write(ctx context.Context, at place) error {
	defer w.release(ctx)
	for w.Group.Owns(work) {
		changed := w.Feed.Changed("")
		events, next, err := w.Feed.Read(ctx, "", at.Place, batch)
		if err != nil {
			return err // also where events were dropped: take begins after them
		}
		if len(events) > 0 {
			began := time.Now()
			if err := w.add(ctx, at, events, next); err != nil {
				return err
			}
			pause(ctx, w.rest(next)*time.Since(began))
		}
		at.Place = next
		if len(events) < batch {
			w.await(ctx, changed)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errLost
}

// rest is how many times as long as it has worked the writer rests.
func (w *Writer) rest(place uint64) time.Duration {
	if end, _, err := w.Feed.End(); err == nil && end > place+farBehind {
		return restLate
	}
	return rest
}

// await waits for an event, and then for those that come with it.
func (w *Writer) await(ctx context.Context, changed <-chan struct{}) {
	look := time.NewTimer(waitToTake)
	defer look.Stop()
	select {
	case <-changed:
		pause(ctx, gather)
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
		entry.ID = strconv.FormatInt(from.Base+int64(e.Place), 10) //nolint:gosec // far below 2^53
		made[e.Tenant] = append(made[e.Tenant], entry)
	}
	return docstore.Do(ctx, w.Store, func(tx *docstore.Tx) error {
		at, err := places.Load(ctx, tx, work)
		if err != nil {
			return err
		}
		if at.Owner != w.Group.ID || at.Place != from.Place {
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

// insert leaves out events that have an entry: the stream has an event twice where it was published again after the
// time in which NATS recognizes that.
func insert(ctx context.Context, tx *docstore.Tx, list []*Entry) error {
	ids := make([]docstore.Value, len(list))
	for i, entry := range list {
		ids[i] = docstore.Text(entry.EventID)
	}
	found, err := entries.Texts(ctx, tx, byEvent, docstore.In(byEvent, ids...), len(ids))
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
		again := *entry // the transaction may run again
		if _, err := entries.Insert(ctx, tx, &again); err != nil {
			return err
		}
	}
	return nil
}

// release lets another replica take over at once.
func (w *Writer) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitToTake)
	defer cancel()
	_ = docstore.Do(ctx, w.Store, func(tx *docstore.Tx) error { // otherwise others wait until this replica is dead
		at, err := places.Load(ctx, tx, work)
		if err != nil || at.Owner != w.Group.ID {
			return err
		}
		at.Owner = ""
		_, err = places.Replace(ctx, tx, at)
		return err
	})
}
