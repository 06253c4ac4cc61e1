package delivery

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

// Log lists the deliveries of subscriptions, as clients see them.
type Log struct {
	Store *docstore.Store
	Subs  *subscription.Subscriptions
}

// Page is a page of deliveries.
type Page struct {
	Deliveries []Delivery
	Total      int64
	Next       string
}

// maxLogged is more than the log of a subscription can have.
const maxLogged = 1_000_000

// Filter selects deliveries of a subscription. An empty status selects all.
type Filter struct {
	Subscription string `path:"id" maxLength:"64" doc:"The record's id" example:"1048577"`
	Status       string `query:"status" enum:"delivered,retrying,held,failed"`
	docstore.Paging
}

// List returns deliveries of a subscription, newest event first: all that wait, and the last thousand that have ended.
// The error is apperr.NotFound or InvalidParameters (paging).
func (l *Log) List(ctx context.Context, f Filter) (Page, error) {
	id, status, p := f.Subscription, f.Status, f.Paging
	if p.Sort != "" && p.Sort != "time[desc]" {
		return Page{}, apperr.Invalid("page_sort", "must be time[desc]")
	}
	if _, err := l.Subs.Find(ctx, id); err != nil {
		return Page{}, err
	}
	all, err := l.all(ctx, id)
	if err != nil {
		return Page{}, err
	}
	all = slices.DeleteFunc(all, func(d Delivery) bool { return status != "" && d.Status != status })
	slices.SortStableFunc(all, func(a, b Delivery) int { return cmp.Compare(b.Place, a.Place) })
	page := Page{Total: int64(len(all))}
	if p.Num > maxLogged {
		return Page{}, apperr.Invalid("page_num", "is too far into the list")
	}
	from := min((p.Num-1)*p.Size, len(all))
	if p.After != "" {
		after, err := docstore.ReadPageToken(ctx, p.After, "deliveries", id, status)
		if err != nil {
			return Page{}, err
		}
		before, err := strconv.ParseUint(after, 10, 63)
		if err != nil {
			return Page{}, apperr.Invalid("page_token", "is not a page token of this list")
		}
		if from = slices.IndexFunc(all, func(d Delivery) bool { return d.Place < before }); from < 0 {
			from = len(all)
		}
	}
	to := min(from+p.Size, len(all))
	// Several deliveries of one event stay on one page, because the page token is the event's place.
	for to > from && to < len(all) && all[to].Place == all[to-1].Place {
		to++
	}
	page.Deliveries = all[from:to]
	if to < len(all) {
		page.Next = docstore.PageToken(ctx, strconv.FormatUint(all[to-1].Place, 10), "deliveries", id, status)
	}
	return page, nil
}

func (l *Log) all(ctx context.Context, id string) (all []Delivery, _ error) {
	err := rows.Each(ctx, l.Store, of(id), func(doc docstore.Doc[row]) error {
		r, err := doc.Value()
		if err == nil {
			all = append(all, r.Delivery)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, blocks.Each(ctx, l.Store, of(id), func(doc docstore.Doc[block]) error {
		b, err := doc.Value()
		if err == nil {
			all = append(all, b.Deliveries...)
		}
		return err
	})
}

// Redeliver delivers an event of the log once more, with all tries. Later events of its record wait for it. The
// error is apperr.NotFound (the log does not have the event) or InvalidState (the subscription is not active).
func (l *Log) Redeliver(ctx context.Context, id, eventID string) (Delivery, error) {
	sub, err := l.Subs.Find(ctx, id)
	if err != nil {
		return Delivery{}, err
	}
	if err := docstore.CheckExpected(ctx, id, sub.Version); err != nil {
		return Delivery{}, err
	}
	if sub.State != subscription.Active {
		return Delivery{}, apperr.New(apperr.InvalidState, "the subscription is %s", sub.State)
	}
	all, err := l.all(ctx, id)
	if err != nil {
		return Delivery{}, err
	}
	i := slices.IndexFunc(all, func(d Delivery) bool { return d.EventID == eventID })
	if i < 0 {
		return Delivery{}, apperr.Missing("delivery")
	}
	event, err := l.Subs.Event(ctx, all[i].Cursor, all[i].EventID)
	if err != nil {
		return Delivery{}, err
	}
	if event == nil {
		return Delivery{}, apperr.New(apperr.InvalidState, "the event is no longer kept")
	}
	return l.again(ctx, id, event.Record(), all[i])
}

func (l *Log) again(ctx context.Context, id, record string, d Delivery) (Delivery, error) {
	return docstore.Write(ctx, l.Store, func(tx *docstore.Tx) (Delivery, error) {
		doc, err := subscription.TellRedelivered(ctx, tx, id, d.EventID)
		if err != nil {
			return Delivery{}, err
		}
		again := d
		again.Status, again.Tries, again.NextTry, again.Error, again.ResponseCode = Retrying, 0, tx.Now, "", 0
		again.Again = doc.Revision()
		found, err := rows.LoadMany(ctx, tx, []string{rowID(id, d.EventID)})
		if err != nil {
			return Delivery{}, err
		}
		if len(found) == 0 {
			r := &row{Meta: docstore.Meta{ID: rowID(id, d.EventID)}, Subscription: id, Record: record, Delivery: again}
			_, err = rows.Insert(ctx, tx, r)
		} else {
			found[0].Delivery = again
			_, err = rows.Replace(ctx, tx, found[0])
		}
		return again.Shown(), err
	})
}
