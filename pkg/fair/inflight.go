package fair

import (
	"context"
	"sync"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// InFlight are the runs that a replica has in progress. Each has a slot, until it is known that it only waits.
type InFlight struct {
	// Ended gets a value after a run has ended or freed its slot.
	Ended chan struct{}

	slots, all Limits

	mu       sync.Mutex
	calls    map[docstore.Ref]*call
	active   int            // calls with a slot
	ofTenant map[string]int // the same for each tenant
	total    map[string]int // all calls of each tenant
}

// Limits is for how many runs there is room: of all tenants, and of one tenant.
type Limits struct{ Most, OfTenant int }

type call struct {
	cancel  context.CancelFunc
	waiting bool
}

// NewInFlight returns room for calls with a slot, and for all.
func NewInFlight(slots, all Limits) *InFlight {
	return &InFlight{
		Ended: make(chan struct{}, 1), slots: slots, all: all, calls: map[docstore.Ref]*call{},
		ofTenant: map[string]int{}, total: map[string]int{},
	}
}

// Add adds a run whose call cancel breaks off. It returns false if there are too many, or the run is there already.
func (c *InFlight) Add(ref docstore.Ref, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[ref] != nil || c.active == c.slots.Most || c.ofTenant[ref.Tenant] == c.slots.OfTenant ||
		len(c.calls) == c.all.Most || c.total[ref.Tenant] == c.all.OfTenant {
		return false
	}
	c.calls[ref] = &call{cancel: cancel}
	c.total[ref.Tenant]++
	c.active++
	c.ofTenant[ref.Tenant]++
	return true
}

// Wait frees the slot of a run that only waits for an answer.
func (c *InFlight) Wait(ref docstore.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.calls[ref]; one != nil && !one.waiting {
		one.waiting = true
		c.free(ref.Tenant)
		c.tell()
	}
}

func (c *InFlight) free(tenant string) {
	c.active--
	less(c.ofTenant, tenant)
}

func less(counts map[string]int, key string) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// Remove removes a run and cancels its context.
func (c *InFlight) Remove(ref docstore.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.calls[ref]
	one.cancel()
	delete(c.calls, ref)
	less(c.total, ref.Tenant)
	if !one.waiting {
		c.free(ref.Tenant)
	}
}

// End removes a run that was worked on, so that another can take its place.
func (c *InFlight) End(ref docstore.Ref) {
	c.Remove(ref)
	c.tell()
}

func (c *InFlight) tell() {
	select {
	case c.Ended <- struct{}{}:
	default:
	}
}

// Full reports whether no run of any tenant has room now.
func (c *InFlight) Full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active == c.slots.Most || len(c.calls) == c.all.Most
}

// Count counts the runs in progress.
func (c *InFlight) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// CountOf counts the runs of a tenant that have a slot.
func (c *InFlight) CountOf(tenant string) int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ofTenant[tenant]
}

// BreakOff ends the call of a run, if this replica makes one.
func (c *InFlight) BreakOff(ref docstore.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.calls[ref]; one != nil {
		one.cancel()
	}
}
