package plan

import (
	"encoding/json"
	"strconv"
)

// Schema is the JSON Schema of a document, for editors.
func Schema() map[string]any {
	definitions, all := map[string]any{}, []any{}
	for _, k := range kinds {
		properties, required := map[string]any{}, []string{}
		if !k.parts {
			properties["kind"] = map[string]any{"const": k.name}
			required = append(required, "kind")
			all = append(all, map[string]any{"$ref": "#/$defs/" + k.name})
		}
		for _, f := range k.fields() {
			properties[f.name] = schemaOf(f)
			if f.required {
				required = append(required, f.name)
			}
		}
		definitions[k.name] = map[string]any{
			"type": "object", "properties": properties, "required": required, "additionalProperties": false,
		}
	}
	delete(definitions, source)
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A document of idp apply",
		"oneOf": all, "$defs": definitions,
	}
}

func schemaOf(f field) map[string]any {
	out := map[string]any{}
	if f.kind != "" {
		out["type"] = []any{f.kind, "null"}
	}
	if f.kind == "string" && len(f.values) == 0 {
		out["type"] = []any{"string", "number", "boolean", "null"} // YAML's unquoted texts
	}
	if len(f.values) > 0 {
		out["type"] = []any{"string", "number", "null"} // YAML's 1 is a number
		out["enum"] = choices(f.values)
	}
	if f.about != "" {
		out["description"] = f.about
	}
	if f.part != "" {
		out["items"] = map[string]any{"$ref": "#/$defs/" + f.part}
	}
	if f.name == "identity" {
		out["properties"] = map[string]any{
			"type": map[string]any{"enum": []string{"user", "node", "core_object", "application", "group", "everyone"}},
			"name": map[string]any{"type": "string"},
		}
		out["required"], out["additionalProperties"] = []string{"type"}, false
	}
	return out
}

// choices are values as YAML has them: with quotes, or as numbers without.
func choices(values []string) []any {
	out := []any{nil}
	for _, value := range values {
		out = append(out, value)
		if _, err := strconv.Atoi(value); err == nil {
			out = append(out, json.Number(value))
		}
	}
	return out
}
