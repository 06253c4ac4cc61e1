package engine

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
)

// Map is a hash map whose versions share what they have in common. A copy of the struct is a version: it stays as it is
// while another one, under an edit, goes on from it. Reading needs no lock and allocates nothing.
type Map[K comparable, V any] struct {
	root *trie[K, V]
	n    int
}

// edit owns the nodes that it has made: it changes those in place, and copies all others. When it ends nobody changes
// them any more.
type edit struct{ _ byte }

// trie is a leaf, which has entries, or a branch, which has children.
type trie[K comparable, V any] struct {
	owner    *edit
	children *[fanOut]*trie[K, V]
	entries  []entry[K, V]
	// tags are of the entries' hashes: most keys that are not meant are told by them, without a look at their text.
	tags [leafSize]uint8
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

const (
	fanBits  = 4
	fanOut   = 1 << fanBits
	leafSize = 16 // entries that a leaf has at most, but at the deepest level, where hashes have no more bits
	hashBits = 64
)

var seed = maphash.MakeSeed()

// hashOf knows the types of keys that there are; maphash.Comparable would allocate for most of them.
func hashOf[K comparable](key K) uint64 {
	switch k := any(&key).(type) {
	case *string:
		return maphash.String(seed, *k)
	case *Identity:
		return maphash.String(seed, k.ID) + uint64(len(k.Type))*0x9e3779b97f4a7c15
	case *target:
		return maphash.String(seed, k.id) + uint64(k.kind)*0x9e3779b97f4a7c15
	case *objectCode:
		return maphash.String(seed, k.code) + bits.RotateLeft64(maphash.String(seed, k.application), 1) +
			uint64(len(k.kind))*0x9e3779b97f4a7c15
	}
	return maphash.Comparable(seed, key)
}

// Len is the number of entries.
func (m Map[K, V]) Len() int { return m.n }

// Get returns the value of a key; the zero value if there is none.
func (m Map[K, V]) Get(key K) (value V) {
	value, _ = m.Lookup(key)
	return value
}

// Lookup returns the value of a key and whether there is one.
func (m Map[K, V]) Lookup(key K) (value V, ok bool) {
	if m.root == nil {
		return value, false
	}
	return m.lookup(hashOf(key), key)
}

// lookup is Lookup for a key whose hash is known.
func (m Map[K, V]) lookup(hash uint64, key K) (value V, ok bool) {
	t := m.root
	if t == nil {
		return value, false
	}
	for rest := hash; t.children != nil; rest >>= fanBits {
		if t = t.children[rest%fanOut]; t == nil {
			return value, false
		}
	}
	if i := t.index(hash, key); i >= 0 {
		return t.entries[i].value, true
	}
	return value, false
}

// tagOf is taken from other bits of a hash than those that lead to most leaves.
func tagOf(hash uint64) uint8 { return uint8(hash >> (hashBits - 8)) } //nolint:gosec // the last eight bits

// index is where a leaf has a key; −1 if it has not.
func (t *trie[K, V]) index(hash uint64, key K) int {
	tag := tagOf(hash)
	for i := range t.entries {
		if (i >= leafSize || t.tags[i] == tag) && t.entries[i].key == key {
			return i
		}
	}
	return -1
}

// All gives every entry, in no particular order.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.all(yield) }
}

func (t *trie[K, V]) all(yield func(K, V) bool) bool {
	if t == nil {
		return true
	}
	for i := range t.entries {
		if !yield(t.entries[i].key, t.entries[i].value) {
			return false
		}
	}
	if t.children != nil {
		for _, child := range t.children {
			if !child.all(yield) {
				return false
			}
		}
	}
	return true
}

// put sets the value of a key.
func (m *Map[K, V]) put(by *edit, key K, value V) {
	root, added := m.root.put(by, hashOf(key), 0, entry[K, V]{key, value})
	m.root = root
	if added {
		m.n++
	}
}

// drop takes a key out.
func (m *Map[K, V]) drop(by *edit, key K) {
	root, dropped := m.root.drop(by, hashOf(key), 0, key)
	m.root = root
	if dropped {
		m.n--
	}
}

// owned is the node itself, or a copy that by may change.
func (t *trie[K, V]) owned(by *edit) *trie[K, V] {
	if t.owner == by {
		return t
	}
	own := &trie[K, V]{owner: by, tags: t.tags}
	if t.children != nil {
		children := *t.children
		own.children = &children
	} else {
		own.entries = append(make([]entry[K, V], 0, len(t.entries)+1), t.entries...)
	}
	return own
}

// put adds or replaces an entry below a node that is so many bits of the hash deep.
func (t *trie[K, V]) put(by *edit, hash uint64, depth int, e entry[K, V]) (_ *trie[K, V], added bool) {
	if t == nil {
		t = &trie[K, V]{owner: by, entries: []entry[K, V]{e}}
		t.tags[0] = tagOf(hash)
		return t, true
	}
	t = t.owned(by)
	if t.children != nil {
		child := &t.children[hash>>depth%fanOut]
		*child, added = (*child).put(by, hash, depth+fanBits, e)
		return t, added
	}
	if i := t.index(hash, e.key); i >= 0 {
		t.entries[i] = e
		return t, false
	}
	if n := len(t.entries); n < leafSize || depth+fanBits > hashBits {
		t.entries = append(t.entries, e)
		if n < leafSize {
			t.tags[n] = tagOf(hash)
		}
		return t, true
	}
	entries := t.entries
	t.entries, t.children = nil, new([fanOut]*trie[K, V])
	for _, old := range append(entries, e) {
		its := hashOf(old.key)
		child := &t.children[its>>depth%fanOut]
		*child, _ = (*child).put(by, its, depth+fanBits, old)
	}
	return t, true
}

// drop leaves branches as they are, but for those with nothing below them.
func (t *trie[K, V]) drop(by *edit, hash uint64, depth int, key K) (_ *trie[K, V], dropped bool) {
	if t == nil {
		return nil, false
	}
	if t.children == nil {
		i := t.index(hash, key)
		if i < 0 {
			return t, false
		}
		if len(t.entries) == 1 {
			return nil, true
		}
		t = t.owned(by)
		last := len(t.entries) - 1
		t.entries[i] = t.entries[last]
		t.entries = slices.Delete(t.entries, last, last+1)
		if last < leafSize {
			t.tags[i] = t.tags[last]
		} else if i < leafSize {
			t.tags[i] = tagOf(hashOf(t.entries[i].key))
		}
		return t, true
	}
	child, dropped := t.children[hash>>depth%fanOut].drop(by, hash, depth+fanBits, key)
	if !dropped {
		return t, false
	}
	t = t.owned(by)
	t.children[hash>>depth%fanOut] = child
	if *t.children == ([fanOut]*trie[K, V]{}) {
		return nil, true
	}
	return t, true
}
