package rest

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Unknown members of a body are found, and removed, while the body's structure is checked, so that the rest of the
// request can be looked at (faults.go).

// shape describes which members the objects of a JSON value may have. A nil shape does not restrict them.
type shape struct {
	integer bool
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
	found := &shape{integer: s.Type == huma.TypeInteger}
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

// integers writes the integers of a valid JSON text as digits alone: 1.0 and 3.6e3 are integers, too (JSON Schema
// 2020-12, validation §4.3 and core §6.3). Other numbers, and objects without such integers, stay as they are.
func (s *shape) integers(text json.RawMessage) (_ json.RawMessage, changed bool) {
	if s == nil {
		return text, false
	}
	inside := func(of *shape, value *json.RawMessage) {
		now, other := of.integers(*value)
		*value, changed = now, changed || other
	}
	var left any
	switch first := bytes.TrimLeft(text, " \t\r\n"); {
	case s.integer:
		return integer(text)
	case first[0] == '{' && s.object:
		members := map[string]json.RawMessage{}
		_ = json.Unmarshal(text, &members)
		for name, value := range members {
			of, _ := s.member(name)
			inside(of, &value)
			members[name] = value
		}
		left = members
	case first[0] == '[' && s.items != nil:
		var items []json.RawMessage
		_ = json.Unmarshal(text, &items)
		for i := range items {
			inside(s.items, &items[i])
		}
		left = items
	}
	if !changed {
		return text, false
	}
	var b bytes.Buffer
	_ = encodeJSON(&b, left)
	return b.Bytes(), true
}

// fraction matches what an integer has if it is not digits alone, with an exponent that is no trap.
var fraction = regexp.MustCompile(`^-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?$`)

func integer(text json.RawMessage) (_ json.RawMessage, changed bool) {
	trimmed := string(bytes.TrimSpace(text))
	if !strings.ContainsAny(trimmed, ".eE") || !fraction.MatchString(trimmed) {
		return text, false
	}
	n, ok := new(big.Rat).SetString(trimmed)
	if !ok || !n.IsInt() {
		return text, false
	}
	return json.RawMessage(n.Num().String()), true
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
