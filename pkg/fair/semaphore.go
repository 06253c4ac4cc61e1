// Package fair shares scarce resources among tenants and callers: one that has much to do waits for its next turn and
// does not delay those that have little.
//
// Semaphore is for work in memory of which only a part may run at a time. TenantQueue is for the work of many tenants
// that waits in a store, RoundRobin for such work that is due at a time, and InFlight are those that a replica makes
// for it. Throttle leaves a part of a processor's time to other work.
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

// Semaphore shares a room of limited size among its callers. The size is in units of the user's choice, such as bytes,
// pixels or places. Waiting keys (tenants, callers) get turns one after the other, however many callers wait for
// each; the callers of one key get theirs in the order in which they came. A Semaphore is safe for concurrent use.
type Semaphore struct {
	what  string
	size  int64
	limit int
	share int64 // what one key may have of the room

	mu      sync.Mutex
	free    int64
	held    map[string]int64 // the space that each key has
	all     int              // callers inside and waiting
	callers map[string]int   // the same for each key
	waiting map[string][]*waiter
	turns   []string // the keys that have waiters, the next one first
}

// waiter is a caller that waits. ready receives true if it may go in, and false if it is sent away.
type waiter struct {
	space int64
	ready chan bool
}

// Any, as the number of callers, means that there is no limit.
const Any = math.MaxInt

// NewSemaphore makes a semaphore of this size. At most callers may be inside and waiting at a time. what names to
// clients what there is too much of: "too many <what>".
func NewSemaphore(what string, size int64, callers int) *Semaphore {
	return &Semaphore{
		what: what, size: size, limit: callers, share: size, free: size,
		held: map[string]int64{}, callers: map[string]int{}, waiting: map[string][]*waiter{},
	}
}

// Share bounds the space that the callers of one key have together, for work that takes long: otherwise one key could
// have the whole room until its work ends. A caller that needs more gets it when its key has nothing. Share must be
// called before the first Enter.
func (g *Semaphore) Share(space int64) { g.share = space }

// Callers is the number of a key's callers that are inside or wait.
func (g *Semaphore) Callers(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.callers[key]
}

// Do enters as the context's tenant, does work, and leaves. Its errors are those of Enter.
func (g *Semaphore) Do(ctx context.Context, space int64, work func()) error {
	leave, err := g.Enter(ctx, request.Tenant(ctx), space)
	if err != nil {
		return err
	}
	defer leave()
	work()
	return nil
}

// Enter waits until it is the key's turn and the room has the space. A caller that needs more than the whole room
// gets it alone. leave gives the space back. The error is apperr.Unavailable: ctx has ended, or there are too many
// callers. If there are too many, a waiting caller of the key with the most callers is sent away to make place for
// one of a key with fewer.
func (g *Semaphore) Enter(ctx context.Context, key string, space int64) (leave func(), err error) {
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

// enter adds a caller to those that wait, and lets it in at once if there is space. It reports false if there are too
// many callers.
func (g *Semaphore) enter(key string, w *waiter) bool {
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

// sendAway refuses the caller that came last of the key with the most callers, if that key has more callers than
// more.
func (g *Semaphore) sendAway(more int) bool {
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

// giveUp removes a caller that waits. It reports false if the caller does not wait any more.
func (g *Semaphore) giveUp(key string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting[key], w)
	if i < 0 {
		return false
	}
	g.remove(key, i)
	g.count(key)
	g.letIn() // the next caller may need less space
	return true
}

func (g *Semaphore) exit(key string, space int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free += space
	if g.held[key] -= space; g.held[key] == 0 {
		delete(g.held, key)
	}
	g.count(key)
	g.letIn()
}

// letIn lets callers in as long as the next one's space is free. No other caller goes before one that needs more
// space, so that it gets its turn too; but keys that have their share keep their places and are passed over.
func (g *Semaphore) letIn() {
	for i := 0; i < len(g.turns); {
		key := g.turns[i]
		w := g.waiting[key][0]
		if g.held[key] > 0 && g.held[key]+w.space > g.share {
			i++
			continue
		}
		if w.space > g.free {
			return
		}
		g.free -= w.space
		g.held[key] += w.space
		w.ready <- true
		if g.remove(key, 0) {
			g.turns = append(slices.Delete(g.turns, i, i+1), key)
		}
	}
}

// remove removes a waiter and reports whether others of the key still wait.
func (g *Semaphore) remove(key string, i int) (more bool) {
	queue := slices.Delete(g.waiting[key], i, i+1)
	if len(queue) > 0 {
		g.waiting[key] = queue
		return true
	}
	delete(g.waiting, key)
	g.turns = slices.DeleteFunc(g.turns, func(t string) bool { return t == key })
	return false
}

// count removes a caller from the numbers of callers.
func (g *Semaphore) count(key string) {
	g.all--
	if g.callers[key]--; g.callers[key] == 0 {
		delete(g.callers, key)
	}
}

func (g *Semaphore) busy() *apperr.Error {
	e := apperr.New(apperr.Unavailable, "too many %s", g.what)
	e.RetryAfter = time.Second
	return e
}
