package engine

import (
	"slices"

	"github.com/idplatform/idplatform/pkg/textindex"
)

// MaxReach is how many identities' grants can reach one identity; see ErrReach.
const MaxReach = 10_000

// step is one identity whose grants reach the one that is asked about.
type step struct {
	Party            // but for a node
	node   *TreeNode // nil of all else
	place  int32     // of a node; 0 of all else
	from   int32     // the step that it was reached from; −1 of the first
	grants Grants
	way    []Party // see via
	closed bool    // a node whose grants reach nobody, see climb
}

// party is whose grants these are. The text of a node is read only here: most checks need it of no step or one.
func (s *step) party() Party {
	if s.node != nil {
		return Party{Identity{Node, s.node.ID}, s.node.Name}
	}
	return s.Party
}

func (s *step) same(as *step) bool {
	return s.place == as.place && (s.place > 0 || s.Identity == as.Identity)
}

func (s *step) hash() uint64 {
	if s.place > 0 {
		return uint64(s.place) * 0x9e3779b97f4a7c15 >> 32 //nolint:gosec // is not negative
	}
	return hashOf(s.Identity)
}

// reach is all whose grants reach an identity: itself first, then what it belongs to, from the nearest on.
type reach struct {
	steps []step
	near  [few]step // most need no more
	slots []int32   // of a hash table, beyond few: 1 + the index of a step, or 0
	full  bool      // there are more than MaxReach
	// disabled says that the identity may do nothing, whatever is granted to it.
	disabled bool
	// all says that disabled nodes count, too.
	all  bool
	aims []aim // see targets
}

// few is how many steps are compared one by one; more go into a hash table.
const few = 16

// add notes an identity once; it reports whether it is new.
func (r *reach) add(next step) (at int, added bool) {
	if len(r.steps) < few {
		for i := range r.steps {
			if r.steps[i].same(&next) {
				return i, false
			}
		}
	} else {
		if 2*len(r.steps) >= len(r.slots) {
			r.grow()
		}
		if at := *r.slot(&next); at != 0 {
			return int(at) - 1, false
		}
	}
	if len(r.steps) == MaxReach {
		r.full = true
		return 0, false
	}
	r.steps = append(r.steps, next)
	if len(r.steps) > few {
		*r.slot(&next) = int32(len(r.steps)) //nolint:gosec // at most MaxReach
	}
	return len(r.steps) - 1, true
}

// forget lets go of a state. Memory for a usual number of steps is kept.
func (r *reach) forget() {
	clear(r.steps)
	clear(r.aims)
	if cap(r.steps) > 16*few {
		r.steps, r.slots = nil, nil
	}
}

