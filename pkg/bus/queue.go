package bus

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The queue of a subscription is its subject in SubscriptionStream, with a durable consumer. The subscription's NATS
// user may use the consumer, but not create one.

// maxUnacknowledged bounds what a subscriber has received and not acknowledged.
const maxUnacknowledged = 10_000

// DeclareQueue creates or updates a subscription's consumer.
func (b *Bus) DeclareQueue(ctx context.Context, tenant, subscription string) error {
	_, err := b.js.CreateOrUpdateConsumer(ctx, SubscriptionStream, jetstream.ConsumerConfig{
		Durable: SubscriptionConsumer(subscription), FilterSubject: SubscriptionSubject(tenant, subscription),
		AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1, MaxAckPending: maxUnacknowledged,
	})
	return err
}

// PublishToQueue adds a message to a subscription's queue and waits until JetStream has stored it. JetStream drops a
// message if one with the same id and occasion was published to the same queue within the last two minutes: it was
// published already, and only the acknowledgement was lost.
func (b *Bus) PublishToQueue(ctx context.Context, tenant, subscription, occasion, id string, payload []byte) error {
	_, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: SubscriptionSubject(tenant, subscription), Data: payload},
		jetstream.WithMsgID(subscription+"."+occasion+"."+id), jetstream.WithExpectStream(SubscriptionStream))
	return err
}

// ForgetQueue removes a subscription's consumer and messages, if there are any. It does so once: what it cannot remove,
// because NATS is away, JetStream removes when it is older than the stream keeps messages.
func (b *Bus) ForgetQueue(ctx context.Context, tenant, subscription string) {
	if b.js.DeleteConsumer(ctx, SubscriptionStream, SubscriptionConsumer(subscription)) != nil {
		return
	}
	if stream, err := b.js.Stream(ctx, SubscriptionStream); err == nil {
		_ = stream.Purge(ctx, jetstream.WithPurgeSubject(SubscriptionSubject(tenant, subscription)))
	}
}
