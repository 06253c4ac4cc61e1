package rest

import (
	"bytes"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
)

// Unknown members of a body are found, and removed, while the body's structure is checked, so that the rest of the
// request can be looked at (faults.go).

// shape describes which members the objects of a JSON value may have. A nil shape does not restrict them.
type shape struct {
	object  bool
	members map[string]*shape
	open    bool   // members with other names are allowed, too
	others  *shape // the shape of members with other names
	items   *shape // the shape of an array's items
}

func shapeOf(r huma.Registry, s *huma.Schema, seen map[*huma.Schema]*shape) *shape {
	if s != nil && s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	if s == nil {
		return nil
	}
	if known, ok := seen[s]; ok {
		return known
	}
	found := &shape{}
	seen[s] = found
	switch {
	case s.Items != nil:
		found.items = shapeOf(r, s.Items, seen)
	case s.Properties != nil || s.AdditionalProperties != nil:
		found.object, found.open = true, true
		found.members = make(map[string]*shape, len(s.Properties))
		for name, member := range s.Properties {
			found.members[name] = shapeOf(r, member, seen)
		}
		switch others := s.AdditionalProperties.(type) {
		case bool:
			found.open = others
		case *huma.Schema:
			found.others = shapeOf(r, others, seen)
		}
	}
	return found
}

// member returns the shape of an object's member, and whether the object may have it.
func (s *shape) member(name string) (of *shape, known bool) {
	if s == nil || !s.object {
		return nil, true
	}
	if of, known = s.members[name]; known {
		return of, true
	}
	return s.others, s.open
}

// without removes the unknown members from a valid JSON text.
func (s *shape) without(text json.RawMessage) json.RawMessage {
	if s == nil {
		return text
	}
	var left any
	switch first := bytes.TrimLeft(text, " \t\r\n"); {
	case first[0] == '{' && s.object:
		members := map[string]json.RawMessage{}
		_ = json.Unmarshal(text, &members)
		for name, value := range members {
			if of, known := s.member(name); known {
				members[name] = of.without(value)
			} else {
				delete(members, name)
			}
		}
		left = members
	case first[0] == '[' && s.items != nil:
		var items []json.RawMessage
		_ = json.Unmarshal(text, &items)
		for i, item := range items {
			items[i] = s.items.without(item)
		}
		left = items
	default:
		return text
	}
	var b bytes.Buffer
	_ = encodeJSON(&b, left)
	return b.Bytes()
}
