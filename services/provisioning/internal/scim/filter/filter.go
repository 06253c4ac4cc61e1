// Package filter reads the filters of RFC 7644 §3.4.2.2, tests resources against them, and plans which part of one an
// index can serve.
package filter

import (
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// The limits of a filter.
const (
	MaxLength = 2048 // characters
	MaxDepth  = 10   // groups, value paths and "not" within each other
	MaxTerms  = 50   // comparisons
)

// Op is an operator that compares an attribute with a value, in lower case.
type Op string

// The operators.
const (
	Equal          Op = "eq"
	NotEqual       Op = "ne"
	Contains       Op = "co"
	StartsWith     Op = "sw"
	EndsWith       Op = "ew"
	Present        Op = "pr"
	Greater        Op = "gt"
	GreaterOrEqual Op = "ge"
	Less           Op = "lt"
	LessOrEqual    Op = "le"
)

// Node is a part of a filter: And, Or, Not, *Compare or *Each.
type Node interface{ node() }

// And holds where all of its parts hold. It has two or more, none of which is an And.
type And []Node

// Or holds where one of its parts holds. It has two or more, none of which is an Or.
type Or []Node

// Not holds where its part does not.
type Not struct{ Of Node }

// Compare compares an attribute with a value. It holds where a value of the attribute compares so. ne also holds where
// the attribute has no value.
type Compare struct {
	// Path names what is compared: of a complex attribute with a sub-attribute "value", that one. Within an Each the
	// attribute is the sub-attribute.
	Path schema.Path
	Op   Op
	// Value is a string, a bool, a json.Number, a time.Time for attributes that are times (a string if the operator is
	// of texts), or nil for null and of pr.
	Value any
	key   string // of a string: the form that is compared
}

// Each holds where one value of a multi-valued complex attribute has the filter hold: emails[type eq "work"].
type Each struct {
	Path   schema.Path
	Filter Node
}

func (And) node()      {}
func (Or) node()       {}
func (Not) node()      {}
func (*Compare) node() {}
func (*Each) node()    {}

// Paths calls see for each comparison of a filter, with the whole path of what is compared: emails.type in
// emails[type eq "work"].
func Paths(n Node, see func(schema.Path, *Compare)) {
	paths(n, nil, see)
}

func paths(n Node, within *schema.Path, see func(schema.Path, *Compare)) {
	switch n := n.(type) {
	case And:
		for _, part := range n {
			paths(part, within, see)
		}
	case Or:
		for _, part := range n {
			paths(part, within, see)
		}
	case Not:
		paths(n.Of, within, see)
	case *Each:
		paths(n.Filter, &n.Path, see)
	case *Compare:
		see(whole(within, n.Path), n)
	}
}

// whole is the path of what is compared within a value path.
func whole(within *schema.Path, p schema.Path) schema.Path {
	if within == nil {
		return p
	}
	of := *within
	of.Sub = p.Attribute
	return of
}

func fault(format string, args ...any) error {
	return scim.Invalid(scim.InvalidFilter, "filter", format, args...)
}
