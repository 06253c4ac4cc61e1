package audit

import (
	"bufio"
	"context"
	"io"
	"strconv"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/events/internal/feed"
)

// Log is the use cases.
type Log struct {
	Store *docstore.Store
	Feed  *feed.Feed
	Keep  time.Duration // how long entries are kept
}

// Doc is an entry as read.
type Doc = docstore.Doc[Entry]

// Filter selects entries; empty members do not count. From is included, To is not.
type Filter struct {
	Actor, Entity, Record, Action, Outcome string
	From, To                               clock.Time
}

// where is the filter, and the index that its entries are in the order of time in.
func (f Filter) where() (docstore.Filter, string) {
	var all []docstore.Filter
	order := byTime
	kind := ""
	if f.Entity != "" && f.Action != "" {
		kind = f.Entity + "." + f.Action
		f.Entity, f.Action = "", ""
	}
	for _, m := range []struct{ index, value string }{ // what selects least comes last
		{byEntity, f.Entity}, {byAction, f.Action}, {byKind, kind}, {byDenied, f.denied()}, {byActor, f.Actor},
		{byRecord, f.Record},
	} {
		if m.value == "" {
			continue
		}
		order = m.index
		all = append(all, f.within(m.index, m.value))
	}
	if f.Outcome == Done { // few are denied
		all = append(all, docstore.Eq(byDenied, docstore.Text("")))
	}
	if order == byTime && (!f.From.IsZero() || !f.To.IsZero()) {
		all = append(all, f.period())
	}
	return docstore.And(all...), order
}

func (f Filter) denied() string {
	if f.Outcome == Denied {
		return Denied
	}
	return ""
}

// within selects a value's part of an index, between the times.
func (f Filter) within(index, value string) docstore.Filter {
	if f.From.IsZero() && f.To.IsZero() {
		return docstore.Prefix(index, value+"\x00")
	}
	to := docstore.Text(value + "\x01")
	if !f.To.IsZero() {
		to = docstore.Text(timed(value, f.To))
	}
	return docstore.Range(index, docstore.Text(timed(value, f.From)), to)
}

func (f Filter) period() docstore.Filter {
	switch {
	case f.To.IsZero():
		return docstore.From(byTime, docstore.Moment(f.From))
	case f.From.IsZero():
		return docstore.Until(byTime, docstore.Moment(f.To))
	}
	return docstore.Range(byTime, docstore.Moment(f.From), docstore.Moment(f.To))
}

// List returns a page of entries by time. apperr.InvalidParameters (paging).
func (l *Log) List(ctx context.Context, f Filter, p docstore.Paging) (docstore.Page[Entry], error) {
	where, order := f.where()
	query, err := p.Query(where, byTime)
	if err != nil {
		return docstore.Page[Entry]{}, err
	}
	query.Sort[0].Index = order
	return entries.Page(ctx, l.Store, query)
}

// Get returns an entry; apperr.NotFound.
func (l *Log) Get(ctx context.Context, id string) (Doc, error) { return entries.Find(ctx, l.Store, id) }

const exportPage = 500

// Export writes the selected entries as lines of JSON, the oldest first.
func (l *Log) Export(ctx context.Context, f Filter, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	where, order := f.where()
	query := docstore.Query{Filter: where, Sort: []docstore.Order{{Index: order}}, Limit: exportPage}
	for {
		page, err := entries.Page(ctx, l.Store, query)
		if err != nil {
			return err
		}
		for i := range page.Docs {
			line, err := page.Docs[i].JSON()
			if err != nil {
				return err
			}
			if _, err := out.Write(append(line[:len(line):len(line)], '\n')); err != nil {
				return err
			}
		}
		if query.After = page.Next; query.After == "" {
			return out.Flush()
		}
	}
}

const (
	afterChange = 300 * time.Millisecond // an event's entry is there by then, as a rule
	lookAgain   = 5 * time.Second
	followPage  = 200
)

// End returns the id of the tenant's newest entry, for Follow; "0" if there is none.
func (l *Log) End(ctx context.Context) (string, error) {
	order := []docstore.Order{{Index: byNumber, Desc: true}}
	page, err := entries.Page(ctx, l.Store, docstore.Query{Sort: order, Limit: 1})
	if err != nil || len(page.Docs) == 0 {
		return "0", err
	}
	return page.Docs[0].ID, nil
}

// Follow calls fn for the selected entries after the one with the id, in the order in which they were written, as they
// come, until ctx ends or fn fails. apperr.InvalidParameters (not an id).
func (l *Log) Follow(ctx context.Context, f Filter, after string, fn func(Doc) error) error {
	number, err := strconv.ParseInt(after, 10, 64)
	if err != nil || number < 0 {
		return apperr.Invalid("Last-Event-ID", "must be the id of an entry")
	}
	where, _ := f.where()
	for {
		changed := l.Feed.Changed(request.Tenant(ctx))
		page, err := entries.Page(ctx, l.Store, docstore.Query{
			Filter: docstore.And(where, docstore.From(byNumber, docstore.Number(number+1))),
			Sort:   []docstore.Order{{Index: byNumber}}, Limit: followPage,
		})
		if err != nil {
			return err
		}
		for _, doc := range page.Docs {
			if err := fn(doc); err != nil {
				return err
			}
			number = numberOf(doc.ID)
		}
		if len(page.Docs) > 0 {
			continue
		}
		look := time.NewTimer(lookAgain)
		select {
		case <-changed:
			pause(ctx, afterChange)
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Forget deletes a bounded number of entries that are older than Keep, of every tenant, and returns how many.
func (l *Log) Forget(ctx context.Context) (n int, err error) {
	if l.Keep == 0 {
		return 0, nil
	}
	old := docstore.Until(byTime, docstore.Moment(l.Store.Now().Add(-l.Keep)))
	err = entries.EachTenant(ctx, l.Store, func(ctx context.Context) error {
		deleted, err := docstore.Write(ctx, l.Store, func(tx *docstore.Tx) (int, error) {
			list, err := entries.LoadWhere(ctx, tx, old, byTime, exportPage)
			if err != nil {
				return 0, err
			}
			for _, entry := range list {
				if _, err := entries.Delete(ctx, tx, entry); err != nil {
					return 0, err
				}
			}
			return len(list), nil
		})
		n += deleted
		return err
	})
	return n, err
}
