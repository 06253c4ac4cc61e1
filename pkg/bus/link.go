package bus

import (
	"context"
	"sync"
)

// link reports whether NATS is connected, and when the connection ends: work that depends on it must then begin again.
type link struct {
	mu   sync.Mutex
	up   chan struct{} // closed while connected
	ctx  context.Context
	down context.CancelFunc

	next context.Context // ends when a connection ends the next time
	ends context.CancelFunc
}

func newLink() *link {
	l := &link{up: make(chan struct{}), down: func() {}}
	l.next, l.ends = context.WithCancel(context.Background())
	return l
}

func (l *link) set(up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down()
	if l.ctx != nil {
		l.ctx, l.up, l.down = nil, make(chan struct{}), func() {}
	}
	if !up {
		l.ends()
		l.next, l.ends = context.WithCancel(context.Background())
		return
	}
	l.ctx, l.down = context.WithCancel(context.Background())
	close(l.up)
}

// onDown calls f when the connection ends, unless stop is called before. It may be called before set has told of the
// connection, which happens some time after it was made.
func (l *link) onDown(f func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return context.AfterFunc(l.next, f)
}

// wait waits for a connection and returns a context that ends with it, or with ctx.
func (l *link) wait(ctx context.Context) (context.Context, context.CancelFunc, error) {
	for {
		l.mu.Lock()
		up, connected := l.up, l.ctx
		l.mu.Unlock()
		if connected != nil {
			ctx, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(connected, cancel)
			return ctx, func() { stop(); cancel() }, nil
		}
		select {
		case <-up:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}
