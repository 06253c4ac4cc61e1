package engine

import (
	"hash/maphash"
	"iter"
)

// Rules is a set of rules in the order of their ids. Its versions share what they have in common, as those of a Map do.
// It is a treap: a search tree by ids that is a heap by hashes of ids, and so is balanced whatever the order of
// changes.
type Rules struct{ root *spot }

type spot struct {
	owner       *edit
	rule        *Rule
	left, right *spot
	weight      uint32
	n           int32 // of the rules here and below
}

// Len is the number of rules.
func (r Rules) Len() int { return r.root.size() }

func (t *spot) size() int {
	if t == nil {
		return 0
	}
	return int(t.n)
}

func (t *spot) owned(by *edit) *spot {
	if t.owner == by {
		return t
	}
	own := *t
	own.owner = by
	return &own
}

func (t *spot) count() { t.n = int32(1 + t.left.size() + t.right.size()) } //nolint:gosec // 2^31 do not fit in memory

// put adds a rule, or replaces the one with its id.
func (r *Rules) put(by *edit, rule *Rule) { r.root = r.root.put(by, rule) }

func (t *spot) put(by *edit, rule *Rule) *spot {
	if t == nil {
		weight := uint32(maphash.String(seed, rule.ID)) //nolint:gosec // any bits will do
		return &spot{owner: by, rule: rule, weight: weight, n: 1}
	}
	t = t.owned(by)
	switch c := compareIDs(rule.ID, t.rule.ID); {
	case c == 0:
		t.rule = rule
	case c < 0:
		if t.left = t.left.put(by, rule); t.left.weight > t.weight {
			up := t.left
			t.left, up.right = up.right, t
			t.count()
			t = up
		}
	default:
		if t.right = t.right.put(by, rule); t.right.weight > t.weight {
			up := t.right
			t.right, up.left = up.left, t
			t.count()
			t = up
		}
	}
	t.count()
	return t
}

// drop takes a rule out.
func (r *Rules) drop(by *edit, id string) { r.root = r.root.drop(by, id) }

func (t *spot) drop(by *edit, id string) *spot {
	if t == nil {
		return nil
	}
	c := compareIDs(id, t.rule.ID)
	if c == 0 {
		return joined(by, t.left, t.right)
	}
	t = t.owned(by)
	if c < 0 {
		t.left = t.left.drop(by, id)
	} else {
		t.right = t.right.drop(by, id)
	}
	t.count()
	return t
}

// joined merges two trees. Every id in a must be less than every id in b.
func joined(by *edit, a, b *spot) *spot {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.weight > b.weight:
		a = a.owned(by)
		a.right = joined(by, a.right, b)
		a.count()
		return a
	}
	b = b.owned(by)
	b.left = joined(by, a, b.left)
	b.count()
	return b
}

// All gives the rules in their order.
func (r Rules) All() iter.Seq[*Rule] {
	return func(yield func(*Rule) bool) {
		for w := r.from("", false); w.rule() != nil; w.next() {
			if !yield(w.rule()) {
				return
			}
		}
	}
}

// walk is a place in a set of rules.
type walk struct {
	way  []*spot // from the place up to the root, without what has been passed; the place is the last
	back bool    // to smaller ids
}

// from is a walk that begins at the rule with an id, or the next one; with "" at the first.
func (r Rules) from(id string, back bool) *walk {
	w := &walk{back: back}
	for t := r.root; t != nil; {
		c := -1
		if id != "" {
			c = compareIDs(id, t.rule.ID)
		} else if back {
			c = 1
		}
		ahead := c <= 0 // the spot lies ahead
		if back {
			ahead = c >= 0
		}
		if ahead {
			w.way = append(w.way, t)
		}
		switch {
		case c == 0:
			return w
		case c < 0:
			t = t.left
		default:
			t = t.right
		}
	}
	return w
}

// rule is the one at the place; nil at the end.
func (w *walk) rule() *Rule {
	if len(w.way) == 0 {
		return nil
	}
	return w.way[len(w.way)-1].rule
}

func (w *walk) next() {
	t := w.way[len(w.way)-1]
	w.way = w.way[:len(w.way)-1]
	if w.back {
		for t = t.left; t != nil; t = t.right {
			w.way = append(w.way, t)
		}
		return
	}
	for t = t.right; t != nil; t = t.left {
		w.way = append(w.way, t)
	}
}
