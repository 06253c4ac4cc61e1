package mongostore

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A server that vanishes without closing its connections (its machine has lost power, a firewall drops the packets)
// is noticed by its heartbeats: each must come within connectWithin after heartbeatEvery. Together they are less than
// Options.Select, so that requests under way are answered in time. The URI can set others (connectTimeoutMS,
// heartbeatFrequencyMS).
const (
	heartbeatEvery = time.Second
	connectWithin  = 3 * time.Second
)

func setHeartbeats(config *options.ClientOptions) {
	if config.HeartbeatInterval == nil {
		config.SetHeartbeatInterval(heartbeatEvery)
	}
	if config.ConnectTimeout == nil {
		config.SetConnectTimeout(connectWithin)
	}
}

// outage tells since when no primary is known. All that a request does meanwhile has one wait, Options.Select, that
// begins when the primary goes: otherwise each of its reads and writes would wait for so long, one after the other.
type outage struct {
	patience time.Duration // Options.Select

	mu     sync.Mutex
	since  time.Time          // zero while a primary is known
	heard  time.Time          // the last heartbeat of a primary
	silent bool               // a heartbeat has timed out since then
	over   context.Context    // ends when a primary has been away for the whole patience
	end    context.CancelFunc // ends over
	timer  *time.Timer        // calls end; nil while a primary is known
}

func newOutage(patience time.Duration) *outage {
	o := &outage{patience: patience}
	o.over, o.end = context.WithCancel(context.Background())
	return o
}

// writable are the kinds of servers that accept writes, as the driver names them.
var writable = map[string]bool{"RSPrimary": true, "Mongos": true, "Standalone": true, "LoadBalancer": true}

func (o *outage) monitor() *event.ServerMonitor {
	return &event.ServerMonitor{
		ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceededEvent) {
			if writable[e.Reply.Kind] {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.heard, o.silent = time.Now(), false
			}
		},
		ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailedEvent) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.silent = isTimeout(e.Failure)
		},
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
			for _, server := range e.NewDescription.Servers {
				if writable[server.Kind] {
					o.back()
					return
				}
			}
			o.gone()
		},
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
}

// back notes that a primary is known.
func (o *outage) back() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = time.Time{}
	if o.timer == nil {
		return
	}
	o.timer.Stop()
	o.timer = nil
	if o.over.Err() != nil {
		o.over, o.end = context.WithCancel(context.Background())
	}
}

// gone notes that no primary is known. One that fell silent went after its last heartbeat.
func (o *outage) gone() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		return
	}
	o.since = time.Now()
	if o.silent && !o.heard.IsZero() {
		o.since = o.heard
	}
	o.timer = time.AfterFunc(time.Until(o.since.Add(o.patience)), o.end)
}

// close releases what an outage holds.
func (o *outage) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer != nil {
		o.timer.Stop()
	}
	o.end()
}

// away reports since when no primary is known.
func (o *outage) away() (since time.Time, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, !o.since.IsZero()
}

// bounded ends ctx when a primary that is away now, or goes meanwhile, has been so for Options.Select.
func (e *Engine) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if since, is := e.outage.away(); is {
		return context.WithDeadline(ctx, since.Add(e.patience))
	}
	e.outage.mu.Lock()
	over := e.outage.over
	e.outage.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(over, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
