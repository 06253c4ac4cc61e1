package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Publish sends messages to JetStream together and waits for the acknowledgements, at most 5 s. It returns an error for
// each message, nil if JetStream has stored it (see Keep). A message whose acknowledgement was lost may be stored, too;
// it is dropped when it is sent again with the same id within two minutes.
func (b *Bus) Publish(ctx context.Context, messages []docstore.Message) []error {
	errs := make([]error, len(messages))
	futures := make([]jetstream.PubAckFuture, len(messages))
	for i, m := range messages {
		// The relay retries by itself. A hidden retry could overtake one of the relay's.
		futures[i], errs[i] = b.js.PublishMsgAsync(&nats.Msg{Subject: m.Subject, Data: m.Payload},
			jetstream.WithMsgID(m.ID), jetstream.WithRetryAttempts(0))
	}
	for i, future := range futures {
		if errs[i] != nil {
			continue
		}
		select {
		case <-future.Ok():
		case errs[i] = <-future.Err():
		case <-ctx.Done():
			errs[i] = ctx.Err()
		}
	}
	return errs
}

// syncEvery is how long acknowledged messages are collected for one Sync. The outbox keeps the row of a published event
// for about that long.
const syncEvery = time.Second

// Keep returns how long the sender of a message may keep it after the acknowledgement before it calls Sync; 0 if the
// acknowledgement itself means that the message survives a power failure.
func (b *Bus) Keep() time.Duration {
	if b.config.Sync == nil {
		return 0
	}
	return syncEvery
}

// Sync returns when everything acknowledged before survives a power failure.
func (b *Bus) Sync(ctx context.Context) error {
	if b.config.Sync == nil {
		return nil
	}
	return b.config.Sync(ctx)
}
