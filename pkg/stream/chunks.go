package stream

import (
	"slices"
	"sort"
	"sync"
)

// chunks are parts of the stream that were read lately. A reader continues in the one that it has begun, and often
// others read the same.
type chunks struct {
	mu    sync.Mutex
	list  []*chunk // the one that was used last is last
	bytes int
}

// chunk has all events of a tenant after a place, up to the place next; those of all tenants if the tenant is "".
type chunk struct {
	tenant      string
	whole       bool // see Reading
	after, next uint64
	events      []*Event
}

// size includes what an event takes besides its payload.
func (c *chunk) size() int {
	const each = 1 << 10
	return each + sizeOf(c.events) + each*len(c.events)
}

func sizeOf(events []*Event) (n int) {
	for _, e := range events {
		n += len(e.JSON)
	}
	return n
}

// from returns the events after a place, at most limit, and the place up to which there are no others.
func (c *chunk) from(after uint64, limit int) (events []*Event, next uint64) {
	i := sort.Search(len(c.events), func(i int) bool { return c.events[i].Place > after })
	events = c.events[i:]
	if len(events) > limit {
		return events[:limit:limit], events[limit-1].Place
	}
	return events, c.next
}

// find returns the chunk that has what follows a place; nil if there is none.
func (c *chunks) find(of selection, after uint64) *chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, one := range c.list {
		if one.tenant == of.tenant && (one.whole || !of.whole) && one.after <= after && after < one.next {
			c.list = append(slices.Delete(c.list, i, i+1), one)
			return one
		}
	}
	return nil
}

// at returns the event at a place; nil if no chunk has it.
func (c *chunks) at(place uint64) *Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.list {
		i := sort.Search(len(one.events), func(i int) bool { return one.events[i].Place >= place })
		if i < len(one.events) && one.events[i].Place == place {
			return one.events[i]
		}
	}
	return nil
}

// add keeps a chunk, and as many of the others as have so many bytes together.
func (c *chunks) add(one *chunk, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, one)
	c.bytes += one.size()
	for c.bytes > most && len(c.list) > 1 {
		c.bytes -= c.list[0].size()
		c.list = slices.Delete(c.list, 0, 1)
	}
}

func (c *chunks) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.bytes = nil, 0
}
