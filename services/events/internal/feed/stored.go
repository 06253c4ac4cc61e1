package feed

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

// Oldest returns the oldest place from which on the stream has all events of a tenant; for "" the oldest that it keeps
// of any tenant. The error is apperr.Unavailable.
func (f *Feed) Oldest(ctx context.Context, tenant string) (uint64, error) {
	stream, err := f.js.Stream(ctx, bus.EventStream)
	if err != nil {
		return 0, apperr.Away("the event stream", err)
	}
	info := stream.CachedInfo()
	oldest := max(1, info.State.FirstSeq)
	if tenant != "" {
		oldest = max(oldest, bus.Dropped(info.Config, tenant)+1)
	}
	return oldest, nil
}

// stored reads events that are not in memory. Any server of a cluster may answer a batch, even one that is behind. So
// if a batch is empty, stored asks the stream's leader.
func (f *Feed) stored(ctx context.Context, tenant string, after, upTo uint64, limit int) ([]*Event, uint64, error) {
	events, next, err := f.batch(ctx, tenant, after, limit)
	if err == nil && next == after {
		events, next, err = f.fromLeader(ctx, tenant, after, upTo)
	}
	if err != nil {
		return nil, 0, err
	}
	oldest, err := f.Oldest(ctx, tenant) // at last, because the events lack what was dropped meanwhile
	if err != nil {
		return nil, 0, err
	}
	if after+1 < oldest {
		return nil, 0, &GoneError{oldest}
	}
	return events, next, nil
}

// batch reads events from JetStream.
func (f *Feed) batch(ctx context.Context, tenant string, after uint64, limit int) ([]*Event, uint64, error) {
	// A batch of one has no end marker: the request would wait until its timeout.
	batch, err := jetstreamext.GetBatch(ctx, f.js, bus.EventStream, max(2, limit), jetstreamext.GetBatchSeq(after+1),
		jetstreamext.GetBatchSubject(subjects(tenant)), jetstreamext.GetBatchMaxBytes(maxPart))
	if err != nil {
		return nil, 0, apperr.Away("the event stream", err)
	}
	var events []*Event
	next := after
	for m, err := range batch {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			break
		}
		if err != nil {
			return nil, 0, apperr.Away("the event stream", err)
		}
		if len(events) == limit {
			break
		}
		next = m.Sequence
		if e, err := NewEvent(m.Sequence, m.Subject, m.Data); err == nil {
			events = append(events, e)
		}
	}
	return events, next, nil
}

func (f *Feed) fromLeader(ctx context.Context, tenant string, after, upTo uint64) ([]*Event, uint64, error) {
	stream, err := f.js.Stream(ctx, bus.EventStream)
	if err != nil {
		return nil, 0, apperr.Away("the event stream", err)
	}
	m, err := stream.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(subjects(tenant)))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, upTo, nil
	}
	if err != nil {
		return nil, 0, apperr.Away("the event stream", err)
	}
	if m.Sequence > upTo {
		return nil, upTo, nil
	}
	e, err := NewEvent(m.Sequence, m.Subject, m.Data)
	if err != nil {
		return nil, m.Sequence, nil //nolint:nilerr // not an event: the next read continues after it
	}
	return []*Event{e}, m.Sequence, nil
}

func subjects(tenant string) string {
	if tenant == "" {
		return "idp.events.>"
	}
	return "idp.events." + tenant + ".>"
}

// At returns the place before the tenant's first event that the stream took at a time or later; the newest place if
// there is none. The error is apperr.Unavailable.
func (f *Feed) At(ctx context.Context, tenant string, at time.Time) (uint64, error) {
	end, _, err := f.End()
	if err != nil {
		return 0, err
	}
	batch, err := jetstreamext.GetBatch(ctx, f.js, bus.EventStream, 1, jetstreamext.GetBatchStartTime(at),
		jetstreamext.GetBatchSubject(subjects(tenant)))
	if err != nil {
		return 0, apperr.Away("the event stream", err)
	}
	for m, err := range batch {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			break
		}
		if err != nil {
			return 0, apperr.Away("the event stream", err)
		}
		return m.Sequence - 1, nil
	}
	return end, nil
}
