package rest

import (
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// exampleOf is the example of a body: the one that the operation gives, otherwise one made from the examples and values
// of the schema's members.
func exampleOf(r huma.Registry, s *huma.Schema, given any) any {
	if given != nil && !(reflect.ValueOf(given).Kind() == reflect.Slice && reflect.ValueOf(given).IsNil()) {
		return given
	}
	return madeExample(r, s)
}

func madeExample(r huma.Registry, s *huma.Schema) any {
	if s.Ref != "" && len(s.Examples) == 0 {
		s = r.SchemaFromRef(s.Ref)
	}
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Nullable:
		return nil
	}
	switch s.Type {
	case huma.TypeObject:
		members := map[string]any{}
		for name, member := range s.Properties {
			if slices.Contains(s.Required, name) || len(member.Examples) > 0 && !member.ReadOnly {
				members[name] = madeExample(r, member)
			}
		}
		return members
	case huma.TypeArray:
		if item := madeExample(r, s.Items); s.Items.Ref != "" || len(s.Items.Examples) > 0 {
			return []any{item}
		}
		return []any{}
	case huma.TypeInteger, huma.TypeNumber:
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 0
	case huma.TypeBoolean:
		return false
	}
	if s.Format == "date-time" {
		return "2026-01-31T09:30:00.000Z"
	}
	return ""
}
