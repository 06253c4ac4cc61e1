// Package gate lets expensive work in only as fast as there is room for it.
package gate

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Gate shares out a room: memory, pixels, or whatever its callers count in. It is safe for concurrent use.
type Gate struct {
	what    string
	room    *semaphore.Weighted
	size    int64
	callers atomic.Int64
	limit   int64
}

// New makes a gate before a room of that size, for so many callers at a time inside and waiting. What is refused is named to
// clients: "too many <what>".
func New(what string, size int64, callers int) *Gate {
	return &Gate{what: what, room: semaphore.NewWeighted(size), size: size, limit: int64(callers)}
}

// Do waits until the room has space for the work and does it; work that needs more than the whole room is done alone.
// apperr.Unavailable, and nothing done, if too many callers are there already or ctx ends before there is space.
func (g *Gate) Do(ctx context.Context, space int64, work func()) error {
	defer g.callers.Add(-1)
	if g.callers.Add(1) > g.limit {
		return g.busy()
	}
	space = min(space, g.size)
	if err := g.room.Acquire(ctx, space); err != nil {
		return g.busy().Because(err)
	}
	defer g.room.Release(space)
	work()
	return nil
}

func (g *Gate) busy() *apperr.Error {
	e := apperr.New(apperr.Unavailable, "too many %s", g.what)
	e.RetryAfter = time.Second
	return e
}
