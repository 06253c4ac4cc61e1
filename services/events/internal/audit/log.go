package audit

import (
	"bufio"
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
)

// Log has the use cases.
type Log struct {
	Store  *docstore.Store
	Stream *stream.Log
	Keep   time.Duration // how long entries are kept
}

// Doc is an entry as read.
type Doc = docstore.Doc[Entry]

// Filter selects entries. An empty member means any. From is included, To is not.
type Filter struct {
	Actor    string `query:"actor" maxLength:"1024" doc:"Who made the change, as in an entry" example:"client:4f1c"`
	Entity   string `query:"entity" maxLength:"64" example:"user"`
	Record   string `query:"record" maxLength:"64" doc:"The record's id"`
	Action   string `query:"action" maxLength:"64" example:"created"`
	Outcome  string `query:"outcome" enum:"done,denied"`
	From, To clock.Time
}

// kinds selects kinds, and reports whether the filter is by kind at all.
func (f Filter) kinds(known []kind) (selected []kind, byKind bool) {
	for _, k := range known {
		if f.fits(k) {
			selected = append(selected, k)
		}
	}
	return selected, f.Entity+f.Action+f.Outcome != ""
}

// fits reports whether the filter can select entries of a kind.
func (f Filter) fits(k kind) bool {
	return (f.Entity == "" || f.Entity == k.Entity) && (f.Action == "" || f.Action == k.Action) &&
		(f.Outcome == "" || f.Outcome == k.Outcome)
}

// selects reports whether the filter selects an entry.
func (f Filter) selects(e *Entry) bool {
	return f.fits(e.kind()) && (f.Actor == "" || f.Actor == e.Actor) && (f.Record == "" || f.Record == e.Record) &&
		!e.Time.Before(f.From) && (f.To.IsZero() || e.Time.Before(f.To))
}

// where is the filter for the store. A page is found by a walk along one index in the order of time, or by several
// walks that are merged. Only a filter by record and something else tests entries: those of the record.
func (f Filter) where(known []kind) docstore.Filter {
	var values, actors []docstore.Value
	selected, byKinds := f.kinds(known)
	for _, k := range selected {
		values = append(values, docstore.Text(k.name()))
		actors = append(actors, docstore.Text(actorKind(f.Actor, k)))
	}
	within := func(index string, values []docstore.Value) docstore.Filter {
		what := strings.Join([]string{f.Actor, f.Entity, f.Action, f.Outcome}, "\x00")
		return docstore.FollowingFrom(what, docstore.In(index, values...))
	}
	var all []docstore.Filter
	if f.Record != "" {
		all = append(all, docstore.Eq(byRecord, docstore.Text(f.Record)))
	}
	switch {
	case f.Actor != "":
		all = append(all, within(byActorKind, actors))
	case byKinds:
		all = append(all, within(byKind, values))
	}
	if !f.From.IsZero() {
		all = append(all, docstore.From(byTime, docstore.Moment(f.From)))
	}
	if !f.To.IsZero() {
		all = append(all, docstore.Until(byTime, docstore.Moment(f.To)))
	}
	return docstore.And(all...)
}

// List returns a page of entries by time. apperr.InvalidParameters (paging).
func (l *Log) List(ctx context.Context, f Filter, p docstore.Paging) (docstore.Page[Entry], error) {
	known, err := kindsOf(ctx, l.Store)
	if err != nil {
		return docstore.Page[Entry]{}, err
	}
	return entries.List(ctx, l.Store, f.where(known), p)
}

// Get returns an entry; apperr.NotFound.
func (l *Log) Get(ctx context.Context, id string) (Doc, error) { return entries.Find(ctx, l.Store, id) }

// Export writes the selected entries as lines of JSON, the oldest first.
func (l *Log) Export(ctx context.Context, f Filter, w io.Writer) error {
	known, err := kindsOf(ctx, l.Store)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 64<<10)
	query := docstore.Query{Filter: f.where(known), Sort: []docstore.Order{{Index: byTime}}}
	for stride := (docstore.Stride{}); ; {
		query.Limit = stride.Next()
		page, err := entries.Page(ctx, l.Store, query)
		if err != nil {
			return err
		}
		bytes := 0
		for i := range page.Docs {
			line, err := page.Docs[i].JSON()
			if err != nil {
				return err
			}
			bytes += len(line)
			if _, err := out.Write(append(line[:len(line):len(line)], '\n')); err != nil {
				return err
			}
		}
		stride.Took(len(page.Docs), bytes)
		if query.After = page.Next; query.After == "" {
			return out.Flush()
		}
	}
}

const (
	afterChange = 300 * time.Millisecond // by then an event usually has its entry
	lookAgain   = 5 * time.Second
	followShare = 4 // a reader of the stream gets this part of what is usually read at once
)

// End returns the id of the tenant's newest entry, for Follow; "0" if there is none.
func (l *Log) End(ctx context.Context) (string, error) {
	return places.LastID(ctx, l.Store, work)
}

// Follow calls fn for the selected entries after the one with the id, in the order in which they were written, in
// parts as they come, until ctx ends or fn fails. apperr.InvalidParameters (not an id).
func (l *Log) Follow(ctx context.Context, f Filter, after string, fn func(place string, docs []Doc) error) error {
	switch n, err := strconv.ParseUint(after, 10, 53); {
	case err != nil:
		return apperr.Invalid("Last-Event-ID", "must be the id of an entry")
	case n < stream.FirstID: // ids are compared as texts: "9" would come after all ids
		after = "0"
	}
	for stride := (docstore.Stride{}); ctx.Err() == nil; {
		changed := l.Stream.Changed(request.Tenant(ctx))
		page, err := entries.Page(ctx, l.Store, docstore.Query{AfterID: after, Limit: stride.Next()})
		if err != nil {
			return err
		}
		selected, bytes, err := f.among(page.Docs)
		if err != nil {
			return err
		}
		if stride.Took(len(page.Docs), followShare*bytes); len(page.Docs) > 0 {
			after = page.Docs[len(page.Docs)-1].ID
		}
		if len(page.Docs) > 0 {
			if err := fn(after, selected); err != nil {
				return err
			}
			continue
		}
		look := time.NewTimer(lookAgain)
		select {
		case <-changed:
			clock.Pause(ctx, afterChange)
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
	}
	return ctx.Err()
}

// among returns the selected entries, and the size of all.
func (f Filter) among(docs []Doc) (selected []Doc, bytes int, err error) {
	for _, doc := range docs {
		entry, err := doc.Value()
		if err != nil {
			return nil, 0, err
		}
		line, err := doc.JSON()
		if err != nil {
			return nil, 0, err
		}
		if bytes += len(line); f.selects(entry) {
			selected = append(selected, doc)
		}
	}
	return selected, bytes, nil
}

const forgetAtOnce = 500

// Forget deletes a bounded number of entries that are older than Keep, of every tenant, and returns how many.
func (l *Log) Forget(ctx context.Context) (n int, err error) {
	if l.Keep == 0 {
		return 0, nil
	}
	old := docstore.Until(byTime, docstore.Moment(l.Store.Now().Add(-l.Keep)))
	err = entries.EachTenant(ctx, l.Store, func(ctx context.Context) error {
		deleted, err := docstore.Write(ctx, l.Store, func(tx *docstore.Tx) (int, error) {
			list, err := entries.LoadWhere(ctx, tx, old, byTime, forgetAtOnce)
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
