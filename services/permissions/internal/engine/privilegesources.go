package engine

import (
	"context"
	"slices"
)

// ruleSource is a part of the rules of a list, in their order.
type ruleSource struct {
	rules     Rules
	few       []*Rule  // instead of rules, sorted by begin
	who       Identity // whom they reach; zero: each the identity of its unit
	inherited bool
	exact     bool // every rule is one line

	walk *walk
	at   int
	back bool
}

// begin goes to the rule with an id or the next one, or to the first.
func (r *ruleSource) begin(id string, back bool) {
	r.back = back
	if r.few == nil {
		r.walk = r.rules.from(id, back)
		return
	}
	order := func(a, b string) int {
		if back {
			a, b = b, a
		}
		return compareIDs(a, b)
	}
	slices.SortFunc(r.few, func(a, b *Rule) int { return order(a.ID, b.ID) })
	if r.at = 0; id != "" {
		r.at, _ = slices.BinarySearchFunc(r.few, id, func(rule *Rule, id string) int { return order(rule.ID, id) })
	}
}

func (r *ruleSource) rule() *Rule {
	switch {
	case r.few == nil:
		return r.walk.rule()
	case r.at < len(r.few):
		return r.few[r.at]
	}
	return nil
}

func (r *ruleSource) next() {
	if r.at++; r.few == nil {
		r.walk.next()
	}
}

// sources finds the rules that a list can be made of: no fewer, and few others.
func (s *State) sources(ctx context.Context, f *PrivilegeFilter) ([]*ruleSource, error) {
	switch {
	case f.Identity.ID != "":
		return s.reaching(ctx, f)
	case f.Name != "":
		return s.ofName(ctx, f)
	case f.ObjectCode != "":
		return s.ofCode(f), nil
	}
	var all []*ruleSource
	for key, rules := range s.listed.Get(f.ApplicationID).All() {
		if f.Identity.Type != "" && key.grantee != f.Identity.Type || f.Affect != "" && f.Affect != effect(key.deny) {
			continue
		}
		split := f.Expand && key.kind == ResourceSet
		if f.ObjectType != "" && key.kind != f.ObjectType && !split {
			continue
		}
		all = append(all, &ruleSource{rules: rules, exact: !split && !key.bounded})
	}
	return all, nil
}

// reaching are the rules that reach the identities with an id.
func (s *State) reaching(ctx context.Context, f *PrivilegeFilter) ([]*ruleSource, error) {
	var all []*ruleSource
	for _, kind := range []string{User, Node, CoreObject, Application, Group, Everyone} {
		who := Identity{kind, f.Identity.ID}
		if f.Identity.Type != "" && f.Identity.Type != kind {
			continue
		}
		units, err := s.Reaching(who)
		if err != nil {
			return nil, err
		}
		for _, id := range units {
			unit := s.units.Get(id)
			one := &ruleSource{few: []*Rule{}, who: who, inherited: unit == nil || unit.Identity != who}
			if err := s.gather(ctx, f, id, one); err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// gather adds a unit's rules of the application to a source.
func (s *State) gather(ctx context.Context, f *PrivilegeFilter, unitID string, to *ruleSource) error {
	for _, rules := range s.granted.Get(unitID).All() {
		if err := f.Work.spend(ctx, len(rules)); err != nil {
			return err
		}
		for _, rule := range rules {
			if rule.ApplicationID == f.ApplicationID {
				to.few = append(to.few, rule)
			}
		}
	}
	return nil
}

// ofName are the rules of the units of identities with a name.
func (s *State) ofName(ctx context.Context, f *PrivilegeFilter) ([]*ruleSource, error) {
	one := &ruleSource{few: []*Rule{}}
	if id := s.PersonNamed(f.Name); id != "" && (f.Identity.Type == "" || f.Identity.Type == User) {
		if err := s.gather(ctx, f, s.unitOf.Get(Identity{User, id}).unit, one); err != nil {
			return nil, err
		}
	}
	for id, unit := range s.units.All() {
		if err := f.Work.spend(ctx, 1); err != nil {
			return nil, err
		}
		known := unit.Identity.Type == User && s.people.Get(unit.Identity.ID) != nil // by their usernames, see above
		if known || f.Identity.Type != "" && unit.Identity.Type != f.Identity.Type || s.Label(unit.Identity) != f.Name {
			continue
		}
		if err := s.gather(ctx, f, id, one); err != nil {
			return nil, err
		}
	}
	return []*ruleSource{one}, nil
}

// ofCode are the rules about resources and sets with a code, and those about all resources whose codes match patterns.
func (s *State) ofCode(f *PrivilegeFilter) []*ruleSource {
	targets := map[target]bool{{patternOf, f.ApplicationID}: true}
	add := func(resourceID string) { targets[target{oneResource, resourceID}] = true }
	for _, kind := range []string{Data, API, UI} {
		if id := s.codes.Get(objectCode{f.ApplicationID, kind, f.ObjectCode}); id != "" {
			add(id)
		}
		for id := range s.global.Get(objectCode{"", kind, f.ObjectCode}).All() {
			add(id)
		}
	}
	if !f.Expand {
		for id := range s.setCodes.Get(f.ObjectCode).All() {
			targets[target{setOf, id}] = true
		}
	}
	var all []*ruleSource
	if f.Expand { // a global set has resources of its own application
		for key, rules := range s.listed.Get(f.ApplicationID).All() {
			if key.kind == ResourceSet {
				all = append(all, &ruleSource{rules: rules})
			}
		}
	}
	for at := range targets {
		if rules := s.granting.Get(at); rules.Len() > 0 {
			all = append(all, &ruleSource{rules: rules})
		}
	}
	return all
}
