package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	defaultAckWait     = 30 * time.Second
	maxTries           = 10
	defaultMaxInFlight = 256
	defaultMaxAtOnce   = 32

	// Only one replica of a service gets a consumer's messages at a time (JetStream's pinned client), because two could
	// not keep the order of a record's events. Another replaces it when it has not pulled for pinnedFor.
	pinGroup   = "active"
	pinnedFor  = 15 * time.Second
	pullFor    = 5 * time.Second
	standbyFor = 10 * time.Second
)

// ConsumerConfig says what to consume and how.
type ConsumerConfig struct {
	Name  string // durable and unique in the platform, such as "permissions-users"
	Types Types  // of the events that it wants

	// Handle is called for each event at least once: for the events of one record in their order, for those of
	// different records at the same time. After an error or a panic it is called again, 10 times within about 7
	// minutes; then the event is parked, and the record's next event is handled. So it must be idempotent, by Event.ID
	// or by Event.Sequence, and tolerate gaps. The context is request.System of the event's tenant, with the event's
	// request id, payload origin and trace.
	Handle func(ctx context.Context, e Event) error

	// MaxAtOnce is how many events are handled at the same time; 0 means 32. If more wait, tenants take turns, so that
	// a tenant with many or slow events does not delay the others among those in flight.
	MaxAtOnce   int
	MaxInFlight int // events that are handled or wait for their turn or another attempt; 0 means 256

	retry   func() backoff.BackOff      // retryDelays, except in tests
	ackWait time.Duration               // defaultAckWait, except in tests
	opened  func(turns *fair.Semaphore) // in tests: gets the gate of each session
}

// Consumer is a running consumer.
type Consumer struct {
	log    *Log
	config ConsumerConfig
	forget func() // what Bus.BeforeClose returned

	stop    context.CancelFunc // ends the intake of events
	abort   context.CancelFunc // cancels the handlers
	stopped chan struct{}
}

// Consume starts a durable consumer and returns; it does not wait for NATS. A new consumer starts with the oldest
// stored event. Replicas share a consumer: one of them gets the events; another continues when that one stops, or half
// a minute after it died.
func (l *Log) Consume(ctx context.Context, c ConsumerConfig) (*Consumer, error) {
	if !bus.IsName(c.Name) {
		return nil, fmt.Errorf("%q is not a valid consumer name", c.Name)
	}
	if err := c.Types.check(); err != nil {
		return nil, fmt.Errorf("consumer %s: %w", c.Name, err)
	}
	if c.Handle == nil {
		return nil, fmt.Errorf("consumer %s: no handler", c.Name)
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = defaultMaxInFlight
	}
	if c.MaxAtOnce == 0 {
		c.MaxAtOnce = defaultMaxAtOnce
	}
	if c.retry == nil {
		c.retry = retryDelays
	}
	if c.ackWait == 0 {
		c.ackWait = defaultAckWait
	}
	l.metrics.begin(c.Name, l.metrics.parked)
	handling, abort := context.WithCancel(context.WithoutCancel(ctx))
	taking, stop := context.WithCancel(handling)
	consumer := &Consumer{log: l, config: c, stop: stop, abort: abort, stopped: make(chan struct{})}

	var running sync.WaitGroup
	for _, f := range []*intake{
		{Consumer: consumer, stream: bus.EventStream, subjects: c.Types.subjects()},
		{Consumer: consumer, stream: bus.DeadLetterStream, subjects: []string{bus.ReplaySubjects(c.Name)}},
	} {
		running.Go(func() { f.run(taking, handling) })
	}
	go func() {
		running.Wait()
		abort()
		close(consumer.stopped)
	}()
	consumer.forget = l.bus.BeforeClose(consumer.end)
	return consumer, nil
}

// Stop ends the intake of events and waits for the running handlers. When ctx ends, it cancels their contexts and still
// waits. What was not handled is delivered to the next consumer of the name.
func (c *Consumer) Stop(ctx context.Context) error {
	c.forget()
	return c.end(ctx)
}

func (c *Consumer) end(ctx context.Context) error {
	c.stop()
	select {
	case <-c.stopped:
		return nil
	case <-ctx.Done():
		c.abort()
		<-c.stopped
		return fmt.Errorf("consumer %s: handlers were cancelled: %w", c.config.Name, ctx.Err())
	}
}

// intake passes the messages of one stream to the handler, session after session.
type intake struct {
	*Consumer
	stream   string
	subjects []string

	epoch    string             // of the stream
	durable  jetstream.Consumer // kept over sessions, because it sends the pin; nil if it must be declared
	pin      string             // identifies this client to JetStream; "" before the first message
	wait     backoff.BackOff
	troubled bool
}

func (f *intake) run(taking, handling context.Context) {
	f.wait = bus.Backoff()
	for taking.Err() == nil {
		connected, cancel, err := f.log.bus.WhileConnected(taking)
		if err != nil {
			return
		}
		err = f.session(connected, handling)
		if taking.Err() == nil && connected.Err() == nil {
			f.trouble(err)
			clock.Pause(connected, f.wait.NextBackOff())
		}
		cancel()
	}
	if f.pin != "" {
		f.release()
	}
}

