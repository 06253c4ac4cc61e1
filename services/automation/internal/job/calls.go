package job

import (
	"context"
	"sync"

	"github.com/idplatform/idplatform/pkg/docstore"
)

const (
	maxCalls       = 128 // runs that a replica has in progress at a time
	maxTenantCalls = 64  // runs of one tenant among them
)

// calls are the runs that this replica has in progress.
type calls struct {
	mu       sync.Mutex
	cancel   map[docstore.Ref]context.CancelFunc
	byTenant map[string]int
	ended    chan struct{} // gets a value after a run has ended
}

func newCalls() *calls {
	return &calls{
		cancel: map[docstore.Ref]context.CancelFunc{}, byTenant: map[string]int{}, ended: make(chan struct{}, 1),
	}
}

// add adds a run whose call cancel breaks off. It returns false if there are too many, or the run is there already.
func (c *calls) add(ref docstore.Ref, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.cancel[ref]
	if there || len(c.cancel) == maxCalls || c.byTenant[ref.Tenant] == maxTenantCalls {
		return false
	}
	c.cancel[ref] = cancel
	c.byTenant[ref.Tenant]++
	return true
}

// remove removes a run and cancels its context.
func (c *calls) remove(ref docstore.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel[ref]()
	delete(c.cancel, ref)
	if c.byTenant[ref.Tenant]--; c.byTenant[ref.Tenant] == 0 {
		delete(c.byTenant, ref.Tenant)
	}
}

// end removes a run that was worked on, so that another can take its place.
func (c *calls) end(ref docstore.Ref) {
	c.remove(ref)
	select {
	case c.ended <- struct{}{}:
	default:
	}
}

func (c *calls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.cancel)
}

// breakOff ends the call of a run, if this replica makes one.
func (c *calls) breakOff(ref docstore.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.cancel[ref]; ok {
		cancel()
	}
}
