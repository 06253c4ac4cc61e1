package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
)

// MaxSearch is how many rules a check examines, and how many candidates a search; see ErrSearch.
const MaxSearch = 100_000

// ErrSearch says that a question needs more than MaxSearch rules or candidates. An answer without some of them would be
// wrong.
var ErrSearch = errors.New("the question needs too many records")

// Object is what an identity may do something with.
type Object struct {
	Resource      *Resource // nil for an application
	ApplicationID string
	Actions       []string // what the identity may do with it; nil for an application
}

// Objects finds the objects of the question's type with which its identity may do the action or, if the action is
// empty, anything, in the order of codes. For App these are applications, in the order of ids: all, or only the
// question's ApplicationID. An error is one of Check's.
func (s *State) Objects(ctx context.Context, q *Question) ([]Object, error) {
	if q.Work == nil {
		q.Work = NewWork(nil)
		defer q.endWork()
	}
	r, known := q.Work.reached(s, q.Identity)
	if !known || r.disabled {
		return nil, nil
	}
	if r.full {
		return nil, ErrReach
	}
	if q.ObjectType == App {
		return s.applications(ctx, q, r)
	}
	candidates, err := s.candidates(ctx, q, r)
	if err != nil {
		return nil, err
	}
	found := make([]Object, 0, len(candidates))
	each, asked := *q, []string{q.Action}
	for _, resource := range candidates {
		each.resource = resource
		actions, may := asked, true
		if q.Action == "" {
			actions, err = s.actions(ctx, &each, r)
		} else {
			may, err = s.may(ctx, &each, r)
		}
		if err != nil {
			return nil, err
		}
		if may && len(actions) > 0 {
			found = append(found, Object{resource, resource.ApplicationID, actions})
		}
	}
	return found, nil
}

func compareApplications(a, b Object) int {
	return strings.Compare(a.ApplicationID, b.ApplicationID)
}

// compareResources orders resources by code, then by id.
func compareResources(a, b *Resource) int {
	if c := strings.Compare(a.Code, b.Code); c != 0 {
		return c
	}
	return compareIDs(a.ID, b.ID)
}