// slot is where the hash table has a step, or has room for it.
func (r *reach) slot(of *step) *int32 {
	mask := uint64(len(r.slots) - 1)
	for i := of.hash() & mask; ; i = (i + 1) & mask {
		if at := r.slots[i]; at == 0 || r.steps[at-1].same(of) {
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
		*r.slot(&r.steps[i]) = int32(i + 1) //nolint:gosec // at most MaxReach
	}
}

// reach fills r with those whose grants reach an identity. It reports whether the identity is known: others have no
// rights. An application that has a unit is known, whether the applications service knows it or not.
func (s *State) reach(r *reach, who Identity) bool {
	if r.steps == nil {
		r.steps = r.near[:0]
	}
	r.steps, r.slots, r.full, r.disabled = r.steps[:0], r.slots[:0], false, false
	if who.Type == Node {
		if !s.climb(r, s.places.numbers.Get(who.ID), -1) {
			return false
		}
	} else {
		own, ok := s.unitOf.Lookup(who)
		first := step{Party: Party{Identity: who}, grants: own.grants, from: -1}
		switch who.Type {
		case User:
			person := s.people.Get(who.ID)
			if ok = person != nil; ok {
				first.Name, r.disabled = person.Username, person.Disabled
			}
		case CoreObject:
			tree := s.trees.Get(who.ID)
			if ok = tree != nil; ok {
				first.Name = tree.Name
			}
		default:
			first.Name = s.Label(who)
			ok = ok || who.Type == Application && s.callers.Get(who.ID) != nil
		}
		if !ok {
			return false
		}
		r.add(first)
	}
	if who.Type == User {
		s.memberships(r, who.ID)
	}
	all := Identity{Everyone, Any}
	everyone := s.unitOf.Get(all)
	r.add(step{Party: Party{all, s.unitName(everyone)}, grants: everyone.grants})
	return true
}

func (s *State) unitName(of grantee) string {
	if of.unit == "" {
		return ""
	}
	if unit := s.units.Get(of.unit); unit != nil {
		return unit.Name
	}
	return ""
}

// memberships adds what a user, the first step, belongs to.
func (s *State) memberships(r *reach, userID string) {
	for _, m := range s.groupsOf.Get(userID) {
		if group := s.units.Get(m.UnitID); group != nil && group.Identity.Type == Group {
			r.add(step{Party: Party{group.Identity, group.Name}, grants: s.unitOf.Get(group.Identity).grants})
		}
	}
	for _, m := range s.belongs.Get(userID) {
		s.climb(r, m.place, 0)
	}
}

// isOpen reports whether neither a node nor one above it is disabled. One that is not known is open.
func (s *State) isOpen(number int32) bool {
	for number > 0 {
		at := s.places.at.At(number)
		if at == nil || at.TreeNode == nil {
			break
		}
		if at.Disabled {
			return false
		}
		number = at.parent
	}
	return true
}

// climb adds the node of a place, what is above it, and the nodes that stand for one of them with what is above those.
// It reports whether there is that node. It ends where another way has been before. Of a node that is disabled, or
// below one that is, only the first step is added, without grants.
func (s *State) climb(r *reach, number int32, from int) (known bool) {
	if s.disabled > 0 && !r.all && !s.isOpen(number) {
		if at := s.places.at.At(number); from < 0 {
			r.add(step{node: at.TreeNode, place: number, from: -1, closed: true})
		}
		return true
	}
	for ; ; known = true {
		at := s.places.at.At(number)
		if at == nil || at.TreeNode == nil {
			return known
		}
		next, added := r.add(step{
			node: at.TreeNode, place: number, grants: at.grants,
			from: int32(from), //nolint:gosec // see MaxReach
		})
		if !added {
			return true
		}
		if s.pointers.Len() > 0 {
			for pointer := range s.pointers.Get(at.ID).All() {
				s.climb(r, s.places.numbers.Get(pointer), next)
			}
		}
		if at.parent == 0 {
			s.tree(r, at.ObjectCode, next)
			return true
		}
		from, number = next, at.parent
	}
}

// tree adds the core object of a root.
func (s *State) tree(r *reach, code string, from int) {
	id := s.treeCodes.Get(code)
	if tree := s.trees.Get(id); tree != nil {
		who := Identity{CoreObject, id}
		r.add(step{
			Party: Party{who, tree.Name}, grants: s.unitOf.Get(who).grants,
			from: int32(from), //nolint:gosec // see MaxReach
		})
	}
}

// via is the way from the identity that is asked about to a step. All decisions about the identity share it.
func (r *reach) via(at int) []Party {
	if way := r.steps[at].way; way != nil {
		return way
	}
	n := 0
	for i := at; i >= 0; i = int(r.steps[i].from) {
		n++
	}
	way := make([]Party, n)
	r.steps[at].way = way
	for ; at >= 0; at = int(r.steps[at].from) {
		n--
		way[n] = r.steps[at].party()
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
		if unit := s.unitOf.Get(r.steps[i].party().Identity).unit; unit != "" && !r.steps[i].closed {
			ids = append(ids, unit)
		}
	}
	return ids, nil
}
