package rest

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// wrapper is implemented by bodies that encode to the JSON of another type.
type wrapper interface{ wraps() reflect.Type }

func (Raw[W]) wraps() reflect.Type        { return reflect.TypeFor[W]() }
func (Public[W]) wraps() reflect.Type     { return reflect.TypeFor[W]() }
func (Record[W]) wraps() reflect.Type     { return reflect.TypeFor[W]() }
func (List[W]) wraps() reflect.Type       { return reflect.TypeFor[W]() }
func (Pieces[W]) wraps() reflect.Type     { return reflect.TypeFor[W]() }
func (JSON[W]) wraps() reflect.Type       { return reflect.TypeFor[W]() }
func (OrEvents[B]) wraps() reflect.Type   { return reflect.TypeFor[B]() }
func (MergePatch[W]) wraps() reflect.Type { return reflect.TypeFor[W]() }

// mustBeWhole panics if one of the types, or a type it contains, embeds a struct of an unexported type, or two structs
// with fields of one name that have different names in JSON. encoding/json encodes the members of such structs but huma
// overlooks them: they would be unknown in bodies, unread in paths and queries, and missing in the document.
func mustBeWhole(operation string, types ...reflect.Type) {
	seen := map[reflect.Type]bool{reflect.TypeFor[http.Request](): true}
	var check func(reflect.Type)
	check = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		if t.Kind() == reflect.Pointer { // a nil pointer has the methods of its element, but no value for them
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
			mustDiffer(operation, t)
			for f := range t.Fields() {
				if f.Anonymous && !f.IsExported() && deref(f.Type).Kind() == reflect.Struct {
					panic(fmt.Sprintf("%s: %v embeds %v, which must be exported: huma overlooks it otherwise",
						operation, t, f.Type))
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

// mustDiffer panics if fields of structs that t embeds have one name in Go and several in JSON.
func mustDiffer(operation string, t reflect.Type) {
	known := map[string]string{}
	var fields func(reflect.Type)
	fields = func(of reflect.Type) {
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && name == "" && deref(f.Type).Kind() == reflect.Struct {
				fields(deref(f.Type))
			} else if is := known[f.Name]; is != "" && is != "-" && name != "" && name != is {
				panic(fmt.Sprintf("%s: %v embeds two fields %s, for %s and for %s: huma overlooks one",
					operation, t, f.Name, is, name))
			} else if name != "" {
				known[f.Name] = name
			}
		}
	}
	fields(t)
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
