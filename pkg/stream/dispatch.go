package stream

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
)

// delivery is an event that a consumer has read and not yet handled.
type delivery struct {
	event   Event
	subject string
	payload []byte
	before  mark            // the event that was read before it; zero if it is the first
	problem error           // the reason why a message that is replayed is not an event
	replay  *bus.DeadLetter // nil if it is not replayed
}

// dispatcher passes events to a consumer's handler: those about one record one after the other, others at the same
// time, with turns for tenants.
type dispatcher struct {
	consumer *Consumer
	taking   context.Context // no event is handled or tried again after its end
	cancel   context.CancelFunc
	turns    *fair.Semaphore // of tenants; not held between attempts
	freed    chan struct{}   // gets a value when the dispatcher may no longer be full

	mu     sync.Mutex
	queues map[string][]*delivery // by record; the first one is being handled
	held   map[*delivery]bool
	bytes  int // of what is held
	group  sync.WaitGroup
}

func (c *Consumer) newDispatcher(taking context.Context) *dispatcher {
	d := &dispatcher{
		consumer: c, queues: map[string][]*delivery{}, held: map[*delivery]bool{}, freed: make(chan struct{}, 1),
		turns: fair.NewSemaphore("events are being handled", int64(c.config.atOnce), fair.Any),
	}
	d.taking, d.cancel = context.WithCancel(taking)
	return d
}

// full reports whether the dispatcher holds enough events.
func (d *dispatcher) full() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.held) >= d.consumer.config.enough || d.bytes >= enoughBytes
}

// done returns the event before the oldest one that is held; holds is false if none is.
func (d *dispatcher) done() (before mark, holds bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var oldest *delivery
	for x := range d.held {
		if oldest == nil || x.event.Place < oldest.event.Place {
			oldest = x
		}
	}
	if oldest == nil {
		return mark{}, false
	}
	return oldest.before, true
}

// holds reports whether a dead letter is held.
func (d *dispatcher) holds(place uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for x := range d.held {
		if x.replay.Place == place {
			return true
		}
	}
	return false
}

func (d *dispatcher) add(x *delivery) {
	record := x.event.Record()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held[x] = true
	d.bytes += len(x.payload)
	d.queues[record] = append(d.queues[record], x)
	if len(d.queues[record]) == 1 {
		d.group.Go(func() { d.work(record) })
	}
}

// work handles a record's events until there are none, or the dispatcher's time has ended.
func (d *dispatcher) work(record string) {
	for x := d.first(record); x != nil; x = d.next(record) {
		if !d.handleOrPark(x) {
			return
		}
		if x.replay != nil {
			d.removeReplay(*x.replay)
		}
	}
}

func (d *dispatcher) first(record string) *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queues[record][0]
}

// next removes the first of a record's events and returns the second; nil if there is none. It removes an empty queue
// under the same lock, so that add never finds a queue that nobody works on.
func (d *dispatcher) next(record string) *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	queue := d.queues[record]
	delete(d.held, queue[0])
	d.bytes -= len(queue[0].payload)
	tell(d.freed)
	if queue = queue[1:]; len(queue) == 0 {
		delete(d.queues, record)
		return nil
	}
	d.queues[record] = queue
	return queue[0]
}

// handleOrPark handles or parks an event. It returns false if the dispatcher's time has ended before.
func (d *dispatcher) handleOrPark(x *delivery) bool {
	c := d.consumer
	if x.problem != nil {
		return d.park(x, x.problem, 0)
	}
	wait := c.config.retry()
	for try := 1; ; try++ {
		leave, err := d.turns.Enter(d.taking, x.event.Tenant, 1)
		if err != nil {
			return false
		}
		if d.taking.Err() != nil || !c.owns() {
			leave()
			return false
		}
		err = d.handle(x.event)
		leave()
		if err == nil {
			c.log.metrics.handled.WithLabelValues(c.config.Name).Inc()
			return true
		}
		if c.handling.Err() != nil {
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
	ctx := request.With(d.consumer.handling, request.Info{ID: e.RequestID, PayloadOrigin: e.PayloadOrigin})
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

// park parks an event and repeats that until it succeeds. It returns false if the dispatcher's time has ended before.
func (d *dispatcher) park(x *delivery, reason error, tries int) bool {
	c := d.consumer
	wait := bus.Backoff()
	for {
		err := c.log.bus.Park(c.handling, c.config.Name, x.subject, x.payload, reason, tries)
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

// removeReplay removes an event that was delivered again, so that this does not happen another time. It tries at least
// once.
func (d *dispatcher) removeReplay(letter bus.DeadLetter) {
	for wait := bus.Backoff(); ; clock.Pause(d.taking, wait.NextBackOff()) {
		err := d.consumer.log.bus.RemoveReplayed(d.consumer.handling, letter)
		if err == nil || d.taking.Err() != nil {
			return
		}
	}
}

// finish waits for the running handlers. It does not handle the events that wait.
func (d *dispatcher) finish() {
	d.cancel()
	d.group.Wait()
}
