package engine

import (
	"errors"
	"fmt"
	"slices"
)

// Hypothesis is a state with changes that are not made: what Impact compares with the state as it is.
type Hypothesis struct {
	before, after *State

	change  Change               // makes after
	changed map[Identity][]*Rule // granted and revoked rules, by whose they are
	nodes   []string             // those that have another parent or another status
	made    int                  // rules and units
}

// Why a node cannot be moved.
var (
	ErrNoNode    = errors.New("there is no such node")
	ErrOtherTree = errors.New("the parent is not a node of the tree")
	ErrBelow     = errors.New("the parent is the node itself or below it")
)

// Suppose begins a hypothesis, which is for one goroutine.
func (s *State) Suppose() *Hypothesis {
	after := *s
	return &Hypothesis{before: s, after: &after, change: Change{&after, &edit{}}, changed: map[Identity][]*Rule{}}
}

// fresh is an id that no record has: those are numbers.
func (h *Hypothesis) fresh() string {
	h.made++
	return fmt.Sprint("new ", h.made)
}

// Grant adds a rule for an identity, whose unit it makes if there is none. The rule needs no ids.
func (h *Hypothesis) Grant(to Identity, name string, rule Rule) {
	unit := h.after.unitOf.Get(to).unit
	if unit == "" {
		unit = h.fresh()
		h.change.PutUnit(&Unit{ID: unit, Identity: to, Name: name, Sequence: 1})
	}
	rule.ID, rule.UnitID, rule.Sequence = h.fresh(), unit, 1
	h.change.PutRule(&rule)
	h.changed[to] = append(h.changed[to], &rule)
}

// Revoke removes a rule, and reports whether there is one with this id.
func (h *Hypothesis) Revoke(id string) bool {
	rule := h.before.rules.Get(id)
	if rule == nil {
		return false
	}
	h.change.DropRule(id)
	if unit := h.before.units.Get(rule.UnitID); unit != nil {
		h.changed[unit.Identity] = append(h.changed[unit.Identity], rule)
	}
	return true
}

// Move puts a node below another one of its tree, after the moves before it. The error is ErrNoNode, ErrOtherTree or
// ErrBelow.
func (h *Hypothesis) Move(id, parentID string) error {
	node, parent := h.after.node(id), h.after.node(parentID)
	switch {
	case node == nil:
		return ErrNoNode
	case node.ParentID == parentID:
		return nil
	case parent == nil:
		return ErrOtherTree
	}
	from, to := h.after.line(id), h.after.line(parentID)
	switch {
	case slices.Contains(to, from[0]):
		return ErrBelow
	case to[len(to)-1] != from[len(from)-1]:
		return ErrOtherTree
	}
	moved := *node
	moved.ParentID, moved.Sequence = parentID, node.Sequence+1
	h.change.PutNode(&moved)
	h.nodes = append(h.nodes, id)
	return nil
}

// Switch disables or enables a node, and reports whether there is one with this id.
func (h *Hypothesis) Switch(id string, disabled bool) bool {
	node := h.after.node(id)
	if node == nil {
		return false
	}
	if node.Disabled != disabled {
		switched := *node
		switched.Disabled, switched.Sequence = disabled, node.Sequence+1
		h.change.PutNode(&switched)
		h.nodes = append(h.nodes, id)
	}
	return true
}

// line is a node and what is above it, up to the root, by their places.
func (s *State) line(id string) (line []int32) {
	for number := s.places.numbers.Get(id); number > 0; {
		at := s.places.at.At(number)
		if at == nil || at.TreeNode == nil {
			break
		}
		line = append(line, number)
		number = at.parent
	}
	return line
}
