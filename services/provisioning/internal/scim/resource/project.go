package resource

import (
	"strings"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Projection selects the attributes of an answer (RFC 7644 §3.9). The zero value selects what is returned by default.
type Projection struct {
	only    bool // what is named in include, beside what is always returned
	include map[string]bool
	exclude map[string]bool
}

// Project makes the projection of the parameters attributes and excludedAttributes: paths joined by commas. Both may be
// given; what is in both is left out. Unknown paths select nothing.
func Project(kind *schema.Resource, attributes, excluded []string) Projection {
	p := Projection{include: map[string]bool{}, exclude: map[string]bool{}}
	for _, path := range split(attributes) {
		p.only = true
		if found, is := kind.Find(path); is {
			p.include[key(found)] = true
		}
	}
	for _, path := range split(excluded) {
		if found, is := kind.Find(path); is {
			p.exclude[key(found)] = true
		}
	}
	return p
}

// split takes lists that are lists of lists: attributes=a,b&attributes=c.
func split(lists []string) []string {
	var paths []string
	for _, list := range lists {
		for path := range strings.SplitSeq(list, ",") {
			if path = strings.TrimSpace(path); path != "" {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// key is the path in lower case: names in open extensions have no canonical case.
func key(p schema.Path) string { return strings.ToLower(p.String()) }

// IsDefault reports whether the request asked for no selection.
func (p Projection) IsDefault() bool { return !p.only && len(p.exclude) == 0 }

// Has reports whether the answer has an attribute, at least in part, so that what it does not have need not be looked
// up.
func (p Projection) Has(path schema.Path) bool {
	if path.Attribute == nil {
		return p.extension(path.Extension)
	}
	return p.wants(path) || hasPart(p.include, path) && !p.exclude[key(path)]
}

// HasWhole reports whether the answer has an attribute with all its sub-attributes.
func (p Projection) HasWhole(path schema.Path) bool { return p.Has(path) && !p.inPart(path) }

// wants reports whether the answer has the whole of what path names, as far as it is not excluded in part.
func (p Projection) wants(path schema.Path) bool {
	leaf := path.Leaf()
	switch {
	case leaf.Hidden():
		return false
	case leaf.Returned == schema.Always:
		return true
	case names(p.exclude, path):
		return false
	case p.only || leaf.Returned == schema.Request:
		return names(p.include, path)
	}
	return true
}

// names reports whether a path, or what it is a part of, is among those that were named.
func names(named map[string]bool, path schema.Path) bool {
	if len(named) == 0 {
		return false
	}
	whole := path
	whole.Sub = nil
	return named[key(path)] || named[key(whole)] || named[strings.ToLower(path.Extension)]
}

// hasPart reports whether a part of what a path names is among those that were named.
func hasPart(named map[string]bool, path schema.Path) bool {
	if len(named) == 0 {
		return false
	}
	prefix := key(path) + "."
	for name := range named {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (p Projection) extension(urn string) bool {
	urn = strings.ToLower(urn)
	if p.exclude[urn] {
		return false
	}
	if !p.only || p.include[urn] {
		return true
	}
	for named := range p.include {
		if strings.HasPrefix(named, urn+":") {
			return true
		}
	}
	return false
}

// Of returns the selected attributes of a resource in canonical form. Hidden ones are never among them; schemas stays
// as it is.
func (p Projection) Of(kind *schema.Resource, r Object) Object {
	out := Object{}
	for name, v := range r {
		if s, is := kind.Extension(name); is {
			if o := p.members(s, v); len(o) > 0 {
				out[name] = o
			}
			continue
		}
		if a, is := kind.Attribute(name); is {
			p.attribute(out, schema.Path{Attribute: a}, name, v)
		}
	}
	return out
}

func (p Projection) members(s *schema.Schema, v any) Object {
	out := Object{}
	o, _ := v.(Object)
	for name, member := range o {
		if a, is := s.Attribute(name); is {
			p.attribute(out, schema.Path{Extension: s.ID, Attribute: a}, name, member)
		}
	}
	return out
}

// attribute puts one attribute into out, or those of its sub-attributes that are selected.
func (p Projection) attribute(out Object, path schema.Path, name string, v any) {
	a := path.Attribute
	if !p.Has(path) {
		return
	}
	if a.Type != schema.Complex && a.Type != schema.Any || !p.inPart(path) {
		out[name] = v
		return
	}
	switch v := v.(type) {
	case Object:
		if o := p.subs(path, v); len(o) > 0 {
			out[name] = o
		}
	case []any:
		list := make([]any, 0, len(v))
		for _, item := range v {
			if o, is := item.(Object); is {
				if item := p.subs(path, o); len(item) > 0 {
					list = append(list, item)
				}
			}
		}
		if len(list) > 0 {
			out[name] = list
		}
	}
}

// inPart reports whether some of an attribute's sub-attributes are selected, and others are not.
func (p Projection) inPart(path schema.Path) bool {
	if !p.wants(path) {
		return true
	}
	if hasPart(p.exclude, path) {
		return true
	}
	for _, sub := range path.Attribute.SubAttributes {
		if sub.Hidden() || sub.Returned == schema.Request {
			return true
		}
	}
	return false
}

func (p Projection) subs(path schema.Path, o Object) Object {
	out := Object{}
	for name, v := range o {
		sub, is := path.Attribute.Sub(name)
		if !is {
			continue
		}
		of := path
		of.Sub = sub
		if p.wants(of) {
			out[name] = v
		}
	}
	return out
}
