package delivery

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

// errLost means that another replica has the subscription now, or that it was reset or deleted.
var errLost = errors.New("the subscription is delivered to by another worker now")

// place is the place up to which no event is open.
func (w *worker) place() uint64 { return w.queue.place(w.read) }

// save writes all changes in one transaction. With release it also gives up the subscription, so that another replica
// can take it. It returns false if the worker must end.
func (w *worker) save(ctx context.Context, release bool) bool {
	w.queue.hold()
	ctx = request.System(request.With(ctx, request.Info{ID: request.NewID()}), w.sub.TenantID)
	err := docstore.Do(ctx, w.store, func(tx *docstore.Tx) error { return w.write(ctx, tx, release) })
	w.lastSave, w.passed = time.Now(), 0
	if errors.Is(err, errLost) {
		return false
	}
	if err != nil { // the next save writes it; after a crash, events would be delivered twice, which is allowed
		w.log.WarnContext(ctx, "the progress of a subscription was not saved", "error", err)
		return true
	}
	w.saved = w.place()
	w.queue.saved()
	return true
}

// write runs in the transaction. It does not change the worker, because the transaction may run again.
func (w *worker) write(ctx context.Context, tx *docstore.Tx, release bool) error {
	p, err := subscription.ProgressOf.Load(ctx, tx, w.sub.ID)
	if apperr.IsNotFound(err) || err == nil && (p.Owner != w.group.ID || p.Generation != w.generation) {
		return errLost
	}
	if err != nil {
		return err
	}
	if err := w.writeRows(ctx, tx); err != nil {
		return err
	}
	if err := note(ctx, tx, w.sub.ID, p.Logged, w.queue.ended); err != nil {
		return err
	}
	p.Logged += int64(len(w.queue.ended))
	p.Pending = int64(len(w.queue.waiting))
	// After a reset, the stored place and event show the next worker which events the stream has lost.
	place := w.place()
	if event := w.stream.IDAt(place); w.stream.Resets() == w.resets {
		p.Epoch, p.Place, p.Event = w.epoch, place, event
	}
	p.Delivered += w.queue.delivered
	p.Failed += w.queue.failed
	if w.queue.lastError != "" {
		p.LastError = w.queue.lastError
	}
	if release {
		p.Owner = ""
	}
	if w.queue.stopAs != "" {
		if err := subscription.Stop(ctx, tx, p, w.queue.stopAs, w.queue.lastError); err != nil {
			return err
		}
	}
	_, err = subscription.ProgressOf.Replace(ctx, tx, p)
	return err
}

func (w *worker) writeRows(ctx context.Context, tx *docstore.Tx) error {
	ids := slices.Collect(maps.Keys(w.queue.deleted))
	for _, it := range w.queue.waiting {
		if it.dirty {
			ids = append(ids, it.row)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := rows.LoadMany(ctx, tx, ids)
	if err != nil {
		return err
	}
	stored := map[string]*row{}
	for _, r := range found {
		stored[r.ID] = r
	}
	for id := range w.queue.deleted {
		if r := stored[id]; r != nil {
			if _, err := rows.Delete(ctx, tx, r); err != nil {
				return err
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.queue.waiting)) {
		it := w.queue.waiting[id]
		if !it.dirty {
			continue
		}
		if r := stored[it.row]; r != nil {
			r.Delivery = it.Delivery
			_, err = rows.Replace(ctx, tx, r)
		} else {
			_, err = rows.Insert(ctx, tx, &row{Meta: docstore.Meta{ID: it.row}, Subscription: w.sub.ID,
				Record: it.record, Delivery: it.Delivery})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
