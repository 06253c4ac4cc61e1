package stream

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
)

// Cursor is a place as clients see it: the epoch, because another stream has other events at its places, the place, and
// a mark of the event there, because a server may lose its newest events in a power cut and give their places to
// others. event is its id; "" if it is not known.
func Cursor(epoch string, place uint64, event string) string {
	cursor := epoch + "." + strconv.FormatUint(place, 10)
	if mark := markOf(event); mark != "" {
		cursor += "." + mark
	}
	return cursor
}

// markOf is the second in which an event was made and a hash of its id: the event at a place can be another tenant's.
func markOf(event string) string {
	id, err := uuid.Parse(event)
	if err != nil || id.Version() != 7 {
		return ""
	}
	seconds, _ := id.Time().UnixTime()
	hash := sha256.Sum256([]byte(event))
	mark := binary.BigEndian.AppendUint32(nil, uint32(seconds)) //nolint:gosec // until 2106
	return base64.RawURLEncoding.EncodeToString(append(mark, hash[:5]...))
}

// madeAt is the time in a mark.
func madeAt(mark string) (time.Time, bool) {
	decoded, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil || len(decoded) != 9 {
		return time.Time{}, false
	}
	return time.Unix(int64(binary.BigEndian.Uint32(decoded)), 0), true
}

// ParseCursor is the opposite of Cursor. mark is "" if the cursor has none.
func ParseCursor(cursor string) (epoch string, place uint64, mark string, ok bool) {
	epoch, rest, _ := strings.Cut(cursor, ".")
	number, mark, _ := strings.Cut(rest, ".")
	place, err := strconv.ParseUint(number, 10, 63)
	if _, isMark := madeAt(mark); mark != "" && !isMark {
		return "", 0, "", false
	}
	return epoch, place, mark, err == nil && epoch != ""
}

// Start returns the cursor's place: that of the oldest event that is kept for "", the newest one for "now", and for a
// time (RFC 3339, or a date) the place before the first event that the stream took then or later. The error is
// apperr.InvalidParameters (neither), InvalidState (of another stream, or of events that it no longer has) or
// Unavailable.
func (l *Log) Start(ctx context.Context, cursor string) (uint64, error) {
	end, epoch, err := l.End()
	if err != nil {
		return 0, err
	}
	switch cursor {
	case "now":
		return end, nil
	case "":
		oldest, err := l.Oldest(ctx, request.Tenant(ctx))
		return oldest - 1, err
	}
	if at, err := clock.Parse(cursor); err == nil {
		return l.startAt(ctx, epoch, end, at.Std())
	}
	of, place, mark, ok := ParseCursor(cursor)
	if !ok {
		return 0, apperr.Invalid("after", "must be the next of an earlier page, now, or a time")
	}
	there, err := l.has(ctx, of, place)
	if err != nil {
		return 0, err
	}
	if !there {
		oldest, err := l.Oldest(ctx, request.Tenant(ctx))
		if err != nil {
			return 0, err
		}
		return 0, gone(epoch, oldest)
	}
	return place, l.checkMark(ctx, epoch, place, mark)
}

// startAt returns the place before the first event, of any tenant, that the stream took at a time or later. Whether the
// tenant's events after it are all there shows when they are read.
func (l *Log) startAt(ctx context.Context, epoch string, end uint64, at time.Time) (uint64, error) {
	stream, err := l.js.Stream(ctx, bus.EventStream)
	if err != nil {
		return 0, apperr.Away("the event stream", err)
	}
	info := stream.CachedInfo()
	from := info.State.FirstTime
	if info.State.Msgs == 0 {
		from = time.Now().Add(-l.Keeps())
	}
	if hasLost := info.State.FirstSeq > max(1, info.Config.FirstSeq); hasLost && at.Before(from) {
		oldest, err := l.Oldest(ctx, request.Tenant(ctx))
		if err != nil {
			return 0, err
		}
		return 0, gone(epoch, oldest)
	}
	// Times far away would overflow in JetStream.
	if made := bus.MadeAt(info); at.Before(made) {
		at = made
	}
	if at.After(time.Now()) {
		return end, nil
	}
	place, err := l.At(ctx, "", at)
	return min(place, end), err
}

// checkMark compares the event at a place with a cursor's mark. It is no fault if the event is no longer kept.
func (l *Log) checkMark(ctx context.Context, epoch string, place uint64, mark string) error {
	made, ok := madeAt(mark)
	if !ok || place == 0 {
		return nil
	}
	id, err := l.idAt(ctx, place)
	if err != nil || id == "" || markOf(id) == mark {
		return err
	}
	// The events that were lost came less than unsure before the cursor's, and that one after it was made.
	before, err := l.At(ctx, request.Tenant(ctx), made.Add(-unsure))
	if err != nil {
		return err
	}
	return continueAt(Cursor(epoch, min(before, place-1), ""),
		"the stream has lost events before this cursor and gave their places to others")
}

// idAt returns the id of the event at a place; "" if it is no longer kept.
func (l *Log) idAt(ctx context.Context, place uint64) (string, error) {
	if id := l.IDAt(place); id != "" {
		return id, nil
	}
	if e := l.old.at(place); e != nil {
		return e.ID, nil
	}
	events, _, err := l.Stored(ctx, Reading{After: place - 1, UpTo: place, Limit: 1})
	if gone := (*GoneError)(nil); errors.As(err, &gone) {
		return "", nil
	}
	if err != nil || len(events) == 0 {
		return "", err
	}
	return events[0].ID, nil
}

// endOf is the cursor behind events that were read up to a place.
func (l *Log) endOf(epoch string, events []*Event, place uint64) string {
	if n := len(events); n > 0 && events[n-1].Place == place {
		return Cursor(epoch, place, events[n-1].ID)
	}
	return Cursor(epoch, place, l.IDAt(place))
}
