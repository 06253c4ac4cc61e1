package engine

import (
	"slices"
	"strconv"
	"strings"
)

// Privilege is a rule that reaches an identity, with one object that it is about.
type Privilege struct {
	Rule      *Rule
	Identity  Identity
	Name      string // of the identity
	Inherited bool   // the rule is another identity's

	ObjectType, ObjectID, ObjectCode, ObjectName string

	Actions []string
}

// By is an order of privileges, which are texts of them.
type By struct {
	Member string // one of PrivilegeMembers
	Desc   bool
}

func (b By) isNumber() bool { return strings.HasSuffix(b.Member, "_id") || b.Member == byCreation }

// PrivilegeMembers are what privileges can be ordered by, the default order first.
var PrivilegeMembers = []string{"rule_id", "identity_id", "identity_type", "identity_name", "application_id",
	"object_type", "object_id", "object_code", "object_name", "affect", "auth_unit_id", "inherited_from",
	byCreation}

// byCreation is the order of the times at which rules were created. Privileges do not show them.
const byCreation = "time_created"

func (p *Privilege) member(name string) string {
	switch name {
	case "identity_id":
		return p.Identity.ID
	case "identity_type":
		return p.Identity.Type
	case "identity_name":
		return p.Name
	case "application_id":
		return p.Rule.ApplicationID
	case "object_type":
		return p.ObjectType
	case "object_id":
		return p.ObjectID
	case "object_code":
		return p.ObjectCode
	case "object_name":
		return p.ObjectName
	case "affect":
		return effect(p.Rule.Deny)
	case byCreation:
		return strconv.FormatInt(p.Rule.Created, 10)
	case "auth_unit_id":
		return p.Rule.UnitID
	case "inherited_from":
		if !p.Inherited {
			return ""
		}
		return p.Rule.UnitID
	}
	return p.Rule.ID
}

func effect(deny bool) string {
	if deny {
		return "deny"
	}
	return "affect"
}

// Key is the place of a privilege in an order.
func (p *Privilege) Key(by []By) []string {
	key := make([]string, 0, len(by)+ties)
	for _, b := range by {
		key = append(key, p.member(b.Member))
	}
	return append(key, p.Rule.ID, p.ObjectID, p.Identity.Type, p.Identity.ID)
}

// ties is how many members decide at the end of a Key.
const ties = 4

// compareKeys compares keys of an order.
func compareKeys(by []By, a, b []string) int {
	for i := range a {
		var c int
		if i < len(by) && !by[i].isNumber() || i >= len(by)+2 {
			c = strings.Compare(a[i], b[i])
		} else {
			c = compareIDs(a[i], b[i])
		}
		if c != 0 && i < len(by) && by[i].Desc {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
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
