package rest

import (
	"maps"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// MembersOf gives a body the members of the record W. A struct that describes what creates or changes a record embeds
// it, and declares only the members that differ: those that are required, and those that the record does not have.
// All others are optional, and read-only ones are ignored, so that clients can send back what they got.
type MembersOf[W any] struct{}

// TransformSchema completes the schema of the struct that embeds MembersOf.
func (MembersOf[W]) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	record := huma.SchemaFromType(r, reflect.TypeFor[W]())
	members := record.Properties
	for _, member := range members {
		if member.ReadOnly {
			member.Enum = nil // an ignored value is not checked
		}
	}
	for name, own := range s.Properties {
		if of := members[name]; of != nil {
			described(own, of)
		}
	}
	maps.Copy(members, s.Properties)
	s.Properties = members
	s.PrecomputeMessages()
	return s
}

// described gives a member the words and the example that the record has for it, unless it has its own.
func described(own, record *huma.Schema) {
	if own.Description == "" {
		own.Description = record.Description
	}
	if len(own.Examples) == 0 {
		own.Examples = record.Examples
	}
}
