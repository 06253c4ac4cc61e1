package bus

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
)

// delivery is a message in hand.
type delivery struct {
	message jetstream.Msg
	subject string // of the event; a replayed one came on another
	stream  uint64 // sequence
	event   Event
	problem error // why it is not an event
}

// dispatcher hands a session's messages to handlers: those of a record one after the other, others side by side, tenant
// by tenant. How many it holds is bounded by the consumer's MaxAckPending.
type dispatcher struct {
	consumer *intake
	taking   context.Context // ends with the session: no new handling, no new try
	cancel   context.CancelFunc
	handling context.Context
	turns    *fair.Gate // by tenant; not held between tries

	mu     sync.Mutex
	queues map[string][]*delivery // by record; the first is being handled
	held   map[uint64]*delivery   // by stream sequence
	last   jetstream.SequencePair // of the newest message
	group  sync.WaitGroup
}

func (f *intake) newDispatcher(taking, handling context.Context) *dispatcher {
	d := &dispatcher{
		consumer: f, handling: handling, queues: map[string][]*delivery{}, held: map[uint64]*delivery{},
		turns: fair.NewGate("events are being handled", int64(f.config.MaxAtOnce), fair.Any),
	}
	d.taking, d.cancel = context.WithCancel(taking)
	d.group.Go(d.extend)
	return d
}

var (
	errLostPlace   = errors.New("another replica gets the messages now")
	errLostMessage = errors.New("a message was lost on the way")
)

// take reads messages until ctx ends or their order can no longer be trusted.
func (d *dispatcher) take(ctx context.Context, iterator jetstream.MessagesContext) error {
	for {
		message, err := iterator.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("pull: %w", err)
		}
		if message.Headers().Get(headerPin) != d.consumer.pin {
			return errLostPlace
		}
		meta, err := message.Metadata()
		if err != nil {
			return fmt.Errorf("message without metadata: %w", err)
		}
		// After the reset the consumer counts from 1, without gaps unless a message was lost with a connection.
		if meta.Sequence.Consumer != d.last.Consumer+1 {
			return errLostMessage
		}
		d.last.Consumer = meta.Sequence.Consumer
		if meta.Stream == EventStream {
			d.consumer.bus.metrics.lag.WithLabelValues(d.consumer.config.Name).Set(float64(meta.NumPending))
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
	if original := message.Headers().Get(headerSubject); original != "" && message.Subject() == replaySubject(d.consumer.config.Name) {
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
		if d.settle(x) {
			// Not waited for: an acknowledgement that is lost makes the message come again, see take.
			_ = x.message.Ack()
		}
	}
}

func (d *dispatcher) first(record string) *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queues[record][0]
}

// next takes the first of a record's messages away and returns the second. It is nil at the end of the queue or of the session; the
// queue goes in the same breath, so that add never finds one that nobody works on.
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

// settle handles or parks a message; false if the session ended before.
func (d *dispatcher) settle(x *delivery) bool {
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
		err = d.handle(x.event)
		leave()
		if err == nil {
			c.bus.metrics.handled.WithLabelValues(c.config.Name).Inc()
			return true
		}
		if d.handling.Err() != nil {
			return false // it failed because it was cancelled
		}
		c.bus.metrics.failed.WithLabelValues(c.config.Name).Inc()
		c.bus.log.Warn("an event was not handled", "consumer", c.config.Name, "event", x.event.ID, "type", x.event.Type,
			"tenant", x.event.Tenant, "request_id", x.event.RequestID, "try", try, "error", err)
		if try == maxTries {
			return d.park(x, err, try)
		}
		if pause(d.taking, wait.NextBackOff()); d.taking.Err() != nil {
			return false
		}
	}
}

var tracer = otel.Tracer("github.com/idplatform/idplatform/pkg/bus")

// handle calls the handler. A panic is a failure like any other.
func (d *dispatcher) handle(e Event) (err error) {
	ctx := request.With(d.handling, request.Info{ID: e.RequestID, PayloadOrigin: e.PayloadOrigin})
	ctx = request.System(ctx, e.Tenant)
	ctx = d.consumer.bus.trace.Extract(ctx, propagation.MapCarrier{"traceparent": e.TraceParent})
	ctx, span := tracer.Start(ctx, d.consumer.config.Name+" process "+e.Type, trace.WithSpanKind(trace.SpanKindConsumer))
	defer func() {
		if p := recover(); p != nil {
			d.consumer.bus.log.Error("a handler panicked", "consumer", d.consumer.config.Name, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			span.SetStatus(codes.Error, "not handled")
		}
		span.End()
	}()
	return d.consumer.config.Handle(ctx, e)
}

// park puts a message aside and tries until that has worked; false if the session ended before.
func (d *dispatcher) park(x *delivery, reason error, tries int) bool {
	c := d.consumer
	wait := patience()
	for {
		err := c.bus.park(d.handling, c.config.Name, x, reason, tries)
		if err == nil {
			c.bus.metrics.parked.WithLabelValues(c.config.Name).Inc()
			c.bus.log.Error("an event is parked", "consumer", c.config.Name, "subject", x.subject, "event", x.event.ID, "error", reason)
			return true
		}
		c.bus.log.Warn("an event could not be parked; trying on", "consumer", c.config.Name, "event", x.event.ID, "error", err)
		if pause(d.taking, wait.NextBackOff()); d.taking.Err() != nil {
			return false
		}
	}
}

// extend tells JetStream that what is held is not lost: handlers may take long, and messages wait for others of their record.
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
			_ = message.InProgress() // fails only if NATS is away or it was just acknowledged
		}
	}
}

// finish ends the session: waits for the handlers that run and drops what waits.
func (d *dispatcher) finish() {
	d.cancel()
	d.group.Wait()
}
