package rest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// parametersOf returns the members of an operation's input that are parameters of the query or the path, by name.
func parametersOf(input reflect.Type) map[string]string {
	parts := map[string]string{}
	for _, field := range reflect.VisibleFields(input) {
		for _, part := range []string{"query", "path"} {
			if name, _, _ := strings.Cut(field.Tag.Get(part), ","); name != "" {
				parts[name] = part
			}
		}
	}
	return parts
}

// placed returns err with the locations of its faults in the request.
func (op *Op) placed(err error) error {
	if op.SCIM != nil { // its errors name attributes
		return err
	}
	switch apperr.KindOf(err) {
	case apperr.InvalidParameters, apperr.AlreadyExists, apperr.ManagedElsewhere:
		return apperr.Relocate(err, op.place)
	}
	return err // for other kinds, the locations are not about the request
}

// place returns where in the request a member is: among the parameters, otherwise in the body. A location that begins
// with a part of the request stays as it is.
func (op *Op) place(location string) string {
	name := location
	if end := strings.IndexAny(location, ".["); end >= 0 {
		name = location[:end]
	}
	if part, ok := op.parameters[name]; ok {
		return part + "." + location
	}
	if slices.Contains([]string{"body", "query", "path", "header"}, name) && !op.hasMember(name) {
		return location
	}
	if location == "" && !op.writes() {
		return "query"
	}
	return apperr.Below("body", location)
}

// hasMember reports whether the JSON body declares a member with the name.
func (op *Op) hasMember(name string) bool {
	if op.shape == nil {
		return false
	}
	_, ok := op.shape.members[name]
	return ok
}
