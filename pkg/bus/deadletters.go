package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What could not be handled is kept on idp.deadletters.parked.<consumer>; what is replayed goes to idp.deadletters.replay.<consumer>, which
// that consumer follows besides its events. So a replay reaches nobody else.
const (
	deadLettersPrefix = "idp.deadletters."

	headerSubject = "Idp-Original-Subject"
	headerReason  = "Idp-Reason"
	headerTries   = "Idp-Tries"

	maxReason = 1024
)

func parkedSubject(consumer string) string { return deadLettersPrefix + "parked." + consumer }
func replaySubject(consumer string) string { return deadLettersPrefix + "replay." + consumer }

// park keeps a message with its headers, where it came from and why it is there. The reason is for operators: it is an internal error's text.
func (b *Bus) park(ctx context.Context, consumer string, x *delivery, reason error, tries int) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m := &nats.Msg{Subject: parkedSubject(consumer), Data: x.message.Data(), Header: nats.Header{}}
	for name, values := range x.message.Headers() {
		m.Header[name] = values
	}
	// The id of the event would make JetStream drop it when another consumer, or this one a second time, parks the same event.
	m.Header.Del(nats.MsgIdHdr)
	m.Header.Del(headerPin)
	m.Header.Set(headerSubject, x.subject)
	m.Header.Set(headerReason, headerText(reason.Error()))
	m.Header.Set(headerTries, strconv.Itoa(tries))
	_, err := b.js.PublishMsg(ctx, m)
	return err
}

// Replay gives the parked events of one consumer to it once more, in the order in which they were parked, and returns how many. They
// may be older than events that it has handled since. What is parked again meanwhile is left for another Replay.
func (b *Bus) Replay(ctx context.Context, consumer string) (int, error) {
	if !word.MatchString(consumer) {
		return 0, fmt.Errorf("a consumer cannot be called %q", consumer)
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
		m := &nats.Msg{Subject: replaySubject(consumer), Data: parked.Data, Header: nats.Header{}}
		m.Header.Set(headerSubject, parked.Header.Get(headerSubject))
		// The id makes one replay of two that run at the same time, or of one that was cut off before the deletion.
		id := fmt.Sprintf("replay-%s-%d", consumer, parked.Sequence)
		if _, err := b.js.PublishMsg(ctx, m, jetstream.WithMsgID(id)); err != nil {
			return replayed, fmt.Errorf("replay: %w", err)
		}
		if err := stream.DeleteMsg(ctx, parked.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			return replayed, fmt.Errorf("replay: %w", err)
		}
		replayed++
		from = parked.Sequence + 1
	}
	return replayed, nil
}

// headerText makes a text fit for a header: one line, not too long.
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
