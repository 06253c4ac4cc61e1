package rest

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/mergepatch"
)

// JSON is a body that was checked against the schema of W and kept unchanged.
type JSON[W any] struct{ text string }

// UnmarshalJSON keeps the body.
func (j *JSON[W]) UnmarshalJSON(b []byte) error {
	j.keep(b)
	return nil
}

func (j *JSON[W]) keep(b []byte) { j.text = string(b) }

// Into decodes the body as encoding/json does, in a third of the time. A value that passes the schema but does not fit
// v is apperr.InvalidParameters.
func (j JSON[W]) Into(v any) error { return wrongType(jsonv2.Unmarshal([]byte(j.text), v, likeV1)) }

// Text is the body as it was sent: valid JSON, as the schema wants it, without repeated members.
func (j JSON[W]) Text() string { return j.text }

// wrongType is the error for a value that passes the schema but does not fit the domain's type.
func wrongType(err error) error {
	if err == nil {
		return nil
	}
	if at := wrongMember(err); at != "" {
		return apperr.Invalid(at, "has the wrong type").Because(err)
	}
	return apperr.Invalid("", "has a member of the wrong type").Because(err)
}

// wrongMember is the location of the member that an error of decoding is about; "" if it does not say.
func wrongMember(err error) (at string) {
	var steps []string
	if e, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		steps = slices.Collect(e.JSONPointer.Tokens())
	} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		steps = slices.DeleteFunc(strings.Split(e.Field, "."), func(step string) bool {
			return step != "" && unicode.IsUpper(rune(step[0])) // an embedded struct
		})
	}
	for _, step := range steps {
		if n, err := strconv.Atoi(step); err == nil {
			at = apperr.Item(at, n)
		} else {
			at = apperr.Below(at, step)
		}
	}
	return at
}

// likeV1 makes version 2 of encoding/json decode as version 1 does.
var likeV1 = jsonv1.DefaultOptionsV1()

// Schema returns the schema of W.
func (JSON[W]) Schema(r huma.Registry) *huma.Schema { return r.Schema(reflect.TypeFor[W](), true, "") }

// MergePatch is a JSON merge patch (RFC 7396) of a record described by W. It distinguishes absent members, null and
// values, which W alone cannot.
type MergePatch[W any] struct{ raw json.RawMessage }

// UnmarshalJSON keeps the patch. huma has checked it against Schema.
func (p *MergePatch[W]) UnmarshalJSON(b []byte) error {
	p.keep(b)
	return nil
}

func (p *MergePatch[W]) keep(b []byte) { p.raw = append(json.RawMessage(nil), b...) }

// Has reports whether the patch names a member.
func (p MergePatch[W]) Has(member string) bool {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(p.raw, &members) // an object, as checked against the schema
	_, ok := members[member]
	return ok
}

// Into changes what v points to by the patch: null sets a member to its zero value, an object is merged, any other
// value replaces the member. A value that passes the schema but does not fit is apperr.InvalidParameters; v stays as
// it was.
func (p MergePatch[W]) Into(v any) error { return wrongType(mergepatch.Into(v, p.raw)) }

// Schema returns the schema of W without required members, and with null allowed wherever a patch merges. Arrays are
// replaced as a whole.
func (MergePatch[W]) Schema(r huma.Registry) *huma.Schema {
	t := reflect.TypeFor[W]()
	s := huma.SchemaFromType(r, t)
	body := cmp.Or(strings.TrimPrefix(s.Ref, schemaPath), t.Name())
	name := strings.TrimSuffix(body, "Input") + "Patch"
	what := "A JSON merge patch (RFC 7396) of " + body
	switch known := r.Map()[name]; {
	case known == nil:
		patch := patchOf(r, s)
		patch.Description = what
		r.Map()[name] = patch
	case known.Description != what:
		panic("two schemas would be called " + name)
	}
	return &huma.Schema{Ref: schemaPath + name}
}

func patchOf(r huma.Registry, s *huma.Schema) *huma.Schema {
	what, readOnly := s.Description, s.ReadOnly
	if s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	patch := *s
	patch.Description, patch.ReadOnly = cmp.Or(what, s.Description), readOnly || s.ReadOnly
	patch.Required = nil
	patch.Properties = make(map[string]*huma.Schema, len(s.Properties))
	for name, member := range s.Properties {
		patch.Properties[name] = nullable(patchOf(r, member))
	}
	if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
		patch.AdditionalProperties = nullable(patchOf(r, values))
	}
	patch.PrecomputeMessages()
	return &patch
}

func nullable(s *huma.Schema) *huma.Schema {
	s.Nullable = s.Type != "" // a schema without a type accepts null already
	return s
}
