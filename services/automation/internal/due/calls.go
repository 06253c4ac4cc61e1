package due

import (
	"context"
	"sync"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Calls are the runs that a replica has in progress.
type Calls struct {
	// Ended gets a value after a run has ended.
	Ended chan struct{}

	most, mostOfTenant int

	mu       sync.Mutex
	cancel   map[docstore.Ref]context.CancelFunc
	byTenant map[string]int
}

// NewCalls returns room for most runs at a time, mostOfTenant of them of one tenant.
func NewCalls(most, mostOfTenant int) *Calls {
	return &Calls{
		Ended: make(chan struct{}, 1), most: most, mostOfTenant: mostOfTenant,
		cancel: map[docstore.Ref]context.CancelFunc{}, byTenant: map[string]int{},
	}
}

// Add adds a run whose call cancel breaks off. It returns false if there are too many, or the run is there already.
func (c *Calls) Add(ref docstore.Ref, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.cancel[ref]
	if there || len(c.cancel) == c.most || c.byTenant[ref.Tenant] == c.mostOfTenant {
		return false
	}
	c.cancel[ref] = cancel
	c.byTenant[ref.Tenant]++
	return true
}

// Remove removes a run and cancels its context.
func (c *Calls) Remove(ref docstore.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel[ref]()
	delete(c.cancel, ref)
	if c.byTenant[ref.Tenant]--; c.byTenant[ref.Tenant] == 0 {
		delete(c.byTenant, ref.Tenant)
	}
}

// End removes a run that was worked on, so that another can take its place.
func (c *Calls) End(ref docstore.Ref) {
	c.Remove(ref)
	select {
	case c.Ended <- struct{}{}:
	default:
	}
}

// Count counts the runs in progress.
func (c *Calls) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.cancel)
}

// BreakOff ends the call of a run, if this replica makes one.
func (c *Calls) BreakOff(ref docstore.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.cancel[ref]; ok {
		cancel()
	}
}
