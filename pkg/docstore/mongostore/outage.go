package mongostore

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
)

// outage tells since when no primary is known. All that a request does meanwhile has one wait, Options.Select, that
// begins when the primary goes: otherwise each of its reads and writes would wait for so long, one after the other.
type outage struct {
	mu    sync.Mutex
	since time.Time // zero while a primary is known
}

// writable are the kinds of servers that accept writes, as the driver names them.
var writable = map[string]bool{"RSPrimary": true, "Mongos": true, "Standalone": true, "LoadBalancer": true}

func (o *outage) monitor() *event.ServerMonitor {
	return &event.ServerMonitor{TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, server := range e.NewDescription.Servers {
			if writable[server.Kind] {
				o.since = time.Time{}
				return
			}
		}
		if o.since.IsZero() {
			o.since = time.Now()
		}
	}}
}

// away reports since when no primary is known.
func (o *outage) away() (since time.Time, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, !o.since.IsZero()
}

// bounded ends ctx when a primary that is away now has been so for Options.Select.
func (e *Engine) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if since, is := e.outage.away(); is {
		return context.WithDeadline(ctx, since.Add(e.patience))
	}
	return ctx, func() {}
}
