package filter

import (
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Plan says how to find the resources for which a filter holds.
type Plan struct {
	// Served is the part that indexes can serve: And, Or and *Compare of indexed paths, whose operators are eq, sw and
	// the orders. Each resource for which the filter holds is among those for which Served does. It is nil if an index
	// can serve no part: then all resources are candidates.
	Served Node
	// Rest must be tested on what Served finds. It is nil if nothing need be tested.
	Rest Node
}

// MakePlan plans a filter; nil is the filter that always holds. indexed reports whether an index has the values of a
// path such as emails.value or name.givenName, as Key forms them.
//
// In Served the paths are whole: a Compare from within a value path has the path emails.value too. Each Compare of a
// multi-valued path is a lookup of its own: of emails.value gt "a" and emails.value lt "c", different values may
// satisfy the two.
func MakePlan(n Node, indexed func(schema.Path) bool) Plan {
	if n == nil {
		return Plan{}
	}
	p := planner{indexed}
	served, exact := p.serve(n, nil)
	switch {
	case served == nil:
		return Plan{Rest: n}
	case exact:
		return Plan{Served: served}
	}
	return Plan{served, p.rest(n)}
}

type planner struct{ indexed func(schema.Path) bool }

// serve returns a condition of indexes that holds wherever n does, or nil, and whether it holds nowhere else.
func (p planner) serve(n Node, within *schema.Path) (served Node, exact bool) {
	switch n := n.(type) {
	case And:
		var parts []Node
		exact = true
		for _, part := range n {
			s, e := p.serve(part, within)
			if exact = exact && e; s != nil {
				parts = append(parts, s)
			}
		}
		return one(parts, join(And(nil), parts)), exact
	case Or:
		var parts []Node
		exact = true
		for _, part := range n {
			s, e := p.serve(part, within)
			if s == nil {
				return nil, false
			}
			exact = exact && e
			parts = append(parts, s)
		}
		return one(parts, join(Or(nil), parts)), exact
	case *Each:
		// Conditions on one value must hold for the same one, which indexes of single sub-attributes cannot tell.
		served, exact = p.serve(n.Filter, &n.Path)
		_, single := n.Filter.(*Compare)
		return served, exact && single
	case *Compare:
		return p.compare(n, within)
	}
	return nil, false
}

func one(parts []Node, joined Node) Node {
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0]
	}
	return joined
}

func (p planner) compare(c *Compare, within *schema.Path) (Node, bool) {
	if c.Value == nil || !c.Op.ordered() && c.Op != Equal && c.Op != StartsWith {
		return nil, false
	}
	if s, is := c.Value.(string); is && s == "" { // what is empty is in no index
		return nil, false
	}
	of := whole(within, c.Path)
	if !p.indexed(of) {
		return nil, false
	}
	served := *c
	served.Path = of
	return &served, true
}

// rest leaves out of n what indexes serve exactly: of an And those of its parts.
func (p planner) rest(n Node) Node {
	and, is := n.(And)
	if !is {
		return n
	}
	var rest []Node
	for _, part := range and {
		if _, exact := p.serve(part, nil); !exact {
			rest = append(rest, part)
		}
	}
	return one(rest, And(rest))
}
