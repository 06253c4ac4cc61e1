package engine

import (
	"slices"

	"github.com/idplatform/idplatform/pkg/textindex"
)

// MaxReach is how many identities' grants can reach one identity; see ErrReach.
const MaxReach = 10_000

// step is one identity whose grants reach the one that is asked about.
type step struct {
	Identity
	from int32 // the step that it was reached from; −1 of the first
}

// reach is all whose grants reach an identity: itself first, then what it belongs to, from the nearest on.
type reach struct {
	steps []step
	near  [few]step // most need no more
	slots []int32   // of a hash table, beyond few: 1 + the index of a step, or 0
	full  bool      // there are more than MaxReach
	aims  []aim     // see targets
}

// few steps are compared one by one.
const few = 16

// add notes an identity once; it reports whether it is new.
func (r *reach) add(who Identity, from int) (at int, added bool) {
	if len(r.steps) < few {
		for i := range r.steps {
			if r.steps[i].Identity == who {
				return i, false
			}
		}
	} else {
		if 2*len(r.steps) >= len(r.slots) {
			r.grow()
		}
		if at := *r.slot(who); at != 0 {
			return int(at) - 1, false
		}
	}
	if len(r.steps) == MaxReach {
		r.full = true
		return 0, false
	}
	r.steps = append(r.steps, step{who, int32(from)}) //nolint:gosec // at most MaxReach
	if len(r.steps) > few {
		*r.slot(who) = int32(len(r.steps)) //nolint:gosec // at most MaxReach
	}
	return len(r.steps) - 1, true
}

// slot is where the hash table has an identity, or has room for it.
func (r *reach) slot(who Identity) *int32 {
	mask := uint64(len(r.slots) - 1)
	for i := hashOf(who) & mask; ; i = (i + 1) & mask {
		if at := r.slots[i]; at == 0 || r.steps[at-1].Identity == who {
			return &r.slots[i]
		}
	}
}

// grow makes a table with room for four times as many steps as there are, of the old one's memory if that will do.
func (r *reach) grow() {
	size := few
	for size < 4*len(r.steps) {
		size *= 2
	}
	r.slots = slices.Grow(r.slots[:0], size)[:size]
	clear(r.slots)
	for i := range r.steps {
		*r.slot(r.steps[i].Identity) = int32(i + 1) //nolint:gosec // at most MaxReach
	}
}

// reach fills r with those whose grants reach an identity. It reports whether the identity is known: others have no
// rights.
func (s *State) reach(r *reach, who Identity) bool {
	r.steps, r.slots, r.full = r.near[:0], r.slots[:0], false
	r.add(who, -1)
	switch who.Type {
	case User:
		if s.people.Get(who.ID) == nil {
			return false
		}
		for _, m := range s.groupsOf.Get(who.ID) {
			if group := s.units.Get(m.UnitID); group != nil && group.Identity.Type == Group {
				r.add(group.Identity, 0)
			}
		}
		for _, m := range s.belongs.Get(who.ID) {
			s.climb(r, m.NodeID, 0)
		}
	case Node:
		node := s.nodes.Get(who.ID)
		if node == nil {
			return false
		}
		s.above(r, node, 0)
	case CoreObject:
		if s.trees.Get(who.ID) == nil {
			return false
		}
	case Application, Group, Everyone:
		if _, ok := s.unitOf.Lookup(who); !ok {
			return false
		}
	default:
		return false
	}
	r.add(Identity{Everyone, Any}, 0)
	return true
}

// climb adds a node and what is above it.
func (s *State) climb(r *reach, nodeID string, from int) {
	if node := s.nodes.Get(nodeID); node != nil {
		if at, added := r.add(Identity{Node, node.ID}, from); added {
			s.above(r, node, at)
		}
	}
}

// above adds what is above a node. It ends where another way has been before.
func (s *State) above(r *reach, node *TreeNode, at int) {
	for node.ParentID != "" {
		parent, added := s.nodes.Get(node.ParentID), false
		if parent == nil {
			return
		}
		if at, added = r.add(Identity{Node, parent.ID}, at); !added {
			return
		}
		node = parent
	}
	if tree := s.treeCodes.Get(node.ObjectCode); tree != "" {
		r.add(Identity{CoreObject, tree}, at)
	}
}

// via is the way from the identity that is asked about to a step.
func (r *reach) via(at int) []Identity {
	n := 0
	for i := at; i >= 0; i = int(r.steps[i].from) {
		n++
	}
	way := make([]Identity, n)
	for ; at >= 0; at = int(r.steps[at].from) {
		n--
		way[n] = r.steps[at].Identity
	}
	return way
}

// PersonNamed finds a user by username, without regard to case and width; "" if there is none.
func (s *State) PersonNamed(username string) string { return s.usernames.Get(textindex.Key(username)) }

// Person returns a user; nil if there is none.
func (s *State) Person(id string) *Person { return s.people.Get(id) }

// Reaching returns the units whose grants reach an identity, the nearest first. An error is ErrReach.
func (s *State) Reaching(who Identity) ([]string, error) {
	r := &reach{}
	if !s.reach(r, who) {
		return nil, nil
	}
	if r.full {
		return nil, ErrReach
	}
	var ids []string
	for i := range r.steps {
		if unit := s.unitOf.Get(r.steps[i].Identity).unit; unit != "" {
			ids = append(ids, unit)
		}
	}
	return ids, nil
}
