package stream

import (
	"context"
	"errors"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

// Find returns the event with an id at a cursor; nil if the stream no longer has it, or is another stream than the
// cursor's. The error is apperr.Unavailable.
func (l *Log) Find(ctx context.Context, tenant, cursor, id string) (*Event, error) {
	if _, _, err := l.End(); err != nil {
		return nil, err
	}
	of, place, _, ok := ParseCursor(cursor)
	if !ok || !l.IsEpoch(of) || place == 0 {
		return nil, nil
	}
	events, _, err := l.Read(ctx, tenant, place-1, 1)
	if gone := (*GoneError)(nil); errors.As(err, &gone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		if end, _, _ := l.End(); place > end { // another replica has seen it
			there, err := l.has(ctx, of, place)
			if there {
				err = errNotYet
			}
			return nil, err
		}
		return nil, nil
	}
	if events[0].Place != place || events[0].ID != id {
		return nil, nil
	}
	return events[0], nil
}

// has reports whether the stream has reached a place of an epoch. The place may be ahead of what this replica has seen:
// another one was quicker. The error is apperr.Unavailable.
func (l *Log) has(ctx context.Context, epoch string, place uint64) (bool, error) {
	end, _, err := l.End()
	if err != nil || !l.IsEpoch(epoch) || place <= end {
		return err == nil && l.IsEpoch(epoch), err
	}
	stream, err := l.js.Stream(ctx, bus.EventStream)
	if err != nil {
		return false, apperr.Away("the event stream", err)
	}
	info := stream.CachedInfo()
	return bus.Epoch(info) == epoch && place <= info.State.LastSeq, nil
}

// Mark is a place with what it takes to recognize it again.
type Mark struct {
	Epoch string
	Place uint64
	Event string    // the id of the event at the place; "" if it is not known
	At    time.Time // when the place was reached
}

// unsure is how much of the newest events a server may lose in a power cut, with the differences between clocks.
const unsure = time.Minute

// Back returns the place to continue from. It is the mark's own if its event is still there, or the stream no longer
// keeps it. It is the place before the oldest event if the stream is another one, and that before the unsure events if
// it has lost the mark's event, or given its place to another. The error is apperr.Unavailable.
func (l *Log) Back(ctx context.Context, m Mark) (uint64, error) {
	there, err := l.has(ctx, m.Epoch, m.Place)
	if err != nil {
		return 0, err
	}
	if !there && !l.IsEpoch(m.Epoch) {
		oldest, err := l.Oldest(ctx, "")
		return oldest - 1, err
	}
	if !there {
		before, err := l.At(ctx, "", m.At.Add(-unsure))
		return min(m.Place, before), err
	}
	if m.Event == "" || m.Place == 0 {
		return m.Place, nil
	}
	id, err := l.idAt(ctx, m.Place)
	if err != nil || id == "" || id == m.Event {
		return m.Place, err
	}
	before, err := l.At(ctx, "", m.At.Add(-unsure))
	return min(m.Place, before), err
}

// At returns the place before the tenant's first event that the stream took at a time or later; the newest place if
// there is none. The error is apperr.Unavailable.
func (l *Log) At(ctx context.Context, tenant string, at time.Time) (uint64, error) {
	end, _, err := l.End()
	if err != nil {
		return 0, err
	}
	first, err := l.PlaceAt(ctx, tenant, at)
	if err != nil || first == 0 {
		return end, err
	}
	return first - 1, nil
}
