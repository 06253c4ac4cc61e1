package rest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// parametersOf tells which members of an operation's input are parameters of the query or the path, by their names.
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

// placed is err with its faults where the request has the members that they name.
func (op *Op) placed(err error) error {
	switch apperr.KindOf(err) {
	case apperr.InvalidParameters, apperr.AlreadyExists:
		return apperr.Relocate(err, op.place)
	}
	return err // faults of other kinds name what stands in the way
}

// place is where in the request a member stands: among the parameters, else in the body. A location that begins with a
// part of the request is one already.
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

// hasMember reports whether the JSON body declares a member of that name.
func (op *Op) hasMember(name string) bool {
	if op.shape == nil {
		return false
	}
	_, ok := op.shape.members[name]
	return ok
}
