package feed

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
)

// whileConnected waits for NATS and returns a context that ends when the connection does: the server that comes back
// may have another stream, or have lost events. Call end when the context is no longer used.
func (f *Feed) whileConnected(ctx context.Context) (connected context.Context, end func()) {
	connection := f.bus.JetStream().Conn()
	changed := connection.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.CLOSED)
	for !connection.IsConnected() && ctx.Err() == nil {
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	connected, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		for {
			select {
			case status := <-changed:
				if status != nats.CONNECTED {
					return
				}
			case <-connected.Done():
				return
			}
		}
	})
	return connected, func() {
		cancel()
		watching.Wait()
		connection.RemoveStatusListener(changed)
	}
}
