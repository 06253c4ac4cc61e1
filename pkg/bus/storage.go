package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What keeps a tenant within its share of JetStream's storage. The events service decides; here is how its decisions
// are carried out, and how every reader of EventStream learns of them: the stream's own metadata says for each tenant
// up to which place its events were dropped, so that whoever looks up the stream knows it without another request.

const (
	droppedPrefix = "idp-dropped."       // and the tenant: the newest place that was dropped
	droppedOthers = "idp-dropped-others" // the same for tenants without a member of their own
	maxDropped    = 64                   // members of the metadata
)

// Dropped returns the newest place of the tenant's events that were dropped because it had used up its share of the
// storage, or of any tenant's for ""; 0 if none were.
func Dropped(config jetstream.StreamConfig, tenant string) uint64 {
	if tenant == "" {
		return DroppedOfAll(config.Metadata)
	}
	return max(droppedAt(config.Metadata, droppedPrefix+tenant), droppedAt(config.Metadata, droppedOthers))
}

// DroppedOfAll returns the newest place of any tenant's events that were dropped, from a stream's metadata.
func DroppedOfAll(metadata map[string]string) (newest uint64) {
	for member := range metadata {
		if member == droppedOthers || strings.HasPrefix(member, droppedPrefix) {
			newest = max(newest, droppedAt(metadata, member))
		}
	}
	return newest
}

func droppedAt(metadata map[string]string, member string) uint64 {
	place, err := strconv.ParseUint(metadata[member], 10, 64)
	if err != nil {
		return 0
	}
	return place
}

// noteDropped returns metadata in which a tenant's events up to a place are dropped. What is before the stream's first
// place needs no member. Of too many members the one with the oldest place counts for all tenants from then on: they
// may be told that events are missing, though they are not; never the opposite.
func noteDropped(metadata map[string]string, tenant string, place, first uint64) map[string]string {
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	member := droppedPrefix + tenant
	metadata[member] = strconv.FormatUint(max(place, droppedAt(metadata, member)), 10)
	oldest, members := "", 0
	for other := range metadata {
		isTenant := strings.HasPrefix(other, droppedPrefix)
		if (isTenant || other == droppedOthers) && droppedAt(metadata, other) < first {
			delete(metadata, other)
			continue
		}
		if isTenant {
			members++
			if oldest == "" || droppedAt(metadata, other) < droppedAt(metadata, oldest) {
				oldest = other
			}
		}
	}
	if members > maxDropped {
		others := max(droppedAt(metadata, oldest), droppedAt(metadata, droppedOthers))
		metadata[droppedOthers] = strconv.FormatUint(others, 10)
		delete(metadata, oldest)
	}
	return metadata
}

// DropEvents removes a tenant's events up to a place. Every reader can see that before the first of them is gone.
func (b *Bus) DropEvents(ctx context.Context, tenant string, upTo uint64) error {
	stream, err := b.js.Stream(ctx, EventStream)
	if err != nil {
		return fmt.Errorf("look at the stream: %w", err)
	}
	info := stream.CachedInfo()
	config := info.Config
	config.Metadata = noteDropped(config.Metadata, tenant, upTo, info.State.FirstSeq)
	if _, err := b.js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("note what is dropped: %w", err)
	}
	return stream.Purge(ctx, jetstream.WithPurgeSubject(EventsPrefix+tenant+".>"), jetstream.WithPurgeSequence(upTo+1))
}

// Handled returns the place up to which every consumer of the platform has handled all events, and which of them is the
// last. ok is false if none has an event left to handle.
func (b *Bus) Handled(ctx context.Context) (place uint64, consumer string, ok bool, err error) {
	stream, err := b.js.Stream(ctx, EventStream)
	if err != nil {
		return 0, "", false, fmt.Errorf("look at the stream: %w", err)
	}
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		// Subscribers' consumers are not pinned. One that is away holds up nothing.
		isPlatforms := info.Config.Durable != "" && info.Config.PriorityPolicy == jetstream.PriorityPolicyPinned
		if isPlatforms && info.NumPending+uint64(max(0, info.NumAckPending)) > 0 && //nolint:gosec // not negative
			(!ok || info.AckFloor.Stream < place) {
			place, consumer, ok = info.AckFloor.Stream, info.Name, true
		}
	}
	return place, consumer, ok, list.Err()
}

