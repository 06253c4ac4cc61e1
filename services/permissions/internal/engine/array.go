package engine

// Array is a growing array whose versions share what they have in common, as those of a Map do.
type Array[V any] struct {
	root  *block[V]
	depth int // in bits of an index
	n     int32
}

// block has children, or, at the lowest level, values.
type block[V any] struct {
	owner    *edit
	children *[blockSize]*block[V]
	values   *[blockSize]V
}

const (
	blockBits = 5
	blockSize = 1 << blockBits
)

// Len is one more than the highest index that was set.
func (a *Array[V]) Len() int32 { return a.n }

// At returns the value at an index, not to be changed; nil beyond the end.
func (a *Array[V]) At(index int32) *V {
	if index < 0 || index >= a.n {
		return nil
	}
	b := a.root
	for depth := a.depth; depth > 0; depth -= blockBits {
		b = b.children[index>>depth%blockSize]
	}
	return &b.values[index%blockSize]
}

// set replaces the value at an index, which is at most Len + 1: so no block is left out.
func (a *Array[V]) set(by *edit, index int32, value V) {
	for a.root != nil && index>>a.depth >= blockSize {
		root := &block[V]{owner: by, children: new([blockSize]*block[V])}
		root.children[0] = a.root
		a.root, a.depth = root, a.depth+blockBits
	}
	a.n = max(a.n, index+1)
	at := &a.root
	for depth := a.depth; ; depth -= blockBits {
		b := (*at).owned(by, depth > 0)
		*at = b
		if depth == 0 {
			b.values[index%blockSize] = value
			return
		}
		at = &b.children[index>>depth%blockSize]
	}
}

// owned is the block itself, or a copy that by may change; a new one for nil.
func (b *block[V]) owned(by *edit, branch bool) *block[V] {
	if b != nil && b.owner == by {
		return b
	}
	own := &block[V]{owner: by}
	if branch {
		own.children = new([blockSize]*block[V])
	} else {
		own.values = new([blockSize]V)
	}
	switch {
	case b == nil:
	case branch:
		*own.children = *b.children
	default:
		*own.values = *b.values
	}
	return own
}
