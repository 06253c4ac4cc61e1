package stream

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
)

// delivery is a message that was delivered and is not yet acknowledged.
type delivery struct {
	message jetstream.Msg
	subject string // the event's subject; a replayed message came on another
	stream  uint64 // sequence in the stream
	event   Event
	problem error // the reason why the message is not an event; nil if it is one
}

// dispatcher passes a session's messages to handlers: those about one record one after the other, others at the same
// time, with turns for tenants. The consumer's MaxAckPending bounds how many messages it holds.
type dispatcher struct {
	consumer *intake
	taking   context.Context // ends with the session: no message is handled or tried again afterwards
	cancel   context.CancelFunc
	handling context.Context
	turns    *fair.Semaphore // of tenants; not held between attempts

	mu     sync.Mutex
	queues map[string][]*delivery // by record; the first message is being handled
	held   map[uint64]*delivery   // by stream sequence
	last   jetstream.SequencePair // position of the newest message
	group  sync.WaitGroup
}

func (f *intake) newDispatcher(taking, handling context.Context) *dispatcher {
	d := &dispatcher{
		consumer: f, handling: handling, queues: map[string][]*delivery{}, held: map[uint64]*delivery{},
		turns: fair.NewSemaphore("events are being handled", int64(f.config.MaxAtOnce), fair.Any),
	}
	if f.config.opened != nil {
		f.config.opened(d.turns)
	}
	d.taking, d.cancel = context.WithCancel(taking)
	d.group.Go(d.extend)
	return d
}

var (
	errLostPlace = errors.New("another replica gets the messages now")
)

// take reads messages until ctx ends or their order is no longer certain.
func (d *dispatcher) take(ctx context.Context, iterator jetstream.MessagesContext) error {
	for {
		message, err := iterator.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("pull: %w", err)
		}
		if message.Headers().Get(bus.HeaderPin) != d.consumer.pin {
			return errLostPlace
		}
		meta, err := message.Metadata()
		if err != nil {
			return fmt.Errorf("message without metadata: %w", err)
		}
		// After the reset the consumer counts from 1. A gap means that a message was lost with a connection.
		if meta.Sequence.Consumer != d.last.Consumer+1 {
			return bus.ErrLostMessage
		}
		d.last.Consumer = meta.Sequence.Consumer
		if meta.Stream == bus.EventStream {
			d.consumer.log.metrics.lag.WithLabelValues(d.consumer.config.Name).Set(float64(meta.NumPending))
		}
		if meta.Sequence.Stream > d.last.Stream {
			d.last.Stream = meta.Sequence.Stream
			d.add(message, meta.Sequence.Stream)
		} else if !d.holds(meta.Sequence.Stream) {
			_ = message.Ack() // its first acknowledgement was lost
		}
	}
}

func (d *dispatcher) holds(stream uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held[stream] != nil
}

func (d *dispatcher) add(message jetstream.Msg, stream uint64) {
	x := &delivery{message: message, stream: stream, subject: message.Subject()}
	if original := bus.OriginalSubject(message); original != "" && d.consumer.stream == bus.DeadLetterStream {
		x.subject = original
	}
	x.event, x.problem = Decode(x.subject, message.Data())
	record := x.event.Record()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held[stream] = x
	d.queues[record] = append(d.queues[record], x)
	if len(d.queues[record]) == 1 {
		d.group.Go(func() { d.work(record) })
	}
}

// work handles a record's messages until there are none.
func (d *dispatcher) work(record string) {
	for x := d.first(record); x != nil; x = d.next(record) {
		if d.handleOrPark(x) {
			// The server's reply is not waited for: if the acknowledgement is lost, the message comes again, see take.
			_ = x.message.Ack()
		}
	}
}

func (d *dispatcher) first(record string) *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queues[record][0]
}

// next removes the first of a record's messages and returns the second, nil at the end of the queue or of the session.
// It removes an empty queue under the same lock, so that add never finds a queue that nobody works on.
func (d *dispatcher) next(record string) *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	queue := d.queues[record]
	delete(d.held, queue[0].stream)
	if queue = queue[1:]; len(queue) == 0 || d.taking.Err() != nil {
		delete(d.queues, record)
		return nil
	}
	d.queues[record] = queue
	return queue[0]
}

