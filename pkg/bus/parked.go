package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// DeadLetter is an event that a consumer could not handle and that is kept.
type DeadLetter struct {
	Place    uint64 // in the stream of dead letters
	Consumer string
	Subject  string // of the event
	Error    string // why the last try failed
	Tries    int    // 0 if it is not an event
	Parked   time.Time
	Payload  []byte
}

// DeadLetters selects parked events, the oldest first.
type DeadLetters struct {
	Consumer string    // "" selects those of all consumers
	From     time.Time // parked at this time or later
	After    uint64    // behind this place
	Skip     int       // how many to leave out
	Limit    int
	MaxBytes int // of the payloads together: those that do not fit are left out of their DeadLetter
}

// headersAtOnce is how many messages without their payload are read at a time.
const headersAtOnce = 1000

// DeadLetters lists parked events, and counts all that Consumer and From select. more tells whether others follow.
// The error is apperr.Unavailable.
func (b *Bus) DeadLetters(ctx context.Context, q DeadLetters) (list []DeadLetter, total int64, more bool, err error) {
	stream, err := b.js.Stream(ctx, DeadLetterStream)
	if err != nil {
		return nil, 0, false, deadLettersAway(err)
	}
	reader, err := q.reader(ctx, stream, 0)
	if err != nil {
		return nil, 0, false, deadLettersAway(err)
	}
	total = int64(reader.CachedInfo().NumPending) //nolint:gosec // a number of messages
	if q.After > 0 {
		if reader, err = q.reader(ctx, stream, q.After+1); err != nil {
			return nil, 0, false, deadLettersAway(err)
		}
	}
	places, more, err := q.places(reader)
	if err != nil {
		return nil, 0, false, deadLettersAway(err)
	}
	room := q.MaxBytes
	for _, place := range places {
		parked, err := stream.GetMsg(ctx, place)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it was replayed or removed meanwhile
		}
		if err != nil {
			return nil, 0, false, deadLettersAway(err)
		}
		letter := deadLetter(parked)
		if room -= len(letter.Payload); room < 0 {
			letter.Payload, room = nil, room+len(letter.Payload)
		}
		list = append(list, letter)
	}
	return list, total, more, nil
}

// reader makes a consumer of the headers of the selected events, from a place on if it is not 0. JetStream counts them.
func (q DeadLetters) reader(ctx context.Context, stream jetstream.Stream, from uint64) (jetstream.Consumer, error) {
	consumer := q.Consumer
	if consumer == "" {
		consumer = "*"
	}
	config := jetstream.ConsumerConfig{
		FilterSubject: parkedSubject(consumer) + ".*", AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: requestTimeout, DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	switch {
	case from > 0:
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, from
	case !q.From.IsZero():
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &q.From
	}
	return stream.CreateConsumer(ctx, config)
}

// places reads the places of the page.
func (q DeadLetters) places(reader jetstream.Consumer) (places []uint64, more bool, err error) {
	pending := int(reader.CachedInfo().NumPending) //nolint:gosec // a number of messages
	more = pending > q.Skip+q.Limit
	for skip, left := q.Skip, min(pending, q.Skip+q.Limit); left > 0 && q.Skip < pending; {
		batch, err := reader.Fetch(min(left, headersAtOnce), jetstream.FetchMaxWait(requestTimeout))
		if err != nil {
			return nil, false, err
		}
		n := 0
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			if err != nil {
				return nil, false, err
			}
			if n++; skip > 0 {
				skip--
				continue
			}
			places = append(places, meta.Sequence.Stream)
		}
		if err := batch.Error(); err != nil {
			return nil, false, err
		}
		if left -= n; n == 0 {
			break // some were removed meanwhile
		}
	}
	return places, more, nil
}

func deadLetter(m *jetstream.RawStreamMsg) DeadLetter {
	tries, _ := strconv.Atoi(m.Header.Get(headerTries))
	return DeadLetter{
		Place: m.Sequence, Consumer: consumerOf(m.Subject), Parked: m.Time,
		Subject: m.Header.Get(headerSubject), Error: m.Header.Get(headerReason), Tries: tries, Payload: m.Data,
	}
}

// DeadLetter returns the parked event at a place. The error is apperr.NotFound or Unavailable.
func (b *Bus) DeadLetter(ctx context.Context, place uint64) (DeadLetter, error) {
	_, m, err := b.parked(ctx, place)
	if err != nil {
		return DeadLetter{}, err
	}
	return deadLetter(m), nil
}

// ReplayDeadLetter delivers a parked event to its consumer again. The error is apperr.NotFound or Unavailable.
func (b *Bus) ReplayDeadLetter(ctx context.Context, place uint64) error {
	stream, m, err := b.parked(ctx, place)
	if err != nil {
		return err
	}
	if err := b.replay(ctx, stream, m); err != nil {
		return deadLettersAway(err)
	}
	return nil
}

// DeleteDeadLetter removes a parked event. The error is apperr.NotFound or Unavailable.
func (b *Bus) DeleteDeadLetter(ctx context.Context, place uint64) error {
	stream, m, err := b.parked(ctx, place)
	if err != nil {
		return err
	}
	if err := discard(ctx, stream, m.Sequence); err != nil {
		return deadLettersAway(err)
	}
	return nil
}

func (b *Bus) parked(ctx context.Context, place uint64) (jetstream.Stream, *jetstream.RawStreamMsg, error) {
	stream, err := b.js.Stream(ctx, DeadLetterStream)
	if err != nil {
		return nil, nil, deadLettersAway(err)
	}
	if place == 0 {
		return nil, nil, apperr.Missing("dead letter")
	}
	m, err := stream.GetMsg(ctx, place)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && !strings.HasPrefix(m.Subject, parkedSubject("")) {
		return nil, nil, apperr.Missing("dead letter")
	}
	if err != nil {
		return nil, nil, deadLettersAway(err)
	}
	return stream, m, nil
}

func deadLettersAway(err error) error {
	return apperr.Away("the dead letters", fmt.Errorf("NATS: %w", err))
}
