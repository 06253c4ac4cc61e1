package engine

import (
	"cmp"
	"context"
	"slices"
)

// PrivilegeFilter selects grants of an application. An empty member means any.
type PrivilegeFilter struct {
	Identity               Identity // with an ID: what reaches it; else the type of those who are granted something
	Name                   string   // of those who are granted something
	ApplicationID          string
	ObjectType, ObjectCode string
	Affect                 string // affect or deny
	Expand                 bool   // list the resources of sets instead of the sets
	Work                   *Work  // the work that the question is part of
}

// Privilege is a rule that reaches an identity, with one object that it is about.
type Privilege struct {
	Rule      *Rule
	Identity  Identity
	Inherited bool // the rule is another identity's

	ObjectType, ObjectID, ObjectCode, ObjectName string

	Actions []string
}

// Privileges lists grants in the order of rules. An error is ErrReach, ErrSearch or that of a pause.
func (s *State) Privileges(ctx context.Context, f PrivilegeFilter) ([]Privilege, error) {
	var found []Privilege
	looked := 0
	add := func(rule *Rule, who Identity, inherited bool) error {
		if looked++; looked > MaxSearch {
			return ErrSearch
		}
		if err := f.Work.spend(ctx, 1); err != nil {
			return err
		}
		if rule.ApplicationID != f.ApplicationID || f.Affect != "" && (f.Affect == "deny") != rule.Deny {
			return nil
		}
		for _, p := range s.privileges(rule, f.Expand) {
			if looked++; looked > MaxSearch {
				return ErrSearch
			}
			if (f.ObjectType == "" || f.ObjectType == p.ObjectType) &&
				(f.ObjectCode == "" || f.ObjectCode == p.ObjectCode) {
				p.Identity, p.Inherited = who, inherited
				found = append(found, p)
			}
		}
		return nil
	}
	err := s.eachRule(ctx, f, add)
	slices.SortFunc(found, func(a, b Privilege) int {
		return cmp.Or(compareIDs(a.Rule.ID, b.Rule.ID), compareIDs(a.ObjectID, b.ObjectID))
	})
	return found, err
}

// eachRule calls fn with the rules that reach the filter's identity, or, without one, with all.
func (s *State) eachRule(ctx context.Context, f PrivilegeFilter,
	fn func(rule *Rule, who Identity, inherited bool) error) error {
	if f.Identity.ID == "" {
		for _, unit := range s.units.All() {
			if err := f.Work.spend(ctx, 1); err != nil {
				return err
			}
			if f.Identity.Type != "" && f.Identity.Type != unit.Identity.Type || f.Name != "" && f.Name != unit.Name {
				continue
			}
			for _, rules := range s.granted.Get(unit.ID).All() {
				for _, rule := range rules {
					if err := fn(rule, unit.Identity, false); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	units, err := s.Reaching(f.Identity)
	if err != nil {
		return err
	}
	for _, id := range units {
		unit := s.units.Get(id)
		for _, rules := range s.granted.Get(id).All() {
			for _, rule := range rules {
				if err := fn(rule, f.Identity, unit == nil || unit.Identity != f.Identity); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// privileges are the objects that a rule is about.
func (s *State) privileges(rule *Rule, expand bool) []Privilege {
	p := Privilege{Rule: rule, ObjectType: rule.Type, Actions: rule.Actions}
	switch rule.Type {
	case App:
		p.ObjectID = rule.ApplicationID
	case Wildcard:
		p.ObjectCode = rule.Code
	case ResourceSet:
		if expand {
			return s.expanded(rule)
		}
		p.ObjectID = rule.SetID
		if set := s.sets.Get(rule.SetID); set != nil {
			p.ObjectCode, p.ObjectName = set.Code, set.Name
		}
	default:
		p.ObjectID = rule.ResourceID
		if r := s.resources.Get(rule.ResourceID); r != nil {
			p.ObjectCode, p.ObjectName = r.Code, r.Name
		}
	}
	return []Privilege{p}
}

// expanded are the resources of a rule's set, each with the actions that both the rule and the set are about.
func (s *State) expanded(rule *Rule) []Privilege {
	var all []Privilege
	for _, m := range s.members.Get(rule.SetID).All() {
		r := s.resources.Get(m.ResourceID)
		if r == nil {
			continue
		}
		actions := both(rule.Actions, m.Actions)
		if len(actions) > 0 {
			all = append(all, Privilege{Rule: rule, ObjectType: r.Type, ObjectID: r.ID, ObjectCode: r.Code,
				ObjectName: r.Name, Actions: actions})
		}
	}
	return all
}

// both are the actions in both lists.
func both(a, b []string) []string {
	switch {
	case slices.Contains(a, Any):
		return b
	case slices.Contains(b, Any):
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(action string) bool { return !slices.Contains(b, action) })
}
