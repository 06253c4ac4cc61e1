// Package fair shares what is scarce: whoever has much to do waits for its next turn, and does not hold up who has
// little.
//
// Gate is for work in memory that must not all be done at once. Rota is for work that waits in a store, of many
// tenants. Pace leaves a processor to others.
package fair

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

// Gate shares out a room: memory, pixels, places, or whatever its callers count in. Of those who wait, the keys
// (tenants, callers) have their turns one after the other, however many wait for each; those of one key in the order in
// which they came. It is safe for concurrent use.
type Gate struct {
	what  string
	size  int64
	limit int

	mu      sync.Mutex
	free    int64
	all     int            // callers inside and waiting
	callers map[string]int // the same by key
	waiting map[string][]*waiter
	turns   []string // the keys that somebody waits for, whose turn is next first
}

// waiter is a caller who waits. ready tells whether it may go in.
type waiter struct {
	space int64
	ready chan bool
}

// Any is a number of callers that no Gate refuses.
const Any = math.MaxInt

// NewGate makes a gate before a room of that size, for so many callers at a time inside and waiting. What is refused is
// named to clients: "too many <what>".
func NewGate(what string, size int64, callers int) *Gate {
	return &Gate{
		what: what, size: size, limit: callers, free: size, callers: map[string]int{}, waiting: map[string][]*waiter{},
	}
}

// Do does work as soon as Enter lets the context's tenant in.
func (g *Gate) Do(ctx context.Context, space int64, work func()) error {
	leave, err := g.Enter(ctx, request.Tenant(ctx), space)
	if err != nil {
		return err
	}
	defer leave()
	work()
	return nil
}

// Enter waits until it is the key's turn and the room has the space; who needs more than the whole room has it alone.
// leave gives the space back. apperr.Unavailable if ctx ends before that or too many callers are there: a caller of the
// key with the most of them then gives way to one of a key with fewer.
func (g *Gate) Enter(ctx context.Context, key string, space int64) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, g.busy().Because(err)
	}
	w := &waiter{min(space, g.size), make(chan bool, 1)}
	if !g.enter(key, w) {
		return nil, g.busy()
	}
	select {
	case in := <-w.ready:
		if !in {
			return nil, g.busy()
		}
	case <-ctx.Done():
		if g.giveUp(key, w) {
			return nil, g.busy().Because(ctx.Err())
		}
		if !<-w.ready { // it was let in or sent away at the same moment
			return nil, g.busy()
		}
	}
	return func() { g.exit(key, w.space) }, nil
}

// enter lets a caller wait, which may be for no time.
func (g *Gate) enter(key string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == g.limit && !g.sendAway(g.callers[key]+1) {
		return false
	}
	g.all++
	g.callers[key]++
	if len(g.waiting[key]) == 0 {
		g.turns = append(g.turns, key)
	}
	g.waiting[key] = append(g.waiting[key], w)
	g.letIn()
	return true
}

// sendAway refuses the last to come of the key with the most callers, if it has more than so many.
func (g *Gate) sendAway(more int) bool {
	most, found := "", false
	for _, key := range g.turns {
		if n := g.callers[key]; n > more {
			most, more, found = key, n, true
		}
	}
	if !found {
		return false
	}
	queue := g.waiting[most]
	queue[len(queue)-1].ready <- false
	g.remove(most, len(queue)-1)
	g.count(most)
	return true
}

// giveUp takes a caller who waits away; it reports false if it does not wait any more.
func (g *Gate) giveUp(key string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting[key], w)
	if i < 0 {
		return false
	}
	g.remove(key, i)
	g.count(key)
	g.letIn() // another may need less
	return true
}

func (g *Gate) exit(key string, space int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free += space
	g.count(key)
	g.letIn()
}

// letIn lets in whoever has its turn and for whom there is space. Nobody goes before a caller who needs more, so that
// it is not kept out by others.
func (g *Gate) letIn() {
	for len(g.turns) > 0 {
		key := g.turns[0]
		w := g.waiting[key][0]
		if w.space > g.free {
			return
		}
		g.free -= w.space
		w.ready <- true
		if g.remove(key, 0) {
			g.turns = append(g.turns[1:], key)
		}
	}
}

// remove takes a waiter out, and reports whether others of the key still wait.
func (g *Gate) remove(key string, i int) (more bool) {
	queue := slices.Delete(g.waiting[key], i, i+1)
	if len(queue) > 0 {
		g.waiting[key] = queue
		return true
	}
	delete(g.waiting, key)
	g.turns = slices.DeleteFunc(g.turns, func(t string) bool { return t == key })
	return false
}

// count counts a caller off.
func (g *Gate) count(key string) {
	g.all--
	if g.callers[key]--; g.callers[key] == 0 {
		delete(g.callers, key)
	}
}

func (g *Gate) busy() *apperr.Error {
	e := apperr.New(apperr.Unavailable, "too many %s", g.what)
	e.RetryAfter = time.Second
	return e
}
