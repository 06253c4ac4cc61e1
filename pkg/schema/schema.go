// Package schema checks JSON values against JSON Schemas (draft 2020-12) that come as data, such as the catalogues of
// providers and templates, and reports every fault at its member.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// Format is a format beside those of JSON Schema. The error of Check completes a sentence that begins with the member's
// name, and does not repeat the text.
type Format struct {
	Name  string
	Check func(text string) error
}

// refusal tells an error of a Format from those of the library's formats.
type refusal struct{ error }

// Compile parses a schema. Formats are asserted; references to other documents are not loaded.
func Compile(text []byte, formats ...Format) (*Schema, error) {
	const name = "urn:idp:schema" // references inside the schema are resolved against it
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	compiler.AssertFormat()
	for _, f := range formats {
		compiler.RegisterFormat(&jsonschema.Format{Name: f.Name, Validate: func(v any) error {
			text, is := v.(string)
			if !is {
				return nil
			}
			if err := f.Check(text); err != nil {
				return refusal{err}
			}
			return nil
		}})
	}
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled}, nil
}

// Check notes the faults of a JSON value, each at its member, and reports whether there are none. It never repeats a
// part of the value.
func (s *Schema) Check(faults *apperr.Faults, value json.RawMessage) (ok bool) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		faults.Add("", "must be JSON")
		return false
	}
	err = s.compiled.Validate(parsed)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		note(faults, invalid)
	}
	return err == nil
}

// note finds the faults that have no further cause. It reports alternatives as one fault, because the faults of each
// would only confuse.
func note(faults *apperr.Faults, e *jsonschema.ValidationError) {
	switch e.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf:
		faults.Add(location(e.InstanceLocation), "%s", alternatives(e))
		return
	}
	for _, cause := range e.Causes {
		note(faults, cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	at := func(member string) string { return apperr.Below(location(e.InstanceLocation), member) }
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, member := range k.Missing {
			faults.Add(at(member), "is missing")
		}
	case *kind.DependentRequired:
		for _, member := range k.Missing {
			faults.Add(at(member), "is missing; it goes with %s", k.Prop)
		}
	case *kind.AdditionalProperties:
		for _, member := range k.Properties {
			faults.Add(at(member), "is unknown")
		}
	default:
		faults.Add(at(""), "%s", message(e.ErrorKind))
	}
}

// location returns the path to a value in apperr's form.
func location(path []string) string {
	at := ""
	for _, step := range path {
		if n, err := strconv.Atoi(step); err == nil {
			at = apperr.Item(at, n)
		} else {
			at = apperr.Below(at, step)
		}
	}
	return at
}

// alternatives returns the message for a value that must have one of several forms.
func alternatives(e *jsonschema.ValidationError) string {
	if k, ok := e.ErrorKind.(*kind.OneOf); ok && len(k.Subschemas) > 1 {
		return "must have only one of the alternatives"
	}
	var members []string
	for _, cause := range e.Causes {
		if k, ok := cause.ErrorKind.(*kind.Required); ok {
			members = append(members, k.Missing...)
		}
	}
	if len(members) == 0 {
		return "must have one of the forms that its schema lists"
	}
	slices.Sort(members)
	return "must have one of " + strings.Join(slices.Compact(members), ", ")
}

// message returns what a value must be. The library's own messages repeat the value.
func message(fault jsonschema.ErrorKind) string {
	switch k := fault.(type) {
	case *kind.Type:
		return "must be of type " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "must be one of " + list(k.Want)
	case *kind.Const:
		return "must be " + list([]any{k.Want})
	case *kind.Format:
		if own, ok := errors.AsType[refusal](k.Err); ok {
			return own.Error()
		}
		return "must have the format " + k.Want
	case *kind.Pattern:
		return "must match " + k.Want
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d entries", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d entries", k.Want)
	case *kind.UniqueItems:
		return "must not have an entry twice"
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	}
	return fmt.Sprintf("does not satisfy the keyword %q of its schema", strings.Join(fault.KeywordPath(), "/"))
}

func list(values []any) string {
	texts := make([]string, len(values))
	for i, value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return "the values that its schema lists"
		}
		texts[i] = string(text)
	}
	return strings.Join(texts, ", ")
}
