package member

import (
	"context"
	"sync"
)

// together does reads for all who ask for the same at the same time. Whoever asks while one is under way waits for the
// next: an answer is never older than its question.
type together[T any] struct {
	mu    sync.Mutex
	reads map[string]*pair[T]
}

// pair are the reads of a key. Both may be nil.
type pair[T any] struct{ running, next *shared[T] }

type shared[T any] struct {
	done  chan struct{} // closed with the answer
	value T
	err   error
}

// of returns what read returns for the key. The first who waits for a read does it, for as long as it takes.
func (t *together[T]) of(ctx context.Context, key string, read func(context.Context) (T, error)) (value T, err error) {
	t.mu.Lock()
	p := t.reads[key]
	if p == nil {
		p = &pair[T]{}
		if t.reads == nil {
			t.reads = map[string]*pair[T]{}
		}
		t.reads[key] = p
	}
	own, running := p.next, p.running
	first := own == nil
	if first {
		own = &shared[T]{done: make(chan struct{})}
		p.next = own
	}
	t.mu.Unlock()
	if first {
		if running != nil {
			<-running.done
		}
		t.do(context.WithoutCancel(ctx), key, p, read)
	}
	select {
	case <-own.done:
		return own.value, own.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// do does the next read of a pair.
func (t *together[T]) do(ctx context.Context, key string, p *pair[T], read func(context.Context) (T, error)) {
	t.mu.Lock()
	own := p.next
	p.running, p.next = own, nil
	t.mu.Unlock()
	own.value, own.err = read(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	p.running = nil
	if p.next == nil {
		delete(t.reads, key)
	}
	close(own.done)
}
