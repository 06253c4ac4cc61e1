package mongostore

import (
	"context"
	"fmt"
	"sync"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// maxWaiting bounds the transactions that wait for their turn with one key. More are refused: they would wait longer
// than their callers do.
const maxWaiting = 1000

// turns makes transactions with the same key begin one after the other: see docstore.InTurn.
type turns struct {
	mu    sync.Mutex
	queue map[string]*queue
}

type queue struct {
	turn chan struct{} // full while a transaction has the turn
	in   int           // the number of transactions that have the turn or wait for it
}

// enterAll waits for the turn of one key after the other, and returns the function that ends all.
func (t *turns) enterAll(ctx context.Context, keys []string) (leave func(), err error) {
	var entered []func()
	leave = func() {
		for _, leave := range entered {
			leave()
		}
	}
	for _, key := range keys {
		one, err := t.enter(ctx, key)
		if err != nil {
			leave()
			return nil, err
		}
		entered = append(entered, one)
	}
	return leave, nil
}

// enter waits for the key's turn, in the order of arrival, and returns the function that ends it. It fails with
// apperr.Unavailable if too many wait.
func (t *turns) enter(ctx context.Context, key string) (leave func(), err error) {
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
		return nil, apperr.New(apperr.Unavailable,
			"too many requests are changing the same record at the same time; try again later")
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
