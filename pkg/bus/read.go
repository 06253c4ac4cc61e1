package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// readAtOnce is about how many bytes of events one request reads.
const readAtOnce = 256 << 10

// Reading says which events Read returns.
type Reading struct {
	Stream      string // as in Place; "" for the present one
	Tenant      string // "" for all
	After, UpTo uint64 // places; there is or was an event at UpTo
	Limit       int
}

// GoneError reports that events after a place are no longer kept.
type GoneError struct{ First uint64 } // the oldest place that is kept

func (e *GoneError) Error() string {
	return fmt.Sprintf("the stream no longer has the events before place %d", e.First)
}

// Read reads events that the stream has, in order: at most r.Limit, and about 256 KiB. Up to the place next there are
// no others. It needs no consumer, so it is for work that is behind; what has read everything follows the stream. The
// error is *GoneError or apperr.Unavailable.
func (b *Bus) Read(ctx context.Context, r Reading) (events []Event, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	events, next, err = b.batch(ctx, r)
	if err == nil && next == r.After {
		// Any server of a cluster may answer a batch, even one that is behind.
		events, next, err = b.fromLeader(ctx, r)
	}
	if err != nil {
		return nil, 0, apperr.Away("the event stream", err)
	}
	stream, err := b.js.Stream(ctx, EventStream) // at last, because the events lack what was dropped meanwhile
	if err != nil {
		return nil, 0, apperr.Away("the event stream", err)
	}
	info := stream.CachedInfo()
	if r.Stream != "" && r.Stream != Epoch(info) {
		return nil, 0, &GoneError{r.UpTo + 1}
	}
	if oldest := oldestOf(info, r.Tenant); r.After+1 < oldest {
		return nil, 0, &GoneError{oldest}
	}
	return events, next, nil
}

// batch reads from any server that has the stream.
func (b *Bus) batch(ctx context.Context, r Reading) (events []Event, next uint64, err error) {
	// A batch of one has no end marker: the request would wait until its timeout.
	batch, err := jetstreamext.GetBatch(ctx, b.js, EventStream, max(2, r.Limit), jetstreamext.GetBatchSeq(r.After+1),
		jetstreamext.GetBatchSubject(subjectsOf(r.Tenant)), jetstreamext.GetBatchMaxBytes(readAtOnce))
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
		events = appendEvent(events, m)
	}
	return events, next, nil
}

// fromLeader reads one event from the server that has the whole stream.
func (b *Bus) fromLeader(ctx context.Context, r Reading) (events []Event, next uint64, err error) {
	m, err := b.askLeader(ctx, leaderRequest{Seq: r.After + 1, Subject: subjectsOf(r.Tenant)})
	if err != nil {
		return nil, 0, err
	}
	if m == nil || m.Sequence > r.UpTo {
		return nil, r.UpTo, nil
	}
	return appendEvent(nil, m), m.Sequence, nil
}

// leaderRequest asks for the first message of a subject from a place or a time on.
type leaderRequest struct {
	Seq     uint64     `json:"seq,omitempty"`
	Start   *time.Time `json:"start_time,omitempty"`
	Subject string     `json:"next_by_subj"`
}

// askLeader returns a message of the stream of events; nil if there is none. Only the stream's leader answers. GetMsg
// of the library asks any server of a cluster, for a stream with AllowDirect.
func (b *Bus) askLeader(ctx context.Context, r leaderRequest) (*jetstream.RawStreamMsg, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	reply, err := b.nats.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM.MSG.GET."+EventStream, body)
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
func appendEvent(events []Event, m *jetstream.RawStreamMsg) []Event {
	e, err := Decode(m.Subject, m.Data)
	if err != nil {
		return events
	}
	e.Place.Number = m.Sequence
	return append(events, e)
}

// PlaceAt returns the place of the tenant's first event that the stream took at a time or later, of all tenants' for
// ""; 0 if there is none. The error is apperr.Unavailable.
func (b *Bus) PlaceAt(ctx context.Context, tenant string, at time.Time) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := b.askLeader(ctx, leaderRequest{Start: &at, Subject: subjectsOf(tenant)})
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
func (b *Bus) Oldest(ctx context.Context, tenant string) (uint64, error) {
	stream, err := b.js.Stream(ctx, EventStream)
	if err != nil {
		return 0, apperr.Away("the event stream", err)
	}
	return oldestOf(stream.CachedInfo(), tenant), nil
}

func oldestOf(info *jetstream.StreamInfo, tenant string) uint64 {
	if tenant == "" {
		return max(1, info.State.FirstSeq)
	}
	return max(1, info.State.FirstSeq, Dropped(info.Config, tenant)+1)
}

// subjectsOf are those of a tenant's events, or of all for "".
func subjectsOf(tenant string) string {
	if tenant == "" {
		return eventsPrefix + ">"
	}
	return eventsPrefix + tenant + ".>"
}

// epochOf identifies a stream.
func (b *Bus) epochOf(ctx context.Context, stream string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return "", fmt.Errorf("look at the stream: %w", err)
	}
	return Epoch(s.CachedInfo()), nil
}

// epochMember is the member of a restored stream's metadata with the epoch of the stream that was backed up, since both
// have the same messages at the same places, and the epoch that the restored one would have by itself. A stream that is
// made anew with the same configuration has another one, and so keeps none.
const epochMember = "idp-epoch"

// Epoch identifies a stream: it is the time when it was made.
func Epoch(info *jetstream.StreamInfo) string { return epochOfTime(MadeAt(info)) }

func epochOfTime(made time.Time) string { return strconv.FormatInt(made.UnixNano(), 36) }

// MadeAt returns when a stream was made, before any restore.
func MadeAt(info *jetstream.StreamInfo) time.Time {
	epoch, by, _ := strings.Cut(info.Config.Metadata[epochMember], ".")
	nanos, err := strconv.ParseInt(epoch, 36, 64)
	if err != nil || by != epochOfTime(info.Created) {
		return info.Created
	}
	return time.Unix(0, nanos)
}

// KeepEpoch makes a stream that has just been restored go on with the epoch of the one that was backed up.
func KeepEpoch(ctx context.Context, js jetstream.JetStream, stream, epoch string) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("look at the stream: %w", err)
	}
	info := s.CachedInfo()
	config := info.Config
	config.Metadata = maps.Clone(config.Metadata)
	if config.Metadata == nil {
		config.Metadata = map[string]string{}
	}
	config.Metadata[epochMember] = epoch + "." + epochOfTime(info.Created)
	if _, err := js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("keep the stream's epoch: %w", err)
	}
	return nil
}
