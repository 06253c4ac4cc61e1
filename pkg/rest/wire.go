package rest

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// wrapper is a body that stands for another type's JSON.
type wrapper interface{ wraps() reflect.Type }

func (Raw[W]) wraps() reflect.Type        { return reflect.TypeFor[W]() }
func (Public[W]) wraps() reflect.Type     { return reflect.TypeFor[W]() }
func (Record[W]) wraps() reflect.Type     { return reflect.TypeFor[W]() }
func (List[W]) wraps() reflect.Type       { return reflect.TypeFor[W]() }
func (JSON[W]) wraps() reflect.Type       { return reflect.TypeFor[W]() }
func (MergePatch[W]) wraps() reflect.Type { return reflect.TypeFor[W]() }

// mustBeWhole panics where one of the types, or one that it is made of, embeds a struct whose type is not exported: encoding/json knows
// its members, huma overlooks them, so they would be unknown in bodies, unread in paths and queries, and missing in the document.
func mustBeWhole(operation string, types ...reflect.Type) {
	seen := map[reflect.Type]bool{reflect.TypeFor[http.Request](): true}
	var check func(reflect.Type)
	check = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		if t.Kind() == reflect.Pointer { // a nil one has the methods of what it points to, and no value for them
			check(t.Elem())
			return
		}
		switch w := reflect.Zero(t).Interface().(type) {
		case wrapper:
			check(w.wraps())
			return
		case huma.SchemaProvider:
			return
		}
		switch t.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map:
			check(t.Elem())
		case reflect.Struct:
			for f := range t.Fields() {
				if f.Anonymous && !f.IsExported() && deref(f.Type).Kind() == reflect.Struct {
					panic(fmt.Sprintf("%s: %v embeds %v, which must be exported to be seen", operation, t, f.Type))
				}
				if f.IsExported() && f.Tag.Get("json") != "-" {
					check(f.Type)
				}
			}
		}
	}
	for _, t := range types {
		check(t)
	}
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
