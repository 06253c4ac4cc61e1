// Package cache keeps values in memory, up to a bound. The values that are used least are dropped first: keys that are
// used once, however many, do not drive out those that are used often (W-TinyLFU).
package cache

// Cache has values of type V by keys of type K. It may be used by several goroutines at once, and starts none.
type Cache[K comparable, V any] struct{ of store }

// New makes a cache for that many values.
func New[K comparable, V any](most int) *Cache[K, V] { return &Cache[K, V]{newStore(most, nil)} }

// NewWeighed makes a cache for values that weigh that much together. A value's weight must not change.
func NewWeighed[K comparable, V any](most int, weigh func(K, V) int) *Cache[K, V] {
	return &Cache[K, V]{newStore(most, func(k, v any) int { return weigh(k.(K), value[V](v)) })}
}

// value returns a stored value, or the zero value where nothing is stored. V may be an interface.
func value[V any](stored any) V {
	v, _ := stored.(V)
	return v
}

// Get returns the value of a key, and whether there is one.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	v, ok := c.of.get(key)
	return value[V](v), ok
}

// Set gives a key a value.
func (c *Cache[K, V]) Set(key K, v V) { c.of.set(key, v) }

// Change gives a key the value that change makes of the present one, and returns it. change gets the zero value and
// false if there is none. Meanwhile the key is locked: change must be quick, and must not use the cache.
func (c *Cache[K, V]) Change(key K, change func(present V, ok bool) V) V {
	return value[V](c.of.change(key, func(present any, ok bool) any { return change(value[V](present), ok) }))
}

// GetOrMake returns the value of a key. If there is none, it is what create returns, which is called as Change says.
func (c *Cache[K, V]) GetOrMake(key K, create func() V) V {
	if v, ok := c.Get(key); ok {
		return v
	}
	return c.Change(key, func(present V, ok bool) V {
		if ok {
			return present
		}
		return create()
	})
}

// Delete drops the value of a key.
func (c *Cache[K, V]) Delete(key K) { c.of.delete(key) }

// Clear drops all values.
func (c *Cache[K, V]) Clear() { c.of.clear() }

// Len is the number of values.
func (c *Cache[K, V]) Len() int { return c.of.len() }
