// Package patch reads PATCH requests (RFC 7644 §3.5.2) as clients send them, and applies them: to users giving the new
// resource, to groups giving the change of their members, whose number then does not matter.
package patch

import (
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// MaxOperations is how many operations a request has at most.
const MaxOperations = 1000

// URN is the schema of PATCH requests.
const URN = "urn:ietf:params:scim:api:messages:2.0:PatchOp"

// Op is what an operation does, in lower case.
type Op string

// The operations.
const (
	Add     Op = "add"
	Replace Op = "replace"
	Remove  Op = "remove"
)

// Operation is one operation of a request, as sent.
type Operation struct {
	Op    Op
	Path  string // "" if there is none: then the value has a member for each path
	Value any    // nil if there is none
}

// Parse reads the body of a PATCH request. Names and ops may be in any case. Its errors have type invalidSyntax,
// noTarget for a removal without a path, invalidValue for a value that is missing, and tooMany.
func Parse(body []byte) ([]Operation, error) {
	o, err := resource.DecodeObject(body)
	if err != nil {
		return nil, err
	}
	return FromObject(o)
}

// FromObject is Parse for a body that is decoded, such as the data of an operation of a Bulk request.
func FromObject(o resource.Object) ([]Operation, error) {
	if err := checkSchemas(member(o, "schemas")); err != nil {
		return nil, err
	}
	sent, is := member(o, "Operations").([]any)
	if !is || len(sent) == 0 {
		return nil, scim.Invalid(scim.InvalidSyntax, "Operations", "must be a list with an operation")
	}
	if len(sent) > MaxOperations {
		return nil, scim.Invalid(scim.TooMany, "Operations", "has more than %d operations", MaxOperations)
	}
	operations := make([]Operation, len(sent))
	for i, v := range sent {
		o, is := v.(resource.Object)
		if !is {
			return nil, scim.Invalid(scim.InvalidSyntax, apperr.Item("Operations", i), "must be an object")
		}
		op, err := operation(o)
		if err != nil {
			return nil, of(i, err)
		}
		operations[i] = op
	}
	return operations, nil
}

// of locates an error at the operation with that index.
func of(i int, err error) error {
	return scim.Relocate(err, func(location string) string {
		return apperr.Below(apperr.Item("Operations", i), location)
	})
}

func checkSchemas(v any) error {
	if v == nil {
		return nil
	}
	urns, _ := v.([]any)
	for _, urn := range urns {
		if s, is := urn.(string); is && strings.EqualFold(s, URN) {
			return nil
		}
	}
	return scim.Invalid(scim.InvalidSyntax, "schemas", "must be a list with %s", URN)
}

func operation(o resource.Object) (Operation, error) {
	var op Operation
	name, _ := member(o, "op").(string)
	switch op.Op = Op(strings.ToLower(name)); op.Op {
	case Add, Replace, Remove:
	default:
		return op, scim.Invalid(scim.InvalidSyntax, "op", "must be add, replace or remove")
	}
	switch path := member(o, "path").(type) {
	case nil:
	case string:
		op.Path = strings.TrimSpace(path)
	default:
		return op, scim.Invalid(scim.InvalidPath, "path", "must be a text")
	}
	op.Value = member(o, "value")
	_, isObject := op.Value.(resource.Object)
	switch {
	case op.Op == Remove && op.Path == "":
		return op, scim.Invalid(scim.NoTarget, "path", "is required to remove something")
	case op.Op != Remove && op.Path == "" && !isObject:
		return op, scim.Invalid(scim.InvalidValue, "value", "must be an object where there is no path")
	case op.Op != Remove && !has(o, "value"):
		return op, scim.Invalid(scim.InvalidValue, "value", "is required")
	}
	return op, nil
}

// Names reports whether an operation names an attribute of the core schema that has one value.
func Names(operations []Operation, attribute string) bool {
	is := func(path string) bool {
		path = strings.ToLower(path)
		return path == strings.ToLower(attribute) || strings.HasSuffix(path, ":"+strings.ToLower(attribute))
	}
	for _, op := range operations {
		if is(op.Path) {
			return true
		}
		if values, isObject := op.Value.(resource.Object); isObject && op.Path == "" {
			for name, v := range values {
				inner, isObject := v.(resource.Object)
				if is(name) || isObject && has(inner, attribute) {
					return true
				}
			}
		}
	}
	return false
}

// member returns the member of that name in any case.
func member(o resource.Object, name string) any {
	if v, has := o[name]; has {
		return v
	}
	for n, v := range o {
		if strings.EqualFold(n, name) {
			return v
		}
	}
	return nil
}

func has(o resource.Object, name string) bool {
	for n := range o {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}
