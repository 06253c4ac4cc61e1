package rest

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// exampleOf is the example of a body: the one that the operation gives, otherwise one made from the examples and values
// of the schema's members.
func exampleOf(r huma.Registry, s *huma.Schema, given any) any {
	if given != nil {
		return given
	}
	return example{r, nil}.of(s)
}

// example makes an example of a schema. inside are the schemas that it is in, which may have lists of themselves.
type example struct {
	schemas huma.Registry
	inside  []string
}

func (e example) of(s *huma.Schema) any {
	if s.Ref != "" && len(s.Examples) == 0 {
		e.inside = append(slices.Clip(e.inside), s.Ref)
		s = e.schemas.SchemaFromRef(s.Ref)
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
		return e.object(s)
	case huma.TypeArray:
		if s.Items.Ref != "" && !slices.Contains(e.inside, s.Items.Ref) || len(s.Items.Examples) > 0 {
			return []any{e.of(s.Items)}
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

// object has the members that are required, and those that have an example, unless they are read-only.
func (e example) object(s *huma.Schema) any {
	members := map[string]any{}
	for name, member := range s.Properties {
		if slices.Contains(s.Required, name) || len(member.Examples) > 0 && !member.ReadOnly {
			members[name] = e.of(member)
		}
	}
	return members
}
