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
	// heartbeat is how often JetStream tells a reader that it is there. If two are missing, it is asked.
	heartbeat = 2 * time.Second
	// Silence is how long nothing was heard of JetStream when Each ends with jetstream.ErrNoHeartbeat.
	Silence = 3 * heartbeat
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
		jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	defer messages.Stop()
	for n := uint64(1); ; {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if errors.Is(err, jetstream.ErrNoHeartbeat) && answers(ctx, consumer) {
			continue // the machine is busy
		}
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
		n++
		if err := fn(m, meta); err != nil {
			return err
		}
	}
}

// answers reports whether JetStream has a consumer, and answers soon.
func answers(ctx context.Context, consumer jetstream.Consumer) bool {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	_, err := consumer.Info(ctx)
	return err == nil
}
