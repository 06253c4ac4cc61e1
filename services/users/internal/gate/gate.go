// Package gate lets expensive work in only as fast as there is room for it, and the tenants in turn.
package gate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

// Gate shares out a room: memory, pixels, or whatever its callers count in. Tenants that wait have their turns one
// after the other, however many callers each has. It is safe for concurrent use.
type Gate struct {
	what  string
	size  int64
	limit int

	mu      sync.Mutex
	free    int64
	all     int            // callers inside and waiting
	callers map[string]int // the same by tenant
	waiting map[string][]*waiter
	turns   []string // the tenants that wait, whose turn is next first
}

// waiter is a caller who waits. ready tells whether it may go in.
type waiter struct {
	space int64
	ready chan bool
}

// New makes a gate before a room of that size, for so many callers at a time inside and waiting. What is refused is
// named to clients: "too many <what>".
func New(what string, size int64, callers int) *Gate {
	return &Gate{what: what, size: size, limit: callers, free: size, callers: map[string]int{}, waiting: map[string][]*waiter{}}
}

// Do waits until it is the turn of the context's tenant and the room has space for the work, and does it; work that
// needs more than the whole room is done alone. apperr.Unavailable, and nothing done, if ctx ends before that or too
// many callers are there: a caller of the tenant with the most of them then gives way to one of a tenant with fewer.
func (g *Gate) Do(ctx context.Context, space int64, work func()) error {
	if err := ctx.Err(); err != nil {
		return g.busy().Because(err)
	}
	tenant := request.Tenant(ctx)
	w := &waiter{min(space, g.size), make(chan bool, 1)}
	if !g.enter(tenant, w) {
		return g.busy()
	}
	select {
	case in := <-w.ready:
		if !in {
			return g.busy()
		}
	case <-ctx.Done():
		if g.giveUp(tenant, w) {
			return g.busy().Because(ctx.Err())
		}
		if !<-w.ready { // it was let in or sent away at the same moment
			return g.busy()
		}
	}
	defer g.exit(tenant, w.space)
	work()
	return nil
}

// enter lets a caller wait, which may be for no time.
func (g *Gate) enter(tenant string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == g.limit && !g.sendAway(g.callers[tenant]+1) {
		return false
	}
	g.all++
	g.callers[tenant]++
	if len(g.waiting[tenant]) == 0 {
		g.turns = append(g.turns, tenant)
	}
	g.waiting[tenant] = append(g.waiting[tenant], w)
	g.letIn()
	return true
}

// sendAway refuses the last to come of the tenant with the most callers, if it has more than so many.
func (g *Gate) sendAway(more int) bool {
	most, found := "", false
	for _, tenant := range g.turns {
		if n := g.callers[tenant]; n > more {
			most, more, found = tenant, n, true
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
func (g *Gate) giveUp(tenant string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting[tenant], w)
	if i < 0 {
		return false
	}
	g.remove(tenant, i)
	g.count(tenant)
	g.letIn() // another may need less
	return true
}

func (g *Gate) exit(tenant string, space int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free += space
	g.count(tenant)
	g.letIn()
}

// letIn lets in whoever has its turn and for whom there is space. Nobody goes before a caller who needs more, so that
// it is not kept out by others.
func (g *Gate) letIn() {
	for len(g.turns) > 0 {
		tenant := g.turns[0]
		w := g.waiting[tenant][0]
		if w.space > g.free {
			return
		}
		g.free -= w.space
		w.ready <- true
		if g.remove(tenant, 0) {
			g.turns = append(g.turns[1:], tenant)
		}
	}
}

// remove takes a waiter out, and reports whether others of the tenant still wait.
func (g *Gate) remove(tenant string, i int) (more bool) {
	queue := slices.Delete(g.waiting[tenant], i, i+1)
	if len(queue) > 0 {
		g.waiting[tenant] = queue
		return true
	}
	delete(g.waiting, tenant)
	g.turns = slices.DeleteFunc(g.turns, func(t string) bool { return t == tenant })
	return false
}

// count counts a caller off.
func (g *Gate) count(tenant string) {
	g.all--
	if g.callers[tenant]--; g.callers[tenant] == 0 {
		delete(g.callers, tenant)
	}
}

func (g *Gate) busy() *apperr.Error {
	e := apperr.New(apperr.Unavailable, "too many %s", g.what)
	e.RetryAfter = time.Second
	return e
}
