// Package schema holds the schemas of the resources that the service has (RFC 7643 §4, §7 and §8.7), finds attributes
// by their paths, and has the documents about them (§5 and §6).
package schema

import "strings"

// Type is the data type of an attribute (RFC 7643 §2.3).
type Type string

// The data types. Any is that of the attributes of an extension that a connection declares by its URN alone.
const (
	String    Type = "string"
	Boolean   Type = "boolean"
	Decimal   Type = "decimal"
	Integer   Type = "integer"
	DateTime  Type = "dateTime"
	Reference Type = "reference"
	Binary    Type = "binary"
	Complex   Type = "complex"
	Any       Type = "any"
)

// Mutability says whether clients can write an attribute.
type Mutability string

// The mutabilities of RFC 7643 §7.
const (
	ReadWrite Mutability = "readWrite"
	ReadOnly  Mutability = "readOnly"
	Immutable Mutability = "immutable"
	WriteOnly Mutability = "writeOnly"
)

// Returned says when an answer has an attribute.
type Returned string

// The values of "returned" of RFC 7643 §7.
const (
	Always  Returned = "always"
	Never   Returned = "never"
	Default Returned = "default"
	Request Returned = "request" // only where it is asked for
)

// Uniqueness says among which resources a value is unique.
type Uniqueness string

// The values of "uniqueness" of RFC 7643 §7 that are used.
const (
	None   Uniqueness = "none"
	Server Uniqueness = "server"
)

// Attribute is the definition of an attribute or sub-attribute. It must not be changed.
type Attribute struct {
	Name            string       `json:"name"`
	Type            Type         `json:"type"`
	SubAttributes   []*Attribute `json:"subAttributes,omitempty"`
	MultiValued     bool         `json:"multiValued"`
	Description     string       `json:"description"`
	Required        bool         `json:"required"`
	CanonicalValues []string     `json:"canonicalValues,omitempty"`
	CaseExact       bool         `json:"caseExact"`
	Mutability      Mutability   `json:"mutability"`
	Returned        Returned     `json:"returned"`
	Uniqueness      Uniqueness   `json:"uniqueness"`
	ReferenceTypes  []string     `json:"referenceTypes,omitempty"`
	// Unbounded is of a list that may have any number of values: the members of a group.
	Unbounded bool `json:"-"`
}

// Sub returns the sub-attribute of that name in any case. Each name is a sub-attribute of one of type Any.
func (a *Attribute) Sub(name string) (*Attribute, bool) {
	if a.Type == Any {
		return anything(name)
	}
	for _, sub := range a.SubAttributes {
		if strings.EqualFold(sub.Name, name) {
			return sub, true
		}
	}
	return nil, false
}

// Hidden reports whether no client may see the attribute.
func (a *Attribute) Hidden() bool { return a.Returned == Never || a.Mutability == WriteOnly }

// Schema is a set of attributes with a URN. It must not be changed.
type Schema struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Attributes  []*Attribute `json:"attributes"`
	// Open is of a schema of which only the URN is known: it has attributes of each name, of type Any.
	Open bool `json:"-"`
}

// Attribute returns the attribute of that name in any case.
func (s *Schema) Attribute(name string) (*Attribute, bool) {
	if s.Open {
		return anything(name)
	}
	for _, a := range s.Attributes {
		if strings.EqualFold(a.Name, name) {
			return a, true
		}
	}
	return nil, false
}

// anything is the definition of an attribute of an open schema. Its name is as given.
func anything(name string) (*Attribute, bool) {
	if !IsName(name) {
		return nil, false
	}
	return &Attribute{Name: name, Type: Any, Mutability: ReadWrite, Returned: Default, Uniqueness: None}, true
}

// IsName reports whether s has the syntax of an attribute name (RFC 7643 §2.1, which allows $ref too).
func IsName(s string) bool {
	s = strings.TrimPrefix(s, "$")
	for i, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || c == '-' || c == '_')) {
			return false
		}
	}
	return s != ""
}

