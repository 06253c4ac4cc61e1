// Package enginetest answers who may do what by examining every record, so that tests can compare the engine with it.
package enginetest

import (
	"slices"
	"strings"

	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// World holds records by their ids.
type World struct {
	Resources   map[string]*engine.Resource
	Sets        map[string]*engine.Set
	Members     map[string]*engine.Member
	Units       map[string]*engine.Unit
	Groups      map[string]*engine.GroupMember
	Rules       map[string]*engine.Rule
	People      map[string]*engine.Person
	Callers     map[string]*engine.Caller
	Nodes       map[string]*engine.TreeNode
	Trees       map[string]*engine.Tree
	Memberships map[string]*engine.Membership
}

// NewWorld makes an empty world.
func NewWorld() *World {
	return &World{
		map[string]*engine.Resource{}, map[string]*engine.Set{}, map[string]*engine.Member{},
		map[string]*engine.Unit{}, map[string]*engine.GroupMember{}, map[string]*engine.Rule{},
		map[string]*engine.Person{}, map[string]*engine.Caller{},
		map[string]*engine.TreeNode{}, map[string]*engine.Tree{},
		map[string]*engine.Membership{},
	}
}

// Closed reports whether a node or one above it is disabled.
func (w *World) Closed(id string) bool {
	node := w.Nodes[id]
	return node != nil && (node.Disabled || w.Closed(node.ParentID))
}

// Reaches reports whether what is granted to unit reaches an identity.
func (w *World) Reaches(unit, who engine.Identity) bool {
	return w.reaches(unit, who, map[engine.Identity]bool{})
}

func (w *World) reaches(unit, who engine.Identity, seen map[engine.Identity]bool) bool {
	if unit.Type == engine.Everyone {
		return true
	}
	if who.Type == engine.Node && (w.Nodes[who.ID] == nil || w.Closed(who.ID)) || seen[who] {
		return false
	}
	seen[who] = true
	if unit == who {
		return true
	}
	switch who.Type {
	case engine.User:
		for _, m := range w.Groups {
			if m.UserID == who.ID && unit.Type == engine.Group && w.Units[m.UnitID] != nil &&
				w.Units[m.UnitID].Identity == unit {
				return true
			}
		}
		for _, m := range w.Memberships {
			node := engine.Identity{Type: engine.Node, ID: m.NodeID}
			if m.UserID == who.ID && w.reaches(unit, node, seen) {
				return true
			}
		}
	case engine.Node:
		for id, pointer := range w.Nodes {
			if pointer.PointerID == who.ID && w.reaches(unit, engine.Identity{Type: engine.Node, ID: id}, seen) {
				return true
			}
		}
		node := w.Nodes[who.ID]
		if node.ParentID != "" {
			return w.reaches(unit, engine.Identity{Type: engine.Node, ID: node.ParentID}, seen)
		}
		return unit.Type == engine.CoreObject && w.Trees[unit.ID] != nil && w.Trees[unit.ID].Code == node.ObjectCode
	}
	return false
}

// Exists reports whether an identity is known.
func (w *World) Exists(who engine.Identity) bool {
	switch who.Type {
	case engine.User:
		return w.People[who.ID] != nil
	case engine.Node:
		return w.Nodes[who.ID] != nil
	case engine.CoreObject:
		return w.Trees[who.ID] != nil
	}
	for _, u := range w.Units {
		if u.Identity == who {
			return true
		}
	}
	return who.Type == engine.Application && w.Callers[who.ID] != nil
}

func (w *World) resource(q *engine.Question) *engine.Resource {
	var found []*engine.Resource
	for _, r := range w.Resources {
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

// about reports whether a rule is about the action of a question on a resource, which is nil for an application.
func (w *World) about(rule *engine.Rule, q *engine.Question, r *engine.Resource) bool {
	if r == nil || rule.Type == engine.App {
		return r == nil && rule.Type == engine.App && rule.ApplicationID == q.ApplicationID
	}
	if !slices.Contains(rule.Actions, q.Action) && !slices.Contains(rule.Actions, "*") {
		return false
	}
	switch rule.Type {
	case engine.Wildcard:
		return rule.ApplicationID == r.ApplicationID && (rule.Code == "" || glob(rule.Code, r.Code))
	case engine.ResourceSet:
		for _, m := range w.Members {
			if m.SetID == rule.SetID && m.ResourceID == r.ID &&
				(slices.Contains(m.Actions, q.Action) || slices.Contains(m.Actions, "*")) {
				return true
			}
		}
		return false
	}
	return rule.ResourceID == r.ID
}

// glob is engine.Match, written as its definition.
func glob(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return glob(pattern[1:], text) || text != "" && glob(pattern, text[1:])
	}
	return text != "" && (pattern[0] == '?' || pattern[0] == text[0]) && glob(pattern[1:], text[1:])
}

// meets evaluates the conditions that random rules have.
func meets(rule *engine.Rule, q *engine.Question) bool {
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

// Check answers a question.
func (w *World) Check(q *engine.Question) bool {
	if !w.Exists(q.Identity) || q.Identity.Type == engine.User && w.People[q.Identity.ID].Disabled {
		return false
	}
	r := w.resource(q)
	if q.ObjectType != engine.App && (r == nil || !slices.Contains(r.Actions, q.Action)) {
		return false
	}
	allowed := false
	for _, rule := range w.Rules {
		unit := w.Units[rule.UnitID]
		if unit == nil || !w.Reaches(unit.Identity, q.Identity) || !w.about(rule, q, r) || !meets(rule, q) ||
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
