package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// CheckEvents reads every event that the stream keeps and returns how many there are. An error says that one is damaged or missing.
// progress, which may be nil, is called now and then.
func (b *Bus) CheckEvents(ctx context.Context, progress func(read, total uint64)) (uint64, error) {
	if err := b.ensureStreams(ctx); err != nil {
		return 0, err
	}
	stream, err := b.js.Stream(ctx, EventStream)
	if err != nil {
		return 0, fmt.Errorf("find the event stream: %w", err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask for the event stream: %w", err)
	}
	total := info.State.Msgs
	if total == 0 {
		return 0, nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{InactiveThreshold: time.Minute})
	if err != nil {
		return 0, fmt.Errorf("read the event stream: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return 0, fmt.Errorf("read the event stream: %w", err)
	}
	defer messages.Stop()
	for read := uint64(1); ; read++ {
		message, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return read - 1, fmt.Errorf("read the event stream after %d of %d events: %w", read-1, total, err)
		}
		if _, err := Decode(message.Subject(), message.Data()); err != nil {
			return read, fmt.Errorf("event %d of %d: %w", read, total, err)
		}
		if progress != nil && read%100_000 == 0 {
			progress(read, total)
		}
		if read == total {
			return total, nil
		}
	}
}
