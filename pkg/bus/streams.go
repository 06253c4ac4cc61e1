package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/nats-io/nats.go/jetstream"
)

// The streams of the platform.
const (
	EventStream        = "IDP_EVENTS"
	DeadLetterStream   = "IDP_DEADLETTERS"
	SubscriptionStream = "IDP_SUBSCRIPTIONS"

	// ReaderConsumer is the durable pull consumer of EventStream for readers. They may use it, but cannot create
	// consumers.
	ReaderConsumer = "events"
)

// EventsPrefix begins the subjects of events: idp.events.<tenant>.<entity>.<action>.
const EventsPrefix = "idp.events."

const (
	subscriptionsPrefix = "idp.subscriptions."

	keepEvents      = 7 * 24 * time.Hour
	keepDeadLetters = 90 * 24 * time.Hour
	duplicateWindow = 2 * time.Minute

	maxReaderPending = 10_000 // delivered events that are not yet acknowledged
)

// EnsureStreams creates the platform's streams or updates them to this configuration; other settings of an operator
// stay. If NATS is connected, they exist when it returns. Otherwise it continues in the background, as after each
// reconnect, until Close; Ready returns why they do not exist yet. Call it once.
func (b *Bus) EnsureStreams(ctx context.Context) {
	err := errors.New("NATS is away")
	if b.nats.IsConnected() {
		err = b.ensureStreams(ctx)
	}
	b.noteStreams(err)
	b.running.Go(func() {
		for b.background.Err() == nil {
			b.keepStreams()
		}
	})
}

// keepStreams ensures the streams once for each connection: NATS may have lost its disk.
func (b *Bus) keepStreams() {
	connected, cancel, err := b.link.wait(b.background)
	if err != nil {
		return
	}
	defer cancel()
	wait := Backoff()
	for connected.Err() == nil {
		err := b.ensureStreams(connected)
		b.noteStreams(err)
		if err == nil {
			<-connected.Done()
			return
		}
		clock.Pause(connected, wait.NextBackOff())
	}
}

// noteStreams logs a change for the worse, not every attempt.
func (b *Bus) noteStreams(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && b.streams == nil && b.background.Err() == nil {
		b.log.Warn("the event streams do not exist; trying again", "error", err)
	}
	b.streams = err
}

func (b *Bus) ensureStreams(ctx context.Context) error {
	maxAge := b.config.MaxAge
	if maxAge == 0 {
		maxAge = keepEvents
	}
	for _, want := range []jetstream.StreamConfig{
		{Name: EventStream, Subjects: []string{EventsPrefix + ">"}, MaxAge: maxAge, AllowDirect: true,
			Description: "Events of the platform: idp.events.<tenant>.<entity>.<action>, CloudEvents in JSON"},
		{Name: DeadLetterStream, Subjects: []string{deadLettersPrefix + ">"}, MaxAge: keepDeadLetters,
			AllowDirect: true,
			Description: "Events that a consumer could not handle, and those of them that are replayed"},
		{Name: SubscriptionStream, Subjects: []string{subscriptionsPrefix + ">"}, MaxAge: maxAge,
			Description: "Events for subscriptions that are delivered over NATS: idp.subscriptions.<tenant>.<id>"},
	} {
		want.Storage, want.Duplicates, want.Replicas = jetstream.FileStorage, duplicateWindow, max(1, b.config.Replicas)
		if err := b.ensureStream(ctx, want); err != nil {
			return fmt.Errorf("stream %s: %w", want.Name, err)
		}
	}
	if err := b.ensureReader(ctx); err != nil {
		return fmt.Errorf("the consumer %s: %w", ReaderConsumer, err)
	}
	return nil
}

// ensureReader creates the readers' consumer, unless there is one: that has its place, and may have been made again
// with another start.
func (b *Bus) ensureReader(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := b.js.Consumer(ctx, EventStream, ReaderConsumer)
	if !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	_, err = b.js.CreateOrUpdateConsumer(ctx, EventStream, jetstream.ConsumerConfig{
		Durable: ReaderConsumer, AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1,
		MaxAckPending: maxReaderPending,
		Description:   "For readers of the events: pull and acknowledge",
	})
	return err
}

// EventSubjects are the subjects of a tenant's events; "" stands for all tenants.
func EventSubjects(tenant string) string {
	if tenant == "" {
		return EventsPrefix + ">"
	}
	return EventsPrefix + tenant + ".>"
}

// SubscriberPermissions are the subjects that the NATS user of a subscription may use: those of its own events and of
// its consumer, and an inbox of its own, because users of one account could otherwise read each other's replies.
func SubscriberPermissions(tenant, id string) (publish, subscribe []string) {
	consumer := SubscriptionConsumer(id)
	return []string{
		"$JS.API.CONSUMER.MSG.NEXT." + SubscriptionStream + "." + consumer,
		"$JS.API.CONSUMER.INFO." + SubscriptionStream + "." + consumer,
		"$JS.ACK." + SubscriptionStream + "." + consumer + ".>",
	}, []string{SubscriptionSubject(tenant, id), "_INBOX." + id + ".>"}
}

// SubscriptionConsumer is the durable pull consumer of a subscription.
func SubscriptionConsumer(id string) string { return "s-" + id }

// SubscriptionSubject is where the events of a subscription go that is delivered over NATS.
func SubscriptionSubject(tenant, id string) string { return subscriptionsPrefix + tenant + "." + id }

// firstPlace is the place of the first message of a new stream: greater than those of a stream that was there before
// and is lost, so that nobody takes a message for another at the same place. It is below 2^53 for more than two
// centuries.
func firstPlace(now time.Time) uint64 { return uint64(now.UnixMicro()) } //nolint:gosec // after 1970

func (b *Bus) ensureStream(ctx context.Context, want jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := b.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		want.FirstSeq = firstPlace(time.Now())
		_, err = b.js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return nil // another replica was faster
		}
		return err
	}
	if err != nil {
		return err
	}
	have := stream.CachedInfo().Config
	if have.MaxAge == want.MaxAge && have.Replicas == want.Replicas && have.Duplicates == want.Duplicates &&
		len(have.Subjects) == 1 && have.Subjects[0] == want.Subjects[0] && have.AllowDirect == want.AllowDirect {
		return nil
	}
	have.MaxAge, have.Replicas, have.Duplicates = want.MaxAge, want.Replicas, want.Duplicates
	have.Subjects, have.AllowDirect = want.Subjects, want.AllowDirect
	_, err = b.js.UpdateStream(ctx, have)
	return err
}