// handleOrPark handles or parks a message. It returns false if the session has ended before.
func (d *dispatcher) handleOrPark(x *delivery) bool {
	c := d.consumer
	if x.problem != nil {
		return d.park(x, x.problem, 0)
	}
	if d.taking.Err() != nil {
		return false
	}
	wait := c.config.retry()
	for try := 1; ; try++ {
		leave, err := d.turns.Enter(d.taking, x.event.Tenant, 1)
		if err != nil {
			return false
		}
		d.locate(x)
		err = d.handle(x.event)
		leave()
		if err == nil {
			c.log.metrics.handled.WithLabelValues(c.config.Name).Inc()
			return true
		}
		if d.handling.Err() != nil {
			return false // the handler failed because it was cancelled
		}
		c.log.metrics.failed.WithLabelValues(c.config.Name).Inc()
		c.log.log.Warn("an event was not handled", "consumer", c.config.Name, "event", x.event.ID, "type", x.event.Type,
			"tenant", x.event.Tenant, "request_id", x.event.RequestID, "try", try, "error", err)
		if try == maxTries {
			return d.park(x, err, try)
		}
		if clock.Pause(d.taking, wait.NextBackOff()); d.taking.Err() != nil {
			return false
		}
	}
}

// handle calls the handler. A panic is a failure like any other.
func (d *dispatcher) handle(e Event) (err error) {
	ctx := request.With(d.handling, request.Info{ID: e.RequestID, PayloadOrigin: e.PayloadOrigin})
	ctx = request.System(ctx, e.Tenant)
	ctx = d.consumer.log.trace.Extract(ctx, propagation.MapCarrier{"traceparent": e.TraceParent})
	ctx, span := tracer.Start(ctx, d.consumer.config.Name+" process "+e.Type,
		trace.WithSpanKind(trace.SpanKindConsumer))
	defer func() {
		if p := recover(); p != nil {
			d.consumer.log.log.Error("a handler panicked", "consumer", d.consumer.config.Name, "panic", p, "stack",
				string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			span.SetStatus(codes.Error, "not handled")
		}
		span.End()
	}()
	return d.consumer.config.Handle(ctx, e)
}

// locate notes where a message is in the stream of events, unless it is replayed.
func (d *dispatcher) locate(x *delivery) {
	if d.consumer.stream != bus.EventStream {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	x.event.Epoch, x.event.Place, x.event.Handled = d.consumer.epoch, x.stream, x.stream
	for place := range d.held {
		x.event.Handled = min(x.event.Handled, place)
	}
}

// park parks a message and repeats that until it succeeds. It returns false if the session has ended before.
func (d *dispatcher) park(x *delivery, reason error, tries int) bool {
	c := d.consumer
	wait := bus.Backoff()
	for {
		err := c.log.bus.Park(d.handling, c.config.Name, x.subject, x.message, reason, tries)
		if err == nil {
			c.log.metrics.parked.WithLabelValues(c.config.Name).Inc()
			c.log.log.Error("an event is parked", "consumer", c.config.Name, "subject", x.subject, "event", x.event.ID,
				"error", reason)
			return true
		}
		c.log.log.Warn("an event could not be parked; trying again", "consumer", c.config.Name, "event", x.event.ID,
			"error", err)
		if clock.Pause(d.taking, wait.NextBackOff()); d.taking.Err() != nil {
			return false
		}
	}
}

// extend tells JetStream that the held messages are not lost: handlers may take long, and messages wait for others
// about the same record.
func (d *dispatcher) extend() {
	every := time.NewTicker(d.consumer.config.ackWait / 3)
	defer every.Stop()
	for {
		select {
		case <-d.taking.Done():
			return
		case <-every.C:
		}
		d.mu.Lock()
		held := make([]jetstream.Msg, 0, len(d.held))
		for _, x := range d.held {
			held = append(held, x.message)
		}
		d.mu.Unlock()
		for _, message := range held {
			_ = message.InProgress() // fails only if NATS is away or the message has just been acknowledged
		}
	}
}

// finish ends the session: it waits for the running handlers and drops the waiting messages.
func (d *dispatcher) finish() {
	d.cancel()
	d.group.Wait()
}
