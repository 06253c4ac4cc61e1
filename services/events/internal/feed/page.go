package feed

import (
	"context"
	"errors"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	readAtOnce = 500
	maxScanned = 10_000 // the most events that are read for one page

	// moveOn is how often a reader without events moves to the newest place, so that its place stays in the stream.
	moveOn = time.Minute
)

// Page is a part of a tenant's feed.
type Page struct {
	Events []*Event
	Next   string // the cursor at which the next page starts
	More   bool   // there are further events already
}

// Start returns the cursor's place: that of the oldest event that is kept for "", the newest one for "now". The error
// is apperr.InvalidParameters (not a cursor), InvalidState (of another stream) or Unavailable.
func (f *Feed) Start(ctx context.Context, cursor string) (uint64, error) {
	end, epoch, err := f.End()
	if err != nil {
		return 0, err
	}
	switch cursor {
	case "now":
		return end, nil
	case "":
		oldest, err := f.Oldest(ctx)
		return oldest - 1, err
	}
	of, place, ok := ParseCursor(cursor)
	if !ok {
		return 0, apperr.Invalid("after", "must be the next of an earlier page, or now")
	}
	if of != epoch || place > end {
		oldest, err := f.Oldest(ctx)
		if err != nil {
			return 0, err
		}
		return 0, gone(epoch, oldest)
	}
	return place, nil
}

func gone(epoch string, oldest uint64) error {
	return apperr.New(apperr.InvalidState,
		"events after this cursor are no longer kept; the feed can continue with after=%s", Cursor(epoch, oldest-1))
}

// Page returns the events of the context's tenant after a place whose types are selected, at most limit. It reads a
// bounded number of events, so it may return fewer, or none, while More is true. The error is apperr.InvalidState
// (events after the place are no longer kept) or Unavailable.
func (f *Feed) Page(ctx context.Context, after uint64, types Types, limit int) (Page, error) {
	end, epoch, err := f.End()
	if err != nil {
		return Page{}, err
	}
	page := Page{Events: []*Event{}}
	for scanned := 0; ; {
		events, next, err := f.Read(ctx, request.Tenant(ctx), after, readAtOnce)
		if missing := (*GoneError)(nil); errors.As(err, &missing) {
			return Page{}, gone(epoch, missing.First)
		}
		if err != nil {
			return Page{}, err
		}
		for _, e := range events {
			if !types.Match(e.Type) {
				continue
			}
			if page.Events = append(page.Events, e); len(page.Events) == limit {
				page.Next, page.More = Cursor(epoch, e.Place), e.Place < end
				return page, nil
			}
		}
		scanned += len(events)
		after = next
		if next >= end || scanned >= maxScanned {
			page.Next, page.More = Cursor(epoch, next), next < end
			return page, nil
		}
	}
}

// Follow calls fn for the tenant's selected events after a place, as they come, until ctx ends or fn fails. The error
// is apperr.InvalidState if events are no longer kept, or Unavailable.
func (f *Feed) Follow(ctx context.Context, after uint64, types Types, fn func(cursor string, e *Event) error) error {
	tenant := request.Tenant(ctx)
	for {
		changed := f.Changed(tenant)
		_, epoch, err := f.End()
		if err != nil {
			return err
		}
		events, next, err := f.Read(ctx, tenant, after, readAtOnce)
		if missing := (*GoneError)(nil); errors.As(err, &missing) {
			return gone(epoch, missing.First)
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			if types.Match(e.Type) {
				if err := fn(Cursor(epoch, e.Place), e); err != nil {
					return err
				}
			}
		}
		if after = next; len(events) > 0 {
			continue
		}
		if end, now, err := f.End(); err == nil && (now != epoch || end > after) {
			continue // the stream has changed since Changed was called
		}
		select {
		case <-changed:
		case <-time.After(moveOn):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
