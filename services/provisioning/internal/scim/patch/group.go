package patch

import (
	"reflect"
	"strings"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Members is a change of the members of a group, which does not depend on who is one.
type Members struct {
	// All says that nobody who was a member before stays one, unless Add has him.
	All    bool
	Add    []string // ids, each once, in the order in which they are sent
	Remove []string // ids, each once, none of which is in Add; empty if All
}

// Group applies the operations of a request to a group as User does to a user. r is the group without its members, and
// so is what is returned; the change of its members is apart.
func Group(kind *schema.Resource, r resource.Object, operations []Operation, ignored *resource.Ignored,
) (changed resource.Object, differs bool, change Members, err error) {
	p := patcher{kind: kind, r: resource.Clone(r), ignored: ignored, members: &members{state: map[string]int{}}}
	if err := p.all(operations); err != nil {
		return nil, false, Members{}, err
	}
	return p.r, !reflect.DeepEqual(p.r, r), p.members.change(), nil
}

// members collects what operations do to members.
type members struct {
	all   bool
	ids   []string // as they came
	state map[string]int
}

const (
	added   = 1
	removed = 2
)

func (m *members) apply(t filter.Target, op Operation) error {
	if t.Path.Sub != nil {
		return scim.Invalid(scim.InvalidPath, "path", "names a part of members; they are added and removed as a whole")
	}
	if t.Filter != nil {
		if op.Op != Remove {
			return scim.Invalid(scim.Mutability, "path", "selects members to change; they are only added and removed")
		}
		return m.removeSelected(t.Filter)
	}
	if op.Op == Replace || op.Op == Remove && op.Value == nil {
		m.reset()
	}
	if op.Value == nil {
		return nil
	}
	ids, err := MemberIDs(op.Value)
	if err != nil {
		return err
	}
	as := added
	if op.Op == Remove {
		as = removed
	}
	for _, id := range ids {
		m.note(id, as)
	}
	return nil
}

func (m *members) reset() { m.all, m.ids, m.state = true, nil, map[string]int{} }

func (m *members) note(id string, as int) {
	if m.state[id] == 0 {
		m.ids = append(m.ids, id)
	}
	m.state[id] = as
}

// MemberIDs are the ids of members as a client sends them: a list of objects, or one. Its errors have type
// invalidValue: only users can be members.
func MemberIDs(v any) ([]string, error) {
	var items []any
	if v != nil {
		items = listOf(v)
	}
	ids := make([]string, 0, len(items))
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		o := asObject(item)
		id, _ := member(o, "value").(string)
		if id == "" {
			return nil, scim.Invalid(scim.InvalidValue, "members",
				"must be a list of objects with the id of a user as value")
		}
		if kind := member(o, "type"); kind != nil {
			if s, is := kind.(string); !is || !strings.EqualFold(s, "User") {
				return nil, scim.Invalid(scim.InvalidValue, "members", "must be users")
			}
		}
		if !seen[id] {
			ids = append(ids, id)
		}
		seen[id] = true
	}
	return ids, nil
}

// removeSelected removes the members that a filter selects: those that it names by value, or all.
func (m *members) removeSelected(n filter.Node) error {
	var named []string
	unclear := false
	filter.Paths(n, func(p schema.Path, c *filter.Compare) {
		id, isText := c.Value.(string)
		switch byID := p.Attribute.Name == "value"; {
		case byID && c.Op == filter.Equal && isText:
			named = append(named, id)
		case byID, p.Attribute.Name != "type":
			unclear = true
		}
	})
	others := filter.Match(n, resource.Object{"value": "", "type": "User"})
	switch {
	case unclear || others && len(named) > 0:
		return scim.Invalid(scim.InvalidFilter, "path", "must select members by eq of their value")
	case others:
		m.reset()
	}
	for _, id := range named {
		if filter.Match(n, resource.Object{"value": id, "type": "User"}) {
			m.note(id, removed)
		}
	}
	return nil
}

func (m *members) change() Members {
	c := Members{All: m.all}
	for _, id := range m.ids {
		switch {
		case m.state[id] == added:
			c.Add = append(c.Add, id)
		case !m.all:
			c.Remove = append(c.Remove, id)
		}
	}
	return c
}
