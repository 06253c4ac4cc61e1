package bus

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// quiet is a consumer whose messages come after missing heartbeats.
type quiet struct{ jetstream.Consumer }

func (q quiet) Messages(opts ...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	messages, err := q.Consumer.Messages(opts...)
	return &quietMessages{MessagesContext: messages}, err
}

type quietMessages struct {
	jetstream.MessagesContext
	asked int
}

func (m *quietMessages) Next(opts ...jetstream.NextOpt) (jetstream.Msg, error) {
	if m.asked++; m.asked%2 == 1 {
		return nil, jetstream.ErrNoHeartbeat
	}
	return m.MessagesContext.Next(opts...)
}

// A busy machine may not send heartbeats in time. What is read ends only if JetStream does not have the consumer.
func TestMissingHeartbeats(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	for version := range 3 {
		publish(t, b, message("1", version+1))
	}
	stream, err := b.js.Stream(t.Context(), EventStream)
	require.NoError(t, err)
	consumer, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy})
	require.NoError(t, err)
	enough := errors.New("enough")
	read := 0
	err = Each(t.Context(), quiet{consumer},
		func(jetstream.Msg, *jetstream.MsgMetadata) error {
			if read++; read == 3 {
				return enough
			}
			return nil
		})
	require.ErrorIs(t, err, enough)

	require.NoError(t, stream.DeleteConsumer(context.Background(), consumer.CachedInfo().Name))
	err = Each(t.Context(), quiet{consumer}, nil)
	require.ErrorIs(t, err, jetstream.ErrNoHeartbeat)
}
