package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

// Reading says which events Stored returns.
type Reading struct {
	Stream      string // as in Event.Epoch; "" for the present one
	Tenant      string // "" for all
	Whole       bool   // with all tenants: nothing of any of them may be missing
	After, UpTo uint64 // places
	Limit       int
}

// GoneError reports that events after a place are no longer kept.
type GoneError struct{ First uint64 } // the oldest place that is kept

func (e *GoneError) Error() string {
	return fmt.Sprintf("the stream no longer has the events before place %d", e.First)
}

// Stored reads events that the stream has, in order: at most r.Limit, and about 256 KiB. Up to the place next, which is
// not beyond the end of the stream, there are no others. It needs no consumer, so it is for work that is behind; what
// has read everything reads from memory (Read). The error is *GoneError or apperr.Unavailable.
func (l *Log) Stored(ctx context.Context, r Reading) (events []*Event, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	events, next, err = l.batch(ctx, r)
	if err == nil && next == r.After {
		// Any server of a cluster may answer a batch, even one that is behind.
		events, next, err = l.fromLeader(ctx, r)
	}
	if err != nil {
		return nil, 0, apperr.Away("the event stream", err)
	}
	stream, err := l.js.Stream(ctx, bus.EventStream) // at last, because the events lack what was dropped meanwhile
	if err != nil {
		return nil, 0, apperr.Away("the event stream", err)
	}
	info := stream.CachedInfo()
	if r.Stream != "" && r.Stream != bus.Epoch(info) {
		return nil, 0, &GoneError{r.UpTo + 1}
	}
	oldest := oldestOf(info, r.Tenant)
	if r.Whole {
		oldest = max(oldest, bus.Dropped(info.Config, "")+1)
	}
	if r.After+1 < oldest {
		return nil, 0, &GoneError{oldest}
	}
	return events, min(next, max(r.After, info.State.LastSeq)), nil
}

// batch reads from any server that has the stream.
func (l *Log) batch(ctx context.Context, r Reading) (events []*Event, next uint64, err error) {
	// A batch of one has no end marker: the request would wait until its timeout.
	batch, err := jetstreamext.GetBatch(ctx, l.js, bus.EventStream, max(2, r.Limit),
		jetstreamext.GetBatchSeq(r.After+1),
		jetstreamext.GetBatchSubject(bus.EventSubjects(r.Tenant)), jetstreamext.GetBatchMaxBytes(maxPart))
	if err != nil {
		return nil, 0, err
	}
	next = r.After
	for m, err := range batch {
		switch {
		case errors.Is(err, jetstreamext.ErrNoMessages):
			return events, next, nil
		case err != nil:
			return nil, 0, err
		case m.Sequence > r.UpTo:
			return events, r.UpTo, nil
		case len(events) == r.Limit:
			return events, next, nil
		}
		next = m.Sequence
		events = l.appendEvent(events, m)
	}
	return events, next, nil
}

// fromLeader reads one event from the server that has the whole stream.
func (l *Log) fromLeader(ctx context.Context, r Reading) (events []*Event, next uint64, err error) {
	m, err := l.askLeader(ctx, leaderRequest{Seq: r.After + 1, Subject: bus.EventSubjects(r.Tenant)})
	if err != nil {
		return nil, 0, err
	}
	if m == nil || m.Sequence > r.UpTo {
		return nil, r.UpTo, nil
	}
	return l.appendEvent(nil, m), m.Sequence, nil
}

// leaderRequest asks for the first message of a subject from a place or a time on, or for the last one.
type leaderRequest struct {
	Seq     uint64     `json:"seq,omitempty"`
	Start   *time.Time `json:"start_time,omitempty"`
	Subject string     `json:"next_by_subj,omitempty"`
	Last    string     `json:"last_by_subj,omitempty"`
}

// askLeader returns a message of the stream of events; nil if there is none. Only the stream's leader answers. GetMsg
// of the library asks any server of a cluster, for a stream with AllowDirect.
func (l *Log) askLeader(ctx context.Context, r leaderRequest) (*jetstream.RawStreamMsg, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	reply, err := l.js.Conn().RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM.MSG.GET."+bus.EventStream,
		body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return nil, err
	}
	switch m := answer.Message; {
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, nil
	case answer.Error != nil:
		return nil, answer.Error
	case m == nil:
		return nil, jetstream.ErrInvalidJetStreamResponse
	default:
		return &jetstream.RawStreamMsg{Subject: m.Subject, Sequence: m.Seq, Data: m.Data}, nil
	}
}

// appendEvent leaves out what is not an event.
func (l *Log) appendEvent(events []*Event, m *jetstream.RawStreamMsg) []*Event {
	if e := l.eventOf(m.Subject, m.Sequence, m.Data); e != nil {
		events = append(events, e)
	}
	return events
}

// PlaceAt returns the place of the tenant's first event that the stream took at a time or later, of all tenants' for
// ""; 0 if there is none. The error is apperr.Unavailable.
func (l *Log) PlaceAt(ctx context.Context, tenant string, at time.Time) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := l.askLeader(ctx, leaderRequest{Start: &at, Subject: bus.EventSubjects(tenant)})
	if err != nil {
		return 0, apperr.Away("the event stream", err)
	}
	if m == nil {
		return 0, nil
	}
	return m.Sequence, nil
}

// newestPlace returns the place of the newest event that the stream has; 0 if it has none. The error is
// apperr.Unavailable.
func (l *Log) newestPlace(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := l.askLeader(ctx, leaderRequest{Last: bus.EventSubjects("")})
	if err != nil {
		return 0, apperr.Away("the event stream", err)
	}
	if m == nil {
		return 0, nil
	}
	return m.Sequence, nil
}

// Oldest returns the oldest place from which on the stream has all events of a tenant; for "" the oldest that it keeps
// of any tenant. The error is apperr.Unavailable.
func (l *Log) Oldest(ctx context.Context, tenant string) (uint64, error) {
	stream, err := l.js.Stream(ctx, bus.EventStream)
	if err != nil {
		return 0, apperr.Away("the event stream", err)
	}
	return oldestOf(stream.CachedInfo(), tenant), nil
}

func oldestOf(info *jetstream.StreamInfo, tenant string) uint64 {
	if tenant == "" {
		return max(1, info.State.FirstSeq)
	}
	return max(1, info.State.FirstSeq, bus.Dropped(info.Config, tenant)+1)
}
