package stream

import (
	"context"
	"errors"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	readAtOnce = 500
	maxScanned = 10_000  // the most events that are read for one page
	maxPage    = 4 << 20 // bytes of the events of one page; a single event may have more

	// moveOn is how often a reader without events moves to the newest place, so that its place stays in the stream.
	moveOn = time.Minute
)

func gone(epoch string, oldest uint64) error {
	return continueAt(Cursor(epoch, oldest-1, ""), "events after this cursor are no longer kept")
}

// Has returns apperr.InvalidState if events of the context's tenant after a place are no longer kept, or Unavailable.
// It is for answers that cannot be refused any more once they have begun.
func (l *Log) Has(ctx context.Context, after uint64) error {
	_, epoch, err := l.End()
	if err != nil {
		return err
	}
	l.mu.Lock()
	inMemory := after+1 >= l.first
	l.mu.Unlock()
	if inMemory {
		return nil
	}
	oldest, err := l.Oldest(ctx, request.Tenant(ctx))
	if err == nil && after+1 < oldest {
		return gone(epoch, oldest)
	}
	return err
}

// continueAt refuses a cursor and says with which one the feed can continue.
func continueAt(cursor, why string) error {
	e := apperr.New(apperr.InvalidState, "%s; the feed can continue with after=%s", why, cursor)
	e.Next = cursor
	return e
}

// Page calls fn with the events of the context's tenant after a place whose types are selected, in parts as they are
// read: at most limit, and 4 MiB. It returns the cursor at which the next page starts, and whether there are further
// events already. It reads a bounded number of events, so there may be fewer, or none, while there are more. The error
// is that of fn, apperr.InvalidState (events after the place are no longer kept) or Unavailable.
func (l *Log) Page(ctx context.Context, after uint64, types Types, limit int,
	fn func([]*Event) error) (next string, more bool, err error) {
	end, epoch, err := l.End()
	if err != nil {
		return "", false, err
	}
	room := room{limit, maxPage}
	for scanned := 0; ; {
		atOnce := readAtOnce
		if len(types) == 0 {
			atOnce = min(atOnce, room.events)
		}
		events, read, err := l.part(ctx, epoch, after, atOnce)
		if err != nil {
			return "", false, err
		}
		fit, full := room.take(types.among(events))
		if len(fit) > 0 {
			if err := fn(fit); err != nil {
				return "", false, err
			}
			after = fit[len(fit)-1].Place
		}
		if full {
			return l.endOf(epoch, fit, after), after < end, nil
		}
		scanned += len(events)
		after = read
		if read >= end || scanned >= maxScanned {
			return l.endOf(epoch, events, read), read < end, nil
		}
	}
}

// room is what a page has left.
type room struct{ events, bytes int }

// take returns the events that still fit, and whether the page is full then. The first event always fits.
func (r *room) take(events []*Event) (fit []*Event, full bool) {
	for i, e := range events {
		if r.bytes -= len(e.JSON); r.bytes < 0 && r.bytes+len(e.JSON) < maxPage {
			return events[:i], true
		}
		if r.events--; r.events == 0 {
			return events[:i+1], true
		}
	}
	return events, false
}

// part reads for the context's tenant, with GoneError as an error for clients.
func (l *Log) part(ctx context.Context, epoch string, after uint64, limit int) ([]*Event, uint64, error) {
	events, next, err := l.Read(ctx, request.Tenant(ctx), after, limit)
	if missing := (*GoneError)(nil); errors.As(err, &missing) {
		return nil, 0, gone(epoch, missing.First)
	}
	return events, next, err
}

// Watch calls fn with the tenant's selected events after a place, in parts as they come, until ctx ends or fn fails.
// cursor is the place up to which there are no others. Without events, fn is called from time to time. The error is
// apperr.InvalidState if events are no longer kept, or Unavailable.
func (l *Log) Watch(ctx context.Context, after uint64, types Types,
	fn func(cursor string, events []*Event) error) error {
	tenant, resets := request.Tenant(ctx), l.Resets()
	for ctx.Err() == nil {
		if l.Resets() != resets {
			return apperr.New(apperr.InvalidState, "the stream has lost events; begin again where you were")
		}
		changed := l.Changed(tenant)
		_, epoch, err := l.End()
		if err != nil {
			return err
		}
		events, next, err := l.part(ctx, epoch, after, readAtOnce)
		if err != nil {
			return err
		}
		if selected := types.among(events); len(selected) > 0 || next > after {
			if err := fn(l.endOf(epoch, events, next), selected); err != nil {
				return err
			}
		}
		if after = next; len(events) > 0 {
			continue
		}
		if end, now, err := l.End(); err == nil && (now != epoch || end > after) {
			continue // the stream has changed since Changed was called
		}
		select {
		case <-changed:
		case <-time.After(moveOn):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
