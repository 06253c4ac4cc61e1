package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Pages says which events Read returns.
type Pages struct {
	Stream      string   // as in Place
	Subjects    []string // of which no event can match two
	After, UpTo uint64   // places; there is or was an event at UpTo
	Limit       int
}

// Page are events of the stream, in order.
type Page struct {
	Events []Event
	Next   uint64 // up to this place there are no others
	Lost   bool   // the stream no longer has some of the events
}

// Read reads events that the stream still has. It is for work that is behind; what follows the stream consumes or
// follows it. The error is apperr.Unavailable.
func (b *Bus) Read(ctx context.Context, p Pages) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	page, err := b.read(ctx, p)
	if err != nil {
		return Page{}, apperr.Away("the event stream", err)
	}
	return page, nil
}

func (b *Bus) read(ctx context.Context, p Pages) (Page, error) {
	stream, err := b.js.Stream(ctx, EventStream)
	if err != nil {
		return Page{}, fmt.Errorf("look at the stream: %w", err)
	}
	info := stream.CachedInfo()
	if Epoch(info) != p.Stream || info.State.FirstSeq > p.UpTo {
		return Page{Next: p.UpTo, Lost: true}, nil
	}
	page := Page{Next: p.After}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubjects: p.Subjects, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: p.After + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: followIdle,
	})
	if err != nil {
		return Page{}, fmt.Errorf("make a consumer: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = stream.DeleteConsumer(ctx, consumer.CachedInfo().Name) // JetStream does so after followIdle
	}()
	n, err := page.fetch(consumer, p)
	if err != nil {
		return page, err
	}
	if info, err = stream.Info(ctx); err != nil { // what was dropped meanwhile is missing, too
		return page, fmt.Errorf("look at the stream: %w", err)
	}
	page.Lost = slices.ContainsFunc(p.Subjects, func(subject string) bool {
		return oldestKept(info, tenantOf(subject)) > p.After+1
	})
	if n == p.Limit || page.Next == p.UpTo {
		return page, nil
	}
	return page, page.checkEnd(ctx, stream, p)
}

// oldestKept returns the first place from which on the stream has all events of a tenant, or of all tenants for "".
func oldestKept(info *jetstream.StreamInfo, tenant string) uint64 {
	return max(info.State.FirstSeq, Dropped(info.Config, tenant)+1)
}

// tenantOf returns the tenant that a filter of events selects; "" for all.
func tenantOf(subject string) string {
	tenant, _, _ := strings.Cut(strings.TrimPrefix(subject, eventsPrefix), ".")
	if tenant == "*" || tenant == ">" {
		return ""
	}
	return tenant
}

// fetch adds the consumer's messages to the page, and returns how many there were.
func (page *Page) fetch(consumer jetstream.Consumer, p Pages) (n int, err error) {
	batch, err := consumer.FetchNoWait(p.Limit)
	if err != nil {
		return 0, fmt.Errorf("pull: %w", err)
	}
	for m := range batch.Messages() {
		n++
		meta, err := m.Metadata()
		if err != nil {
			return n, fmt.Errorf("message without metadata: %w", err)
		}
		if meta.Sequence.Consumer != uint64(n) {
			return n, errLostMessage
		}
		page.Next = min(meta.Sequence.Stream, p.UpTo)
		if e, err := Decode(m.Subject(), m.Data()); err == nil && meta.Sequence.Stream <= p.UpTo {
			e.Place = Place{Stream: p.Stream, Number: meta.Sequence.Stream}
			page.Events = append(page.Events, e)
		}
	}
	if err := batch.Error(); err != nil {
		return n, fmt.Errorf("pull: %w", err)
	}
	return n, nil
}

// checkEnd is for a page that ends before the place up to which it was to be read. The event there may have another
// subject, or is no longer kept. Otherwise the server that was asked does not have it yet.
func (page *Page) checkEnd(ctx context.Context, stream jetstream.Stream, p Pages) error {
	last, err := stream.GetMsg(ctx, p.UpTo)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		page.Lost = true
	case err != nil:
		return fmt.Errorf("look at the last event: %w", err)
	case slices.ContainsFunc(p.Subjects, func(filter string) bool { return matches(filter, last.Subject) }):
		return errors.New("the server does not have all events yet")
	}
	page.Next = p.UpTo
	return nil
}

// matches reports whether a subject is one of a filter's.
func matches(filter, subject string) bool {
	of, is := strings.Split(filter, "."), strings.Split(subject, ".")
	for i, token := range of {
		if token == ">" {
			return len(is) > i
		}
		if i == len(is) || token != "*" && token != is[i] {
			return false
		}
	}
	return len(of) == len(is)
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
