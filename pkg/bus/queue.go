package bus

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A subscription's queue is its subject in SubscriptionStream, with a durable consumer that its NATS user may use but
// not make.

// maxUnacknowledged bounds what a subscriber has received and not acknowledged.
const maxUnacknowledged = 10_000

// DeclareQueue makes a subscription's consumer.
func (b *Bus) DeclareQueue(ctx context.Context, tenant, subscription string) error {
	_, err := b.js.CreateOrUpdateConsumer(ctx, SubscriptionStream, jetstream.ConsumerConfig{
		Durable: SubscriptionConsumer(subscription), FilterSubject: SubscriptionSubject(tenant, subscription),
		AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1, MaxAckPending: maxUnacknowledged,
	})
	return err
}

// PublishToQueue adds a message. A message with an id that was published within the stream's window is dropped.
func (b *Bus) PublishToQueue(ctx context.Context, tenant, subscription, id string, payload []byte) error {
	_, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: SubscriptionSubject(tenant, subscription), Data: payload},
		jetstream.WithMsgID(subscription+"."+id), jetstream.WithExpectStream(SubscriptionStream))
	return err
}

// ForgetQueue removes a subscription's consumer and messages, as far as there are any. While NATS is away it removes
// nothing: the messages go when they are too old.
func (b *Bus) ForgetQueue(ctx context.Context, tenant, subscription string) {
	if b.js.DeleteConsumer(ctx, SubscriptionStream, SubscriptionConsumer(subscription)) != nil {
		return
	}
	if stream, err := b.js.Stream(ctx, SubscriptionStream); err == nil {
		_ = stream.Purge(ctx, jetstream.WithPurgeSubject(SubscriptionSubject(tenant, subscription)))
	}
}
