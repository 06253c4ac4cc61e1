package engine

import "slices"

// smallest keeps the first values in an order, each once: which ones does not depend on how they come.
type smallest[T any] struct {
	limit   int
	compare func(a, b T) int
	values  []T
	more    bool // there are more than limit
}

func (l *smallest[T]) add(value T) {
	if l.more && l.compare(value, l.values[l.limit-1]) >= 0 {
		return
	}
	if l.values = append(l.values, value); len(l.values) >= 2*l.limit {
		l.trim()
	}
}

// trim sorts the values and removes those beyond the limit.
func (l *smallest[T]) trim() {
	slices.SortFunc(l.values, l.compare)
	l.values = slices.CompactFunc(l.values, func(a, b T) bool { return l.compare(a, b) == 0 })
	if len(l.values) > l.limit {
		l.more = true
		clear(l.values[l.limit:])
		l.values = l.values[:l.limit]
	}
}
