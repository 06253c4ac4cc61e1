package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// An event that could not be handled is kept on idp.deadletters.parked.<consumer>.<tenant>. A replay copies it to
// idp.deadletters.replay.<consumer>.<tenant>, which only that consumer reads besides its events. So a replay reaches no
// other consumer.
const (
	deadLettersPrefix = "idp.deadletters."

	headerSubject = "Idp-Original-Subject"
	headerReason  = "Idp-Reason"
	headerTries   = "Idp-Tries"

	// HeaderPin names the client to which JetStream pins a consumer.
	HeaderPin = "Nats-Pin-Id"

	maxReason = 1024
)

func parkedSubject(consumer string) string { return deadLettersPrefix + "parked." + consumer }
func replaySubject(consumer string) string { return deadLettersPrefix + "replay." + consumer }

// ReplaySubjects are those on which a consumer gets its parked events again, of all tenants.
func ReplaySubjects(consumer string) string { return replaySubject(consumer) + ".*" }

// OriginalSubject is the subject on which an event came first that is replayed.
func OriginalSubject(m jetstream.Msg) string { return m.Headers().Get(headerSubject) }

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

// Park keeps a message that a consumer could not handle, with its headers, the subject on which it came first, and the
// reason. The reason is for operators: it is the text of an internal error.
func (b *Bus) Park(ctx context.Context, consumer, subject string, m jetstream.Msg, reason error, tries int) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	parked := &nats.Msg{Subject: ofTenant(parkedSubject(consumer), subject), Data: m.Data(), Header: nats.Header{}}
	for name, values := range m.Headers() {
		parked.Header[name] = values
	}
	// With the event's id, JetStream would drop it when another consumer parks the same event, or this one parks it a
	// second time.
	parked.Header.Del(nats.MsgIdHdr)
	parked.Header.Del(HeaderPin)
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
	return discard(ctx, stream, parked)
}

// discard removes a parked event, unless that was done meanwhile.
func discard(ctx context.Context, stream jetstream.Stream, parked *jetstream.RawStreamMsg) error {
	err := stream.DeleteMsg(ctx, parked.Sequence)
	if err != nil && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("remove a parked event: %w", err)
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
