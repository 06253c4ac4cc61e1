package resource

import (
	"strings"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Get returns what is at a path of a resource in canonical form; nil if nothing is. Of an attribute of an open
// extension, whose names are as sent, the name is compared in any case.
func Get(r Object, p schema.Path) any {
	if p.Extension != "" {
		extension, _ := r[p.Extension].(Object)
		if p.Attribute == nil {
			return orNil(extension)
		}
		r = extension
	}
	v := Member(r, p.Attribute)
	if p.Sub == nil {
		return v
	}
	o, _ := v.(Object)
	return Member(o, p.Sub)
}

func orNil(o Object) any {
	if o == nil {
		return nil
	}
	return o
}

// Member returns the member of an object in canonical form that an attribute names.
func Member(o Object, a *schema.Attribute) any { return o[Key(o, a)] }

// Key is the name under which an object has an attribute, or will have it.
func Key(o Object, a *schema.Attribute) string {
	if a.Type != schema.Any {
		return a.Name
	}
	if _, has := o[a.Name]; has {
		return a.Name
	}
	for _, name := range sorted(o) {
		if strings.EqualFold(name, a.Name) {
			return name
		}
	}
	return a.Name
}

// Schemas are the URNs of the schemas of a resource: the core one, and the extensions that it has members of.
func Schemas(kind *schema.Resource, r Object) []any {
	urns := []any{kind.Core.ID}
	for _, s := range kind.Extensions {
		if o, is := r[s.ID].(Object); is && len(o) > 0 {
			urns = append(urns, s.ID)
		}
	}
	return urns
}