// Queues returns how many messages the queues of a tenant's subscriptions have.
func (b *Bus) Queues(ctx context.Context, tenant string) (map[string]uint64, error) {
	stream, err := b.js.Stream(ctx, SubscriptionStream)
	if err != nil {
		return nil, fmt.Errorf("look at the stream: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(SubscriptionSubject(tenant, "*")))
	if err != nil {
		return nil, fmt.Errorf("look at the queues: %w", err)
	}
	queues := map[string]uint64{}
	for subject, messages := range info.State.Subjects {
		queues[strings.TrimPrefix(subject, SubscriptionSubject(tenant, ""))] = messages
	}
	return queues, nil
}

// Unread returns how many messages of its queue a subscriber has not acknowledged.
func (b *Bus) Unread(ctx context.Context, subscription string) (uint64, error) {
	consumer, err := b.js.Consumer(ctx, SubscriptionStream, SubscriptionConsumer(subscription))
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 0, nil // the subscription was deleted
	}
	if err != nil {
		return 0, fmt.Errorf("look at the consumer: %w", err)
	}
	info := consumer.CachedInfo()
	return info.NumPending + uint64(max(0, info.NumAckPending)), nil //nolint:gosec // not negative
}

// DropFromQueue removes the messages of a subscription's queue up to a place.
func (b *Bus) DropFromQueue(ctx context.Context, tenant, subscription string, upTo uint64) error {
	stream, err := b.js.Stream(ctx, SubscriptionStream)
	if err != nil {
		return fmt.Errorf("look at the stream: %w", err)
	}
	return stream.Purge(ctx, jetstream.WithPurgeSubject(SubscriptionSubject(tenant, subscription)),
		jetstream.WithPurgeSequence(upTo+1))
}

// ParkedEvents returns how many messages each queue of a tenant's dead letters has: see Stored.
func (b *Bus) ParkedEvents(ctx context.Context, tenant string) (map[string]uint64, error) {
	stream, err := b.js.Stream(ctx, DeadLetterStream)
	if err != nil {
		return nil, fmt.Errorf("look at the stream: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(deadLettersPrefix+"*.*."+tenant))
	if err != nil {
		return nil, fmt.Errorf("look at the dead letters: %w", err)
	}
	queues := map[string]uint64{}
	for subject, messages := range info.State.Subjects {
		queues[storedOf(subject).Rest] = messages
	}
	return queues, nil
}

// DropDeadLetters removes the messages of a queue of a tenant's dead letters up to a place.
func (b *Bus) DropDeadLetters(ctx context.Context, tenant, queue string, upTo uint64) error {
	stream, err := b.js.Stream(ctx, DeadLetterStream)
	if err != nil {
		return fmt.Errorf("look at the stream: %w", err)
	}
	return stream.Purge(ctx, jetstream.WithPurgeSubject(deadLettersPrefix+queue+"."+tenant),
		jetstream.WithPurgeSequence(upTo+1))
}

// StreamSize returns how many bytes a stream takes, and its first place.
func (b *Bus) StreamSize(ctx context.Context, name string) (bytes, first uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return 0, 0, fmt.Errorf("look at the stream %s: %w", name, err)
	}
	state := stream.CachedInfo().State
	return state.Bytes, state.FirstSeq, nil
}

// Stored says how large a message of a stream is.
type Stored struct {
	Tenant string
	// Rest is what else the subject says: the subscription in SubscriptionStream; in DeadLetterStream parked or replay,
	// a dot and the consumer.
	Rest  string
	Place uint64
	Bytes int64 // on the disk, about
}

// besides is what the file store takes for a message besides its subject, headers and body.
const besides = 22 + 4 + 8

// Sizes calls fn for each message of a stream of the platform, from the oldest on, and for those that come,
// until ctx ends, fn fails or messages were missed. JetStream does not send their bodies.
func (b *Bus) Sizes(ctx context.Context, name string, fn func(Stored) error) error {
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("look at the stream %s: %w", name, err)
	}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: ForgetAfter,
	})
	if err != nil {
		return fmt.Errorf("make a consumer: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		_ = stream.DeleteConsumer(ctx, consumer.CachedInfo().Name) // JetStream does so after ForgetAfter
	}()
	return Each(ctx, consumer, func(m jetstream.Msg, meta *jetstream.MsgMetadata) error {
		return fn(stored(m, meta.Sequence.Stream))
	})
}

func stored(m jetstream.Msg, place uint64) Stored {
	size := besides + len(m.Subject()) + len("NATS/1.0\r\n\r\n")
	for name, values := range m.Headers() {
		if name == nats.MsgSize {
			body, _ := strconv.Atoi(values[0]) // JetStream writes a number
			size += body
			continue
		}
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	s := storedOf(m.Subject())
	s.Place, s.Bytes = place, int64(size)
	return s
}

// storedOf reads a message's subject.
func storedOf(subject string) Stored {
	if queue, ok := strings.CutPrefix(subject, deadLettersPrefix); ok {
		end := strings.LastIndexByte(queue, '.') // after kind and consumer
		return Stored{Tenant: queue[end+1:], Rest: queue[:max(end, 0)]}
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(subject, "idp."), ".") // events or subscriptions
	tenant, rest, _ := strings.Cut(rest, ".")
	return Stored{Tenant: tenant, Rest: rest}
}
