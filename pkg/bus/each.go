package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// messagesAhead is how many messages Each has in memory at most.
	messagesAhead = 512

	pullFor = 5 * time.Second
	// Heartbeat is how often JetStream tells a reader that it is there. Two that are missing end what is read.
	Heartbeat = 2 * time.Second
	// ForgetAfter is how long JetStream keeps a consumer after its last use.
	ForgetAfter = 30 * time.Second
)

// ErrLostMessage ends what Each reads.
var ErrLostMessage = errors.New("a message was lost on the way")

// Each calls fn with every message of a consumer that needs no acknowledgements, in order. It ends with ctx, when fn
// fails, or when a message was lost on the way: then the caller makes another consumer that begins where it stopped.
func Each(ctx context.Context, consumer jetstream.Consumer,
	fn func(m jetstream.Msg, meta *jetstream.MsgMetadata) error) error {
	messages, err := consumer.Messages(jetstream.PullMaxMessages(messagesAhead), jetstream.PullExpiry(pullFor),
		jetstream.PullHeartbeat(Heartbeat))
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
			return ErrLostMessage
		}
		if err := fn(m, meta); err != nil {
			return err
		}
	}
}
