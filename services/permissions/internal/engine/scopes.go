package engine

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/auth"
)

// scopeOf is the scope of the platform's API that a resource gives; 0 if it gives none.
func scopeOf(r *Resource) auth.Scopes {
	if r.Type != API {
		return 0
	}
	scope, _ := auth.ParseScopes(r.Code)
	return scope
}

// ScopesOfUser are the scopes of the platform's API that rules give a user, by whatever the user belongs to; those for
// everyone do not count. An error is ErrReach, ErrSearch or the context's.
func (s *State) ScopesOfUser(ctx context.Context, id string, now int64) (auth.Scopes, error) {
	if s.scopes.Len() == 0 {
		return 0, nil
	}
	who := Identity{User, id}
	r := &reach{all: true} // who enables a node gives its grants back without holding the scopes
	r.add(step{Party: Party{Identity: who}, grants: s.unitOf.Get(who).grants, from: -1})
	s.memberships(r, id)
	return s.scopesOf(ctx, r, now)
}

// nodesAtOnce is how many nodes are looked at together: what reaches their members is far below MaxReach.
const nodesAtOnce = 100

// ScopesOfNodes are the scopes of the platform's API that rules give the members of nodes: rules for the nodes, for
// those above and for their trees. unknown are the nodes that the state does not have: only their own rules count. An
// error is ErrSearch or the context's.
func (s *State) ScopesOfNodes(ctx context.Context, ids []string, now int64) (given auth.Scopes, unknown []string,
	err error) {
	if s.scopes.Len() == 0 {
		return 0, nil, nil
	}
	for some := range slices.Chunk(ids, nodesAtOnce) {
		r := &reach{all: true}
		for _, id := range some {
			if !s.climb(r, s.places.numbers.Get(id), -1) {
				who := Identity{Node, id}
				r.add(step{Party: Party{Identity: who}, grants: s.unitOf.Get(who).grants, from: -1})
				unknown = append(unknown, id)
			}
		}
		more, err := s.scopesOf(ctx, r, now)
		if err != nil {
			return 0, nil, err
		}
		given |= more
	}
	return given, unknown, nil
}

// ScopesOfUnit are the scopes of the platform's API that the rules of a unit itself give. An error is ErrSearch or the
// context's.
func (s *State) ScopesOfUnit(ctx context.Context, id string, now int64) (auth.Scopes, error) {
	if s.scopes.Len() == 0 {
		return 0, nil
	}
	r := &reach{}
	r.add(step{grants: s.granted.Get(id), from: -1})
	return s.scopesOf(ctx, r, now)
}

// scopesOf are the scopes that rules of the steps give. Of an allowing rule only its end counts: conditions can be met
// one day, and denies can end. An error is ErrReach, ErrSearch or the context's.
func (s *State) scopesOf(ctx context.Context, r *reach, now int64) (given auth.Scopes, err error) {
	if r.full {
		return 0, ErrReach
	}
	work := NewWork(nil)
	defer work.Done()
	looked := 0
	for _, resource := range s.scopes.All() {
		scope := scopeOf(resource)
		if scope&^given == 0 {
			continue
		}
		aims := s.targets(&Question{ObjectType: API, resource: resource}, r)
		for i := range r.steps {
			for _, aim := range aims {
				rules, _ := r.steps[i].grants.lookup(aim.hash, aim.target)
				if looked += len(rules); looked > MaxSearch {
					return 0, ErrSearch
				}
				if err := work.spend(ctx, 1+len(rules)); err != nil {
					return 0, err
				}
				for _, rule := range rules {
					if !rule.Deny && rule.matches(resource) && (rule.To == 0 || now < rule.To) {
						given |= scope
					}
				}
			}
		}
	}
	return given, nil
}
