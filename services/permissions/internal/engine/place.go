package engine

// place is where a node is, or one that others name as their parent. A check that climbs a tree reads one place for
// each level, and nothing else: looking nodes up by their ids costs several times as much memory access.
type place struct {
	*TreeNode        // nil: it is not known yet, or no more
	grants    Grants // of the node
	parent    int32  // the parent's place; 0: it is a root. Of a free place: the next free one
}

// places numbers the nodes from 1 on. A node keeps its number as long as it, a node below it or one of its memberships
// is known.
type places struct {
	numbers Map[string, int32]
	at      Array[place]
	free    int32 // the first of the free places; 0: none
}

// belonging is a membership and the place of its node, which may not be known.
type belonging struct {
	*Membership
	place int32
}

// node returns a node; nil if there is none.
func (s *State) node(id string) *TreeNode {
	if at := s.places.numbers.Get(id); at > 0 {
		return s.places.at.At(at).TreeNode
	}
	return nil
}

// number is where the place of a node is, which it gives out at first use; 0 for "".
func (p *places) number(by *edit, id string) int32 {
	if id == "" {
		return 0
	}
	at, known := p.numbers.Lookup(id)
	if known {
		return at
	}
	if at = p.free; at > 0 {
		p.free = p.at.At(at).parent
	} else {
		at = max(p.at.Len(), 1)
	}
	p.at.set(by, at, place{})
	p.numbers.put(by, id, at)
	return at
}

// release frees a place.
func (p *places) release(by *edit, id string, at int32) {
	p.numbers.drop(by, id)
	p.at.set(by, at, place{parent: p.free})
	p.free = at
}
