// Package fair shares what is scarce: whoever has much to do waits for its next turn, and does not hold up who has
// little.
//
// Turns is for work in memory that must not all be done at once. Rota is for work that waits in a store, of many
// tenants.
package fair

import (
	"context"
	"sync"
)

// Turns lets so many work at a time. Of those who wait, the keys (tenants, callers) get a turn one after the other,
// however many wait for each; those of one key in the order in which they came. It is safe for concurrent use.
type Turns struct {
	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{}
	order   []string // the keys that somebody waits for, the next first
}

// NewTurns lets atOnce work at a time, which must be positive.
func NewTurns(atOnce int) *Turns {
	return &Turns{free: atOnce, waiting: map[string][]chan struct{}{}}
}

// Take waits for a turn, to be given back with Done. It returns ctx's error where that ends before.
func (t *Turns) Take(ctx context.Context, key string) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if len(t.waiting[key]) == 0 {
		t.order = append(t.order, key)
	}
	t.waiting[key] = append(t.waiting[key], turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !t.withdraw(key, turn) {
		t.Done() // the turn came at the same moment
	}
	return ctx.Err()
}

// withdraw stops waiting; false if the turn has come.
func (t *Turns) withdraw(key string, turn chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.waiting[key] {
		if other == turn {
			t.set(key, append(t.waiting[key][:i:i], t.waiting[key][i+1:]...))
			return true
		}
	}
	return false
}

// set changes who waits for a key, which stays in the order only while somebody does.
func (t *Turns) set(key string, waiting []chan struct{}) {
	if len(waiting) > 0 {
		t.waiting[key] = waiting
		return
	}
	delete(t.waiting, key)
	for i, other := range t.order {
		if other == key {
			t.order = append(t.order[:i:i], t.order[i+1:]...)
			return
		}
	}
}

// Done ends a turn; the next one's begins.
func (t *Turns) Done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		t.free++
		return
	}
	key := t.order[0]
	next := t.waiting[key][0]
	rest := t.waiting[key][1:]
	t.set(key, rest)
	if len(rest) > 0 { // to the end of the order
		t.order = append(t.order[1:len(t.order):len(t.order)], key)
	}
	close(next)
}
