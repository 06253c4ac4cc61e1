package mongostore

import (
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/event"
)

// pool counts connections.
type pool struct{ open, inUse atomic.Int64 }

func (p *pool) monitor() *event.PoolMonitor {
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		switch e.Type {
		case event.ConnectionCreated:
			p.open.Add(1)
		case event.ConnectionClosed:
			p.open.Add(-1)
		case event.ConnectionCheckedOut:
			p.inUse.Add(1)
		case event.ConnectionCheckedIn:
			p.inUse.Add(-1)
		}
	}}
}

// Connections returns, for metrics, the number of connections and how many of them are in use.
func (e *Engine) Connections() (open, inUse int64) { return e.pool.open.Load(), e.pool.inUse.Load() }
