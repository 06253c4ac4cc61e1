package rest

import (
	"maps"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/secret"
)

// MembersOf gives a body the members of the record W. A struct that describes what creates or changes a record embeds
// it, and declares only the members that differ: those that are required, and those that the record does not have.
// All others are optional, and read-only ones are ignored, so that clients can send back what they got.
type MembersOf[W any] struct{}

// TransformSchema completes the schema of the struct that embeds MembersOf.
func (MembersOf[W]) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	members := inputOf(r, reflect.TypeFor[W]()).Properties
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

// Input describes the body that creates a record of T, or replaces one: its members, of which only those tagged
// required:"true" are required; read-only ones are ignored, so that clients can send back what they got. The tag
// changedBy:"lock-user unlock-user" names the only operations that change a member: x-changed-by in the document.
type Input[T any] struct{}

// Schema returns the schema of the body. It has the name of the record's, with Input.
func (Input[T]) Schema(r huma.Registry) *huma.Schema {
	record := reflect.TypeFor[T]()
	ref := r.Schema(record, true, "").Ref + "Input"
	if name := strings.TrimPrefix(ref, schemaPath); r.Map()[name] == nil {
		r.Map()[name] = inputOf(r, record)
	}
	return &huma.Schema{Ref: ref}
}

func inputOf(r huma.Registry, record reflect.Type) *huma.Schema {
	s := huma.SchemaFromType(r, record)
	for _, member := range s.Properties {
		if member.ReadOnly {
			member.Enum = nil // an ignored value is not checked
		}
	}
	s.Required = nil
	for _, field := range reflect.VisibleFields(record) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Tag.Get("required") == "true" {
			s.Required = append(s.Required, name)
		}
		if operations := strings.Fields(field.Tag.Get("changedBy")); len(operations) > 0 {
			s.Properties[name].Extensions = map[string]any{"x-changed-by": operations}
		}
		if field.Type == reflect.TypeFor[secret.Text]() {
			s.Properties[name].WriteOnly = !s.Properties[name].ReadOnly
		}
	}
	s.PrecomputeMessages()
	return s
}
