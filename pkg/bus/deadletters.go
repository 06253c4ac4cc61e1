package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
)

// An event that could not be handled is kept on idp.deadletters.parked.<consumer>.<tenant>. A replay copies it to
// idp.deadletters.replay.<consumer>.<tenant>, where only that consumer looks for it, and removes it once it has handled
// it.
const (
	deadLettersPrefix = "idp.deadletters."

	headerSubject = "Idp-Original-Subject"
	headerReason  = "Idp-Reason"
	headerTries   = "Idp-Tries"

	maxReason = 1024

	lookEvery = time.Second // for events that are to be delivered again
)

func parkedSubject(consumer string) string { return deadLettersPrefix + "parked." + consumer }
func replaySubject(consumer string) string { return deadLettersPrefix + "replay." + consumer }

// ofTenant is such a subject for an event's tenant.
func ofTenant(subject, event string) string {
	tenant, _, _ := strings.Cut(strings.TrimPrefix(event, EventsPrefix), ".")
	return subject + "." + tenant
}

// consumerOf returns the consumer in the subject of a parked event.
func consumerOf(parked string) string {
	consumer, _, _ := strings.Cut(strings.TrimPrefix(parked, parkedSubject("")), ".")
	return consumer
}

// Park keeps an event that a consumer could not handle, with the subject on which it came first, and the reason. The
// reason is for operators: it is the text of an internal error.
func (b *Bus) Park(ctx context.Context, consumer, subject string, payload []byte, reason error, tries int) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// It gets no id of a message: JetStream would drop it when another consumer parks the same event, or this one parks
	// it a second time.
	parked := &nats.Msg{Subject: ofTenant(parkedSubject(consumer), subject), Data: payload, Header: nats.Header{}}
	parked.Header.Set(headerSubject, subject)
	parked.Header.Set(headerReason, headerText(reason.Error()))
	parked.Header.Set(headerTries, strconv.Itoa(tries))
	_, err := b.js.PublishMsg(ctx, parked)
	return err
}

// Replay delivers the parked events of one consumer to it again, in the order in which they were parked, and returns
// their number. They may be older than events that it has handled since. Events that are parked again meanwhile are
// left for another Replay.
func (b *Bus) Replay(ctx context.Context, consumer string) (int, error) {
	if !IsName(consumer) {
		return 0, fmt.Errorf("%q is not a valid consumer name", consumer)
	}
	stream, err := b.js.Stream(ctx, DeadLetterStream)
	if err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	end := stream.CachedInfo().State.LastSeq
	replayed := 0
	for after := uint64(0); after < end; {
		q := DeadLetters{Consumer: consumer, After: after, Limit: headersAtOnce}
		reader, err := q.reader(ctx, stream, after+1)
		if err != nil {
			return replayed, fmt.Errorf("replay: %w", err)
		}
		places, more, err := q.places(reader)
		if err != nil {
			return replayed, fmt.Errorf("replay: %w", err)
		}
		for _, place := range places {
			if after = place; place > end {
				break
			}
			err := b.ReplayDeadLetter(ctx, place)
			if apperr.IsNotFound(err) {
				continue // it was replayed or removed meanwhile
			}
			if err != nil {
				return replayed, err
			}
			replayed++
		}
		if !more {
			break
		}
	}
	return replayed, nil
}

// replay copies a parked event to its consumer's subject and removes it.
func (b *Bus) replay(ctx context.Context, stream jetstream.Stream, parked *jetstream.RawStreamMsg) error {
	consumer, event := consumerOf(parked.Subject), parked.Header.Get(headerSubject)
	m := &nats.Msg{Subject: ofTenant(replaySubject(consumer), event), Data: parked.Data, Header: nats.Header{}}
	m.Header.Set(headerSubject, event)
	// The id turns two replays at the same time, or one that was interrupted before the deletion, into one.
	id := fmt.Sprintf("replay-%s-%d", consumer, parked.Sequence)
	if _, err := b.js.PublishMsg(ctx, m, jetstream.WithMsgID(id)); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return discard(ctx, stream, parked.Sequence)
}

// Replayed calls fn with each event that is to be delivered to a consumer again, the oldest first, except for those
// that it holds already, until ctx ends, fn fails or NATS is away. It looks for them every second. Each stays there
// until RemoveReplayed.
func (b *Bus) Replayed(ctx context.Context, consumer string, holds func(place uint64) bool,
	fn func(DeadLetter) error) error {
	stream, err := b.js.Stream(ctx, DeadLetterStream)
	if err == nil {
		err = removeAcknowledged(ctx, stream, consumer)
	}
	if err != nil {
		return deadLettersAway(err)
	}
	for after := uint64(0); ctx.Err() == nil; {
		m, err := stream.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(replaySubject(consumer)+".*"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			clock.Pause(ctx, lookEvery)
			after = 0 // a server that lost its newest messages gives their places to others
			continue
		}
		if err != nil {
			return deadLettersAway(err)
		}
		if after = m.Sequence; holds(after) {
			continue
		}
		if err := fn(deadLetter(m)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// removeAcknowledged removes the events that an earlier version has delivered to a consumer again, and the durable
// consumer with which it did so.
func removeAcknowledged(ctx context.Context, stream jetstream.Stream, consumer string) error {
	durable, err := stream.Consumer(ctx, consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	err = stream.Purge(ctx, jetstream.WithPurgeSubject(replaySubject(consumer)+".*"),
		jetstream.WithPurgeSequence(durable.CachedInfo().AckFloor.Stream+1))
	if err != nil {
		return err
	}
	return stream.DeleteConsumer(ctx, consumer)
}

// RemoveReplayed removes an event that was delivered again.
func (b *Bus) RemoveReplayed(ctx context.Context, letter DeadLetter) error {
	stream, err := b.js.Stream(ctx, DeadLetterStream)
	if err != nil {
		return deadLettersAway(err)
	}
	there, err := stream.GetMsg(ctx, letter.Place)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && !there.Time.Equal(letter.Parked) {
		return nil
	}
	if err != nil {
		return deadLettersAway(err)
	}
	return discard(ctx, stream, letter.Place)
}

// discard removes a dead letter, unless that was done meanwhile.
func discard(ctx context.Context, stream jetstream.Stream, place uint64) error {
	err := stream.DeleteMsg(ctx, place)
	if err != nil && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("remove a dead letter: %w", err)
	}
	return nil
}

// headerText makes a text fit for a header: one line of limited length.
func headerText(s string) string {
	out := make([]rune, 0, min(len(s), maxReason))
	size := 0
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			r = ' '
		}
		if size += utf8.RuneLen(r); size > maxReason {
			break
		}
		out = append(out, r)
	}
	return string(out)
}
