package stream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/replicas"
)

const (
	maxTries      = 10
	handledAtOnce = 32  // events of a consumer
	enoughHeld    = 256 // a consumer that holds so many events reads no others
	enoughBytes   = 8 << 20
)

// ConsumerConfig says what to consume and how.
type ConsumerConfig struct {
	Name  string // unique in the platform, such as "permissions-users"
	Types Types  // of the events that it wants

	// Handle is called for each event at least once: for the events of one record in their order, for those of
	// different records at the same time, up to 32 together and as many that are replayed. If more wait, tenants take
	// turns: a tenant with many or slow events does not delay those of others among the 256 that were read. After an
	// error or a panic it is called again, 10 times within about 7 minutes; then the event is parked, and the record's
	// next event is handled. So it must be idempotent, by Event.ID or by Event.Sequence, and tolerate gaps. The context
	// is request.System of the event's tenant, with the event's request id, payload origin and trace.
	Handle func(ctx context.Context, e Event) error

	atOnce, enough int                         // handledAtOnce and enoughHeld, except in tests
	retry          func() backoff.BackOff      // retryDelays, except in tests
	opened         func(turns *fair.Semaphore) // in tests: gets the turns of the events, whenever a replica begins
}

var consumerPlaces = DefinePlaces("consumer_places", "place of a consumer")

// Collections are those that the store of a service with Consumers must have.
func Collections() []*docstore.Def { return []*docstore.Def{consumerPlaces.Def()} }

// Consumer is a running consumer: a Reader whose events are handled side by side.
type Consumer struct {
	log    *Log
	config ConsumerConfig
	owns   func() bool // whether this replica gets the events
	forget func()      // what Bus.BeforeClose returned

	handling context.Context    // of the handlers
	stop     context.CancelFunc // ends the reading
	abort    context.CancelFunc // cancels the handlers
	stopped  chan struct{}
}

// Consume starts a consumer and returns; it does not wait for NATS. A new consumer starts with the oldest stored event.
// Of the replicas in the group one gets the events; another continues when that one has left the group, or ten seconds
// after it died. The place is in the store (Collections), and JetStream knows it, too: see bus.Handled.
func (l *Log) Consume(ctx context.Context, c ConsumerConfig, db *docstore.Store, group *replicas.Group) (*Consumer,
	error) {
	if !bus.IsName(c.Name) {
		return nil, fmt.Errorf("%q is not a valid consumer name", c.Name)
	}
	if err := c.Types.check(); err != nil {
		return nil, fmt.Errorf("consumer %s: %w", c.Name, err)
	}
	if c.Handle == nil {
		return nil, fmt.Errorf("consumer %s: no handler", c.Name)
	}
	if c.atOnce == 0 {
		c.atOnce = handledAtOnce
	}
	if c.enough == 0 {
		c.enough = enoughHeld
	}
	if c.retry == nil {
		c.retry = retryDelays
	}
	l.metrics.begin(c.Name, l.metrics.parked)
	consumer := &Consumer{log: l, config: c, stopped: make(chan struct{})}
	consumer.owns = func() bool { return group.Owns(c.Name) }
	consumer.handling, consumer.abort = context.WithCancel(context.WithoutCancel(ctx))
	taking, stop := context.WithCancel(consumer.handling)
	consumer.stop = stop
	reader := NewReader(ReaderConfig{
		Name: c.Name, Places: consumerPlaces, Log: l, DB: db, Group: group, Consumer: c.Name,
	})
	reader.types, reader.consumer = c.Types, consumer
	go func() {
		defer close(consumer.stopped)
		defer consumer.abort()
		_ = reader.Run(taking) // returns nil
	}()
	consumer.forget = l.bus.BeforeClose(consumer.end)
	return consumer, nil
}

// Stop ends the reading and waits for the running handlers. When ctx ends, it cancels their contexts and still waits.
// What was not handled goes to the replica that reads next.
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

// begin makes the dispatcher for the events that this replica reads until ctx ends, and handles those that are replayed
// meanwhile. end waits for the running handlers.
func (c *Consumer) begin(ctx context.Context) (events *dispatcher, end func()) {
	events, replayed := c.newDispatcher(ctx), c.newDispatcher(ctx)
	if c.config.opened != nil {
		c.config.opened(events.turns)
	}
	var replaying sync.WaitGroup
	replaying.Go(replayed.replay)
	return events, func() {
		events.finish()
		replayed.cancel()
		replaying.Wait()
		replayed.finish()
	}
}

// replay handles the events that are delivered to the consumer again.
func (d *dispatcher) replay() {
	c := d.consumer
	t := newTroubles(c.log.log, c.config.Name)
	for d.taking.Err() == nil {
		moved := false
		err := c.log.bus.Replayed(d.taking, c.config.Name, d.holds, func(letter bus.DeadLetter) error {
			for d.full() {
				select {
				case <-d.freed:
				case <-d.taking.Done():
					return d.taking.Err()
				}
			}
			x := &delivery{subject: letter.Subject, payload: letter.Payload, replay: &letter}
			x.event, x.problem = Decode(x.subject, x.payload)
			d.add(x)
			moved = true
			return nil
		})
		if d.taking.Err() == nil {
			t.meet(d.taking, err, moved)
		}
	}
}

// retryDelays are 0.2 s, 0.6 s, 1.8 s … up to 2 minutes, each varied at random by up to a tenth.
func retryDelays() backoff.BackOff {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier, wait.MaxInterval, wait.RandomizationFactor = 200*time.Millisecond, 3,
		2*time.Minute, 0.1
	return wait
}