// Resource is a kind of resource: its schema and its extensions. It must not be changed.
type Resource struct {
	Name        string
	Endpoint    string // below the root of the service
	Description string
	Core        *Schema
	Extensions  []*Schema
}

// With returns the resource with more extensions, of which only the URNs are known. What is an extension already, or no
// URN, is left out.
func (r *Resource) With(urns ...string) *Resource {
	more := *r
	more.Extensions = append([]*Schema(nil), r.Extensions...)
	for _, urn := range urns {
		known := strings.EqualFold(urn, r.Core.ID)
		for _, e := range more.Extensions {
			known = known || strings.EqualFold(e.ID, urn)
		}
		if !known && isURN(urn) {
			more.Extensions = append(more.Extensions, &Schema{ID: urn, Name: urn,
				Description: "An extension of the connection. Its attributes are kept as sent.",
				Attributes:  []*Attribute{}, Open: true})
		}
	}
	return &more
}

// Extension returns the extension of that URN in any case.
func (r *Resource) Extension(urn string) (*Schema, bool) {
	for _, e := range r.Extensions {
		if strings.EqualFold(e.ID, urn) {
			return e, true
		}
	}
	return nil, false
}

// Attribute returns the attribute of the core schema, or the common attribute, of that name in any case.
func (r *Resource) Attribute(name string) (*Attribute, bool) {
	for _, a := range common {
		if strings.EqualFold(a.Name, name) {
			return a, true
		}
	}
	return r.Core.Attribute(name)
}

// Path names an attribute, a sub-attribute of it, or with neither an extension as a whole.
type Path struct {
	Extension string // the URN of the extension; "" in the core schema
	Attribute *Attribute
	Sub       *Attribute // nil for the attribute as a whole
}

// Leaf is the definition of what the path names: nil for an extension as a whole.
func (p Path) Leaf() *Attribute {
	if p.Sub != nil {
		return p.Sub
	}
	return p.Attribute
}

// String is the path in canonical case. Attributes of extensions have the URN before them.
func (p Path) String() string {
	var b strings.Builder
	b.WriteString(p.Extension)
	if p.Attribute != nil {
		if p.Extension != "" {
			b.WriteByte(':')
		}
		b.WriteString(p.Attribute.Name)
	}
	if p.Sub != nil {
		b.WriteString("." + p.Sub.Name)
	}
	return b.String()
}

// Find returns what a path names: userName, name.givenName, either after the URN of its schema and a colon, or the URN
// of an extension. Names and URNs may be in any case (RFC 7643 §2.1). An attribute of an extension needs the URN.
func (r *Resource) Find(path string) (Path, bool) {
	var p Path
	s := r.Core
	if isURN(path) {
		if s = r.prefix(path); s == nil {
			return p, false
		}
		if s != r.Core {
			p.Extension = s.ID
			if len(path) == len(s.ID) {
				return p, true
			}
		}
		if path = path[len(s.ID):]; path == "" {
			return p, false
		}
		path = path[1:]
	}
	name, sub, hasSub := strings.Cut(path, ".")
	var found bool
	if s == r.Core {
		p.Attribute, found = r.Attribute(name)
	} else {
		p.Attribute, found = s.Attribute(name)
	}
	if found && hasSub {
		p.Sub, found = p.Attribute.Sub(sub)
	}
	return p, found
}

// Undeclared reports whether a path leads into an extension that is not among those of the resource.
func (r *Resource) Undeclared(path string) bool { return isURN(path) && r.prefix(path) == nil }

// prefix returns the schema with whose URN the path begins: of several the longest.
func (r *Resource) prefix(path string) *Schema {
	var longest *Schema
	for _, s := range append([]*Schema{r.Core}, r.Extensions...) {
		n := len(s.ID)
		begins := len(path) >= n && strings.EqualFold(path[:n], s.ID) && (len(path) == n || path[n] == ':')
		if begins && (longest == nil || n > len(longest.ID)) {
			longest = s
		}
	}
	return longest
}

func isURN(s string) bool { return len(s) > 4 && strings.EqualFold(s[:4], "urn:") }
