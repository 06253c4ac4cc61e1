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
)

// An event that could not be handled is kept on idp.deadletters.parked.<consumer>. A replay copies it to
// idp.deadletters.replay.<consumer>, which only that consumer reads besides its events. So a replay reaches no other
// consumer.
const (
	deadLettersPrefix = "idp.deadletters."

	headerSubject = "Idp-Original-Subject"
	headerReason  = "Idp-Reason"
	headerTries   = "Idp-Tries"

	maxReason = 1024
)

func parkedSubject(consumer string) string { return deadLettersPrefix + "parked." + consumer }
func replaySubject(consumer string) string { return deadLettersPrefix + "replay." + consumer }

// park keeps a message with its headers, its origin and the reason. The reason is for operators: it is the text of an
// internal error.
func (b *Bus) park(ctx context.Context, consumer string, x *delivery, reason error, tries int) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m := &nats.Msg{Subject: parkedSubject(consumer), Data: x.message.Data(), Header: nats.Header{}}
	for name, values := range x.message.Headers() {
		m.Header[name] = values
	}
	// With the event's id, JetStream would drop it when another consumer parks the same event, or this one parks it a
	// second time.
	m.Header.Del(nats.MsgIdHdr)
	m.Header.Del(headerPin)
	m.Header.Set(headerSubject, x.subject)
	m.Header.Set(headerReason, headerText(reason.Error()))
	m.Header.Set(headerTries, strconv.Itoa(tries))
	_, err := b.js.PublishMsg(ctx, m)
	return err
}

// Replay delivers the parked events of one consumer to it again, in the order in which they were parked, and returns
// their number. They may be older than events that it has handled since. Events that are parked again meanwhile are
// left for another Replay.
func (b *Bus) Replay(ctx context.Context, consumer string) (int, error) {
	if !word.MatchString(consumer) {
		return 0, fmt.Errorf("%q is not a valid consumer name", consumer)
	}
	stream, err := b.js.Stream(ctx, DeadLetterStream)
	if err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	end := stream.CachedInfo().State.LastSeq
	subject := parkedSubject(consumer)
	replayed := 0
	for from := uint64(1); from <= end; {
		parked, err := stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && parked.Sequence > end {
			return replayed, nil
		}
		if err != nil {
			return replayed, fmt.Errorf("replay: %w", err)
		}
		if err := b.replay(ctx, stream, parked); err != nil {
			return replayed, err
		}
		replayed++
		from = parked.Sequence + 1
	}
	return replayed, nil
}

// replay copies a parked event to its consumer's subject and removes it.
func (b *Bus) replay(ctx context.Context, stream jetstream.Stream, parked *jetstream.RawStreamMsg) error {
	consumer := strings.TrimPrefix(parked.Subject, parkedSubject(""))
	m := &nats.Msg{Subject: replaySubject(consumer), Data: parked.Data, Header: nats.Header{}}
	m.Header.Set(headerSubject, parked.Header.Get(headerSubject))
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
