package example

import (
	"context"
	"slices"
	"sync"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/stream"
)

// board holds the latest pages of all tenants. Each replica has its own, and follows the events by itself.
type board struct {
	mu      sync.Mutex
	pages   []stream.Event
	dropped int           // how many earlier pages were dropped
	changed chan struct{} // closed at the next change
}

const maxPages = 1000

func newBoard() *board { return &board{changed: make(chan struct{})} }

// clear is the follower's Snapshot. Pages are not stored anywhere else, so a replica without a place in the stream has
// none.
func (b *board) clear(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropped += len(b.pages)
	b.pages = nil
	return nil
}

// put is the follower's Handle.
func (b *board) put(_ context.Context, e stream.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages = append(b.pages, e); len(b.pages) > maxPages {
		b.pages = b.pages[1:]
		b.dropped++
	}
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}

// since lists the pages from a place on. It also returns the place after them, and a channel that is closed when there
// are more.
func (b *board) since(place int) (pages []stream.Event, next int, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.pages[max(0, place-b.dropped):]), b.dropped + len(b.pages), b.changed
}

// watch sends the tenant's pages after the event with this id, or all if there is none, and then each new one.
func (b *board) watch(id string) rest.Events {
	return rest.Events{Run: func(ctx context.Context, send func(...rest.ServerEvent) error) error {
		pages, next, changed := b.since(0)
		pages = pages[1+slices.IndexFunc(pages, func(e stream.Event) bool { return e.ID == id }):]
		for {
			for _, e := range pages {
				if e.Tenant != request.Tenant(ctx) {
					continue
				}
				if err := send(rest.ServerEvent{ID: e.ID, Name: e.Type, Data: e.Data}); err != nil {
					return err
				}
			}
			select {
			case <-changed:
				pages, next, changed = b.since(next)
			case <-ctx.Done():
				return send(rest.ServerEvent{Name: "goodbye", Data: []byte("{}")})
			}
		}
	}}
}