// compareIDs orders ids by number: longer ones are greater.
func compareIDs(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// applications finds the applications that the identity may use.
func (s *State) applications(ctx context.Context, q *Question, r *reach) ([]Object, error) {
	ids := map[string]bool{}
	for _, step := range r.steps {
		for about, rules := range step.grants.All() {
			if err := q.Work.spend(ctx, 1); err != nil {
				return nil, err
			}
			if about.kind == application && allowing(rules) && (q.ApplicationID == "" || q.ApplicationID == about.id) {
				ids[about.id] = true
			}
		}
	}
	var found []Object
	for id := range ids {
		each := *q
		each.ApplicationID = id
		rule, denied, err := s.decide(ctx, &each, r)
		if err != nil {
			return nil, err
		}
		if rule.rule != nil && !denied {
			found = append(found, Object{ApplicationID: id})
		}
	}
	slices.SortFunc(found, compareApplications)
	return found, nil
}

// allowing reports whether one of the rules allows.
func allowing(rules []*Rule) bool {
	return slices.ContainsFunc(rules, func(r *Rule) bool { return !r.Deny })
}

// candidates are the resources of the question's application and type that an allowing rule is about which reaches the
// identity, in the order of codes. They are kept in the work until the next call.
func (s *State) candidates(ctx context.Context, q *Question, r *reach) ([]*Resource, error) {
	found := q.Work.candidates[:0]
	defer func() { q.Work.candidates = found }()
	looked := 0
	add := func(resource *Resource) error {
		if looked++; looked > MaxSearch {
			return ErrSearch
		}
		if err := q.Work.spend(ctx, 1); err != nil {
			return err
		}
		if resource != nil && resource.Type == q.ObjectType &&
			(resource.ApplicationID == q.ApplicationID || resource.Global) {
			found = append(found, resource)
		}
		return nil
	}
	for _, step := range r.steps {
		for about, rules := range step.grants.All() {
			if err := q.Work.spend(ctx, 1); err != nil {
				return nil, err
			}
			if !allowing(rules) {
				continue
			}
			if err := s.concerned(about, rules, add); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(found, compareResources)
	return slices.Compact(found), nil
}

// concerned calls fn with the resources that the rules with a target are about, and with nil for others examined.
func (s *State) concerned(about target, rules []*Rule, fn func(*Resource) error) error {
	switch about.kind {
	case oneResource:
		return fn(s.resources.Get(about.id))
	case setOf:
		for _, m := range s.members.Get(about.id).All() {
			if err := fn(s.resources.Get(m.ResourceID)); err != nil {
				return err
			}
		}
	case allResources, patternOf:
		for _, resource := range s.owned.Get(about.id).All() {
			matches := about.kind == allResources || slices.ContainsFunc(rules,
				func(r *Rule) bool { return Match(r.Code, resource.Code) })
			if !matches {
				resource = nil // it counts as examined
			}
			if err := fn(resource); err != nil {
				return err
			}
		}
	case application:
	}
	return nil
}

// Actions finds the actions that the identity of a question may do with its object. An error is one of Check's.
func (s *State) Actions(ctx context.Context, q *Question) ([]string, error) {
	if q.Work == nil {
		q.Work = NewWork(nil)
		defer q.endWork()
	}
	r, known := q.Work.reached(s, q.Identity)
	if !known || r.disabled {
		return nil, nil
	}
	if r.full {
		return nil, ErrReach
	}
	if q.resource = s.Resource(q); q.resource == nil {
		return nil, nil
	}
	return s.actions(ctx, q, r)
}

// actions are the actions that the identity may do with the question's resource.
func (s *State) actions(ctx context.Context, q *Question, r *reach) ([]string, error) {
	var may []string
	each := *q
	for _, name := range q.resource.Actions {
		each.Action = name
		ok, err := s.may(ctx, &each, r)
		if err != nil {
			return nil, err
		}
		if ok {
			may = append(may, name)
		}
	}
	return may, nil
}

// may reports whether the identity may do the question's action with its resource.
func (s *State) may(ctx context.Context, q *Question, r *reach) (bool, error) {
	if !q.resource.knows(q.Action) {
		return false, nil
	}
	found, denied, err := s.decide(ctx, q, r)
	return found.rule != nil && !denied, err
}

// Identities finds the identities of a type that may do what a question asks about, in the order of ids. The question's
// own identity is ignored. An error is one of Check's.
func (s *State) Identities(ctx context.Context, q *Question, kind string) ([]Identity, error) {
	if s.find(q) != "" {
		return nil, nil
	}
	if q.Work == nil {
		q.Work = NewWork(nil)
		defer q.endWork()
	}
	candidates := map[string]bool{}
	looked := 0
	look := func() error { return q.Work.spend(ctx, 1) }
	add := func(id string) error {
		if looked++; looked > MaxSearch {
			return ErrSearch
		}
		candidates[id] = true
		return look()
	}
	for _, aim := range s.targets(q, &reach{}) {
		for rule := range s.granting.Get(aim.target).All() {
			if err := look(); err != nil {
				return nil, err
			}
			unit := s.units.Get(rule.UnitID)
			if unit == nil || rule.Deny {
				continue
			}
			if err := s.expand(unit.Identity, kind, look, add); err != nil {
				return nil, err
			}
		}
	}
	var found []Identity
	for id := range candidates {
		each := *q
		each.Identity = Identity{kind, id}
		d, err := s.Check(ctx, &each)
		if err != nil {
			return nil, err
		}
		if d.Allowed {
			found = append(found, each.Identity)
		}
	}
	slices.SortFunc(found, func(a, b Identity) int { return compareIDs(a.ID, b.ID) })
	return found, nil
}

// expand calls add with the identities of a type that the grants of an identity reach, and look for each place that it
// looks at on the way.
func (s *State) expand(from Identity, kind string, look func() error, add func(id string) error) error {
	if from.Type == Everyone {
		return s.every(kind, look, add)
	}
	if from.Type == kind {
		if err := add(from.ID); err != nil {
			return err
		}
	}
	switch {
	case from.Type == Group && kind == User:
		for _, m := range s.inGroup.Get(s.unitOf.Get(from).unit).All() {
			if err := add(m.UserID); err != nil {
				return err
			}
		}
	case from.Type == Node:
		return s.below(from.ID, kind, look, add)
	case from.Type == CoreObject:
		if tree := s.trees.Get(from.ID); tree != nil {
			for root := range s.roots.Get(tree.Code).All() {
				if err := s.below(root, kind, look, add); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// below calls look for each node of a subtree and of what its pointers stand for, and add with the nodes, or with the
// users who belong to them.
func (s *State) below(nodeID, kind string, look func() error, add func(id string) error) error {
	seen := map[string]bool{nodeID: true}
	for todo := []string{nodeID}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if err := look(); err != nil {
			return err
		}
		if kind == Node {
			if err := add(id); err != nil {
				return err
			}
		}
		if kind == User {
			for _, m := range s.holding.Get(id).All() {
				if err := add(m.UserID); err != nil {
					return err
				}
			}
		}
		next := func(id string) {
			if !seen[id] {
				seen[id] = true
				todo = append(todo, id)
			}
		}
		for child := range s.children.Get(id).All() {
			next(child)
		}
		if node := s.node(id); node != nil && node.PointerID != "" {
			next(node.PointerID)
		}
	}
	return nil
}

// every calls add with all identities of a type, and look for each place where there may be one.
func (s *State) every(kind string, look func() error, add func(id string) error) error {
	var err error
	all := func(id string) bool { err = add(id); return err == nil }
	switch kind {
	case User:
		for id := range s.people.All() {
			if !all(id) {
				break
			}
		}
	case Node:
		for id := range s.places.numbers.All() {
			if err = look(); err != nil || s.node(id) != nil && !all(id) {
				break
			}
		}
	case CoreObject:
		for id := range s.trees.All() {
			if !all(id) {
				break
			}
		}
	case Application:
		for id := range s.callers.All() {
			if !all(id) {
				return err
			}
		}
		fallthrough
	default:
		for who := range s.unitOf.All() {
			if err = look(); err != nil || who.Type == kind && !all(who.ID) {
				break
			}
		}
	}
	return err
}
