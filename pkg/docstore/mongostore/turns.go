package mongostore

import (
	"context"
	"fmt"
	"sync"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// maxWaiting is how many transactions of one key wait for their turn. More are refused: they would wait for longer
// than their callers do.
const maxWaiting = 1000

// turns lets transactions with the same key begin one after the other: see docstore.InTurn.
type turns struct {
	mu    sync.Mutex
	queue map[string]*queue
}

type queue struct {
	turn chan struct{} // holds one while somebody has the turn
	in   int           // who has the turn, and all who wait for it
}

// enter waits for the key's turn, in the order of arrival, and returns what ends it. apperr.Unavailable if too many
// wait.
func (t *turns) enter(ctx context.Context, key string) (leave func(), err error) {
	if key == "" {
		return func() {}, nil
	}
	t.mu.Lock()
	if t.queue == nil {
		t.queue = map[string]*queue{}
	}
	q := t.queue[key]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		t.queue[key] = q
	}
	if q.in > maxWaiting {
		t.mu.Unlock()
		return nil, apperr.New(apperr.Unavailable, "too many changes of the same record wait for one another")
	}
	q.in++
	t.mu.Unlock()
	out := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if q.in--; q.in == 0 {
			delete(t.queue, key)
		}
	}
	select {
	case q.turn <- struct{}{}:
		return func() { <-q.turn; out() }, nil
	case <-ctx.Done():
		out()
		return nil, fmt.Errorf("mongostore: wait for a turn: %w", ctx.Err())
	}
}