// trouble logs why a session could not begin or continue. If JetStream no longer has the consumer, the next session
// declares it again.
func (f *intake) trouble(err error) {
	if errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrConsumerNotFound) ||
		errors.Is(err, nats.ErrNoResponders) {
		f.durable = nil
	}
	if !f.troubled {
		f.log.log.Warn("a consumer lost its session and continues where it stopped", "consumer", f.config.Name,
			"stream", f.stream, "error", err)
	}
	f.troubled = true
}

// session makes this replica the one that gets the consumer's messages, and handles them until ctx ends or the delivery
// fails.
//
// It begins with a reset to the oldest message that is not acknowledged. Otherwise JetStream would deliver the messages
// that a killed process held only after the time limit of acknowledgements, and later events about the same records
// before them. So events after the oldest are seen again.
func (f *intake) session(ctx, handling context.Context) error {
	if err := f.declare(ctx); err != nil {
		return err
	}
	var err error
	if f.epoch, err = f.log.epochOf(ctx, f.stream); err != nil {
		return err
	}
	if err := f.takeOver(ctx); err != nil {
		return err
	}
	if err := f.reset(ctx); err != nil {
		return err
	}
	iterator, err := f.durable.Messages(jetstream.PullMaxMessages(f.config.MaxInFlight),
		jetstream.PullPriorityGroup(pinGroup),
		jetstream.PullExpiry(pullFor), jetstream.PullHeartbeat(bus.Heartbeat))
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	f.wait.Reset()
	f.troubled = false
	work := f.newDispatcher(ctx, handling)
	err = work.take(ctx, iterator)
	iterator.Stop()
	work.finish()
	return err
}

func (f *intake) declare(ctx context.Context) error {
	if f.durable != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	config := durableConsumer(f.config.Name)
	config.FilterSubjects, config.AckWait, config.MaxAckPending = f.subjects, f.config.ackWait, f.config.MaxInFlight
	durable, err := f.log.js.CreateOrUpdateConsumer(ctx, f.stream, config)
	if err != nil {
		return fmt.Errorf("declare the consumer: %w", err)
	}
	f.durable = durable
	return nil
}

// durableConsumer is the configuration of the platform's durable consumers.
func durableConsumer(name string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:        name,
		AckPolicy:      jetstream.AckExplicitPolicy,
		MaxDeliver:     -1, // attempts are counted here, because they are made here
		PriorityPolicy: jetstream.PriorityPolicyPinned,
		PriorityGroups: []string{pinGroup},
		PinnedTTL:      pinnedFor,
	}
}

// takeOver waits for a first message, with which JetStream pins the consumer to this client. It pulls only one message,
// so no other can be on its way when the consumer is reset afterwards.
func (f *intake) takeOver(ctx context.Context) error {
	for {
		if err := f.freeOrphans(ctx); err != nil {
			return err
		}
		pull, cancel := context.WithTimeout(ctx, standbyFor)
		batch, err := f.durable.Fetch(1, jetstream.FetchPriorityGroup(pinGroup),
			jetstream.FetchHeartbeat(bus.Heartbeat),
			jetstream.FetchContext(pull))
		pinned := false
		if err == nil {
			for message := range batch.Messages() {
				f.pin, pinned = message.Headers().Get(bus.HeaderPin), true
			}
			err = batch.Error()
		}
		cancel()
		if pinned {
			return nil
		}
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return fmt.Errorf("pull: %w", err)
		}
	}
}

// freeOrphans makes JetStream deliver at once the messages that it believes to be held by a client that is gone, or by
// the previous session. If another replica has just taken over, that one notices from its own messages that it must
// begin again.
func (f *intake) freeOrphans(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := f.durable.Info(ctx)
	if err != nil {
		return fmt.Errorf("look at the consumer: %w", err)
	}
	if info.NumAckPending == 0 {
		return nil
	}
	for _, group := range info.PriorityGroups {
		if group.PinnedClientID != "" && group.PinnedClientID != f.pin {
			return nil
		}
	}
	return f.reset(ctx)
}

func (f *intake) reset(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := f.log.js.ResetConsumer(ctx, f.stream, f.config.Name); err != nil {
		return fmt.Errorf("reset the consumer: %w", err)
	}
	return nil
}

// release lets another replica take over now instead of after pinnedFor.
func (f *intake) release() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	stream, err := f.log.js.Stream(ctx, f.stream)
	if err == nil {
		err = stream.UnpinConsumer(ctx, f.config.Name, pinGroup)
	}
	if err != nil {
		f.log.log.Debug("a consumer was not unpinned", "consumer", f.config.Name, "error", err)
	}
}

// retryDelays are 0.2 s, 0.6 s, 1.8 s … up to 2 minutes, each varied at random by up to a tenth.
func retryDelays() backoff.BackOff {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier, wait.MaxInterval, wait.RandomizationFactor = 200*time.Millisecond, 3,
		2*time.Minute, 0.1
	return wait
}
