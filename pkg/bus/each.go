package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// messagesAhead is how many messages Each has in memory at most.
const messagesAhead = 512

// Each calls fn with every message of a consumer that needs no acknowledgements, in order. It ends with ctx, when fn
// fails, or when a message was lost on the way: then the caller makes another consumer that begins where it stopped.
func Each(ctx context.Context, consumer jetstream.Consumer,
	fn func(m jetstream.Msg, meta *jetstream.MsgMetadata) error) error {
	messages, err := consumer.Messages(jetstream.PullMaxMessages(messagesAhead), jetstream.PullExpiry(pullFor),
		jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	defer messages.Stop()
	for n := uint64(1); ; n++ {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("pull: %w", err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("message without metadata: %w", err)
		}
		if meta.Sequence.Consumer != n {
			return errLostMessage
		}
		if err := fn(m, meta); err != nil {
			return err
		}
	}
}
