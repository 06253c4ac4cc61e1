package rest

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	jsonpatch "github.com/evanphx/json-patch/v5"
)

// JSON is a body that was checked against the schema of W and kept as it came.
type JSON[W any] struct{ raw json.RawMessage }

// UnmarshalJSON keeps the body.
func (j *JSON[W]) UnmarshalJSON(b []byte) error {
	j.raw = append(json.RawMessage(nil), b...)
	return nil
}

// Into decodes the body.
func (j JSON[W]) Into(v any) error { return json.Unmarshal(j.raw, v) }

// Schema is W's.
func (JSON[W]) Schema(r huma.Registry) *huma.Schema { return r.Schema(reflect.TypeFor[W](), true, "") }

// MergePatch is a JSON merge patch (RFC 7396) of a record described by W. It tells absent, null and value apart, which a W alone
// could not.
type MergePatch[W any] struct{ raw json.RawMessage }

// UnmarshalJSON keeps the patch; huma has checked it against Schema.
func (p *MergePatch[W]) UnmarshalJSON(b []byte) error {
	p.raw = append(json.RawMessage(nil), b...)
	return nil
}

// Has reports whether the patch names a member.
func (p MergePatch[W]) Has(member string) bool {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(p.raw, &members) // checked against an object's schema before
	_, ok := members[member]
	return ok
}

// Apply changes to as the patch says: a member that is null becomes its zero value, an object merges, all else replaces.
func Apply[W, T any](p MergePatch[W], to *T) error {
	before, err := json.Marshal(to)
	if err != nil {
		return fmt.Errorf("merge patch: %w", err)
	}
	after, err := jsonpatch.MergePatch(before, p.raw)
	if err != nil {
		return fmt.Errorf("merge patch: %w", err)
	}
	var merged T
	if err := json.Unmarshal(after, &merged); err != nil {
		return fmt.Errorf("merge patch: %w", err)
	}
	*to = merged
	return nil
}

// Schema is W's with nothing required and null allowed everywhere.
func (MergePatch[W]) Schema(r huma.Registry) *huma.Schema {
	t := reflect.TypeFor[W]()
	name := t.Name() + "Patch"
	if r.Map()[name] == nil {
		patch := *huma.SchemaFromType(r, t)
		patch.Required = nil
		patch.Properties = make(map[string]*huma.Schema, len(patch.Properties))
		for member, schema := range huma.SchemaFromType(r, t).Properties {
			optional := *schema
			optional.Nullable = optional.Ref == ""
			optional.PrecomputeMessages()
			patch.Properties[member] = &optional
		}
		patch.PrecomputeMessages()
		r.Map()[name] = &patch
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}
