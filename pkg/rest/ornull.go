package rest

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// OrNull describes a member that is an object with the schema of W, or null. It stands for W in types that only
// describe records and bodies: huma has no null for an object that others refer to.
type OrNull[W any] struct{}

func (OrNull[W]) wraps() reflect.Type { return reflect.TypeFor[W]() }

// Schema returns the schema of W, which null has, too.
func (OrNull[W]) Schema(r huma.Registry) *huma.Schema {
	s := huma.SchemaFromType(r, reflect.TypeFor[W]())
	s.Nullable = true
	return s
}
