package engine

import (
	"slices"
	"strings"
)

// world holds the same records as a State, in maps, and answers by looking at all of them. It is what the engine is
// compared with.
type world struct {
	resources   map[string]*Resource
	sets        map[string]*Set
	members     map[string]*Member
	units       map[string]*Unit
	groups      map[string]*GroupMember
	rules       map[string]*Rule
	people      map[string]*Person
	nodes       map[string]*TreeNode
	trees       map[string]*Tree
	memberships map[string]*Membership
}

// reaches tells whether what is granted to unit reaches an identity.
func (w *world) reaches(unit, who Identity) bool {
	if unit == who || unit.Type == Everyone {
		return true
	}
	switch who.Type {
	case User:
		for _, m := range w.groups {
			if m.UserID == who.ID && unit.Type == Group && w.units[m.UnitID] != nil &&
				w.units[m.UnitID].Identity == unit {
				return true
			}
		}
		for _, m := range w.memberships {
			if m.UserID == who.ID && w.nodes[m.NodeID] != nil && w.reaches(unit, Identity{Node, m.NodeID}) {
				return true
			}
		}
	case Node:
		node := w.nodes[who.ID]
		if node.ParentID != "" {
			return w.nodes[node.ParentID] != nil && w.reaches(unit, Identity{Node, node.ParentID})
		}
		return unit.Type == CoreObject && w.trees[unit.ID] != nil && w.trees[unit.ID].Code == node.ObjectCode
	}
	return false
}

func (w *world) known(who Identity) bool {
	switch who.Type {
	case User:
		return w.people[who.ID] != nil
	case Node:
		return w.nodes[who.ID] != nil
	case CoreObject:
		return w.trees[who.ID] != nil
	}
	for _, u := range w.units {
		if u.Identity == who {
			return true
		}
	}
	return false
}

func (w *world) resource(q *Question) *Resource {
	var found []*Resource
	for _, r := range w.resources {
		if r.Type == q.ObjectType && r.Code == q.ObjectCode && r.ApplicationID == q.ApplicationID {
			return r
		}
		if r.Type == q.ObjectType && r.Code == q.ObjectCode && r.Global {
			found = append(found, r)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return nil
}

// about tells whether a rule is about the action of a question on a resource, which is nil for an application.
func (w *world) about(rule *Rule, q *Question, r *Resource) bool {
	if r == nil || rule.Type == App {
		return r == nil && rule.Type == App && rule.ApplicationID == q.ApplicationID
	}
	if !slices.Contains(rule.Actions, q.Action) && !slices.Contains(rule.Actions, "*") {
		return false
	}
	switch rule.Type {
	case Wildcard:
		return rule.ApplicationID == r.ApplicationID && (rule.Code == "" || glob(rule.Code, r.Code))
	case ResourceSet:
		for _, m := range w.members {
			if m.SetID == rule.SetID && m.ResourceID == r.ID &&
				(slices.Contains(m.Actions, q.Action) || slices.Contains(m.Actions, "*")) {
				return true
			}
		}
		return false
	}
	return rule.ResourceID == r.ID
}

// glob is Match, by the definition.
func glob(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return glob(pattern[1:], text) || text != "" && glob(pattern, text[1:])
	}
	return text != "" && (pattern[0] == '?' || pattern[0] == text[0]) && glob(pattern[1:], text[1:])
}

// meets evaluates the three conditions that random rules have.
func meets(rule *Rule, q *Question) bool {
	if rule.Condition == nil {
		return true
	}
	level := strings.TrimSuffix(strings.TrimPrefix(string(q.Context), `{"level":`), "}")
	switch {
	case rule.Condition.Text == "resource.code != 'a'":
		return q.ObjectCode != "a"
	case level == "":
		return rule.Deny // there is no context.level
	case rule.Condition.Text == "context.level > 5":
		return level > "5"
	}
	return level == "3"
}

func (w *world) check(q *Question) bool {
	if !w.known(q.Identity) {
		return false
	}
	r := w.resource(q)
	if q.ObjectType != App && (r == nil || len(r.Actions) > 0 && !slices.Contains(r.Actions, q.Action)) {
		return false
	}
	allowed := false
	for _, rule := range w.rules {
		unit := w.units[rule.UnitID]
		if unit == nil || !w.reaches(unit.Identity, q.Identity) || !w.about(rule, q, r) || !meets(rule, q) ||
			q.Now < rule.From || rule.To != 0 && q.Now >= rule.To {
			continue
		}
		if rule.Deny {
			return false
		}
		allowed = true
	}
	return allowed
}
