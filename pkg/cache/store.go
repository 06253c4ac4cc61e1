package cache

import "github.com/maypok86/otter/v2"

// store is a cache without type parameters. An otter.Cache has 400 functions for each pair of types, and the compiler
// would make them again in every package that uses one: with otter.Cache, half of the functions of all packages were
// otter's. Behind an interface they are compiled here only.
type store interface {
	get(key any) (any, bool)
	set(key, value any)
	change(key any, change func(any, bool) any) any
	delete(key any)
	clear()
	len() int
}

type held struct{ cache *otter.Cache[any, any] }

// newStore makes a cache of that many values or, if they are weighed, of values that weigh that much.
//
//go:noinline
func newStore(most int, weigh func(key, value any) int) store {
	options := &otter.Options[any, any]{
		Executor: func(task func()) { task() }, // starts no goroutine, which nobody could stop
	}
	if weigh == nil {
		options.MaximumSize = most
	} else {
		options.MaximumWeight = uint64(most)
		options.Weigher = func(key, value any) uint32 { return uint32(weigh(key, value)) }
	}
	return held{otter.Must(options)}
}

func (h held) get(key any) (any, bool) { return h.cache.GetIfPresent(key) }

func (h held) set(key, value any) { h.cache.Set(key, value) }

func (h held) change(key any, change func(any, bool) any) any {
	value, _ := h.cache.Compute(key, func(old any, found bool) (any, otter.ComputeOp) {
		return change(old, found), otter.WriteOp
	})
	return value
}

func (h held) delete(key any) { h.cache.Invalidate(key) }

func (h held) clear() { h.cache.InvalidateAll() }

func (h held) len() int {
	h.cache.CleanUp()
	return h.cache.EstimatedSize()
}
