// Package openapi holds what services and the gateway share about OpenAPI documents: the license and contact of every
// document, and the conversion of a version 3.1 document to version 3.0, which more tools can read.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The license and contact in the info object of every document.
const (
	LicenseName = "Apache License 2.0"
	LicenseURL  = "https://www.apache.org/licenses/LICENSE-2.0"
	ContactName = "idplatform"
	ContactURL  = "https://github.com/idplatform/idplatform"
)

// Parse decodes a document and keeps its numbers as json.Number.
func Parse(document []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("the OpenAPI document is not JSON: %w", err)
	}
	return m, nil
}

// names are the members of a document whose own members are named by the author: inside them "type" is a name, not a
// keyword.
var names = []string{
	"properties", "patternProperties", "$defs", "schemas", "paths", "responses", "content", "headers", "parameters",
	"requestBodies", "securitySchemes",
}

// values are the members that hold plain JSON, such as examples, which walk must not read as a part of the document.
var values = []string{"example", "default", "enum", "const"}

// walk calls visit for every object of a document that is not plain JSON, inner objects first.
func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			walk(item, visit)
		}
	case map[string]any:
		for name, member := range v {
			object, isObject := member.(map[string]any)
			switch {
			case slices.Contains(values, name), name == "examples":
			case isObject && slices.Contains(names, name):
				for _, named := range object {
					walk(named, visit)
				}
			default:
				walk(member, visit)
			}
		}
		visit(v)
	}
}

// Finish completes, in place, a generated document of version 3.1: an enumeration whose type may be null gets null as
// a value. JSON Schema checks a value against both type and enum.
func Finish(document map[string]any) {
	walk(document, func(m map[string]any) {
		types, _ := m["type"].([]any)
		list, isEnum := m["enum"].([]any)
		if isEnum && slices.Contains(types, any("null")) && !slices.Contains(list, nil) {
			m["enum"] = append(slices.Clone(list), nil)
		}
	})
}

// Downgrade converts a document of version 3.1 to version 3.0.3, in place. It drops what 3.0 cannot express:
// webhooks, and all but one of several types that are not null.
func Downgrade(document map[string]any) {
	document["openapi"] = "3.0.3"
	for _, name := range []string{"webhooks", "jsonSchemaDialect"} {
		delete(document, name)
	}
	components, _ := document["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	walk(document, func(m map[string]any) { downgrade(m, schemas) })
}

func downgrade(m map[string]any, schemas map[string]any) {
	nullableReference(m, schemas)
	if ref, ok := m["$ref"]; ok && len(m) > 1 { // 3.0 ignores the members beside a reference
		delete(m, "$ref")
		m["allOf"] = []any{map[string]any{"$ref": ref}}
	}
	if types, ok := m["type"].([]any); ok {
		delete(m, "type")
		for _, t := range types {
			if t == "null" {
				m["nullable"] = true
			} else {
				m["type"] = t
			}
		}
	}
	if list, ok := m["enum"].([]any); ok && m["nullable"] == true {
		// A null among the values would make generators define a constant for it.
		m["enum"] = slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == nil })
	}
	if list, ok := m["examples"].([]any); ok {
		delete(m, "examples")
		if _, has := m["example"]; !has && len(list) > 0 {
			m["example"] = list[0]
		}
	}
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if limit, ok := m[exclusive].(json.Number); ok {
			m[bound], m[exclusive] = limit, true
		}
	}
	if value, ok := m["const"]; ok {
		delete(m, "const")
		m["enum"] = []any{value}
	}
	if m["contentEncoding"] == "base64" {
		m["format"] = "byte"
	}
	for _, name := range []string{"contentEncoding", "contentMediaType"} {
		delete(m, name)
	}
}

// nullableReference converts an anyOf of a reference and null to nullable, which is the form of version 3.0. There
// nullable has a meaning only beside a type, which is that of the schema that is referred to.
func nullableReference(m map[string]any, schemas map[string]any) {
	options, _ := m["anyOf"].([]any)
	if len(options) != 2 {
		return
	}
	null := slices.IndexFunc(options, func(v any) bool {
		option, _ := v.(map[string]any)
		return option["type"] == "null"
	})
	if null < 0 {
		return
	}
	delete(m, "anyOf")
	m["allOf"], m["nullable"], m["type"] = []any{options[1-null]}, true, "object"
	option, _ := options[1-null].(map[string]any)
	ref, _ := option["$ref"].(string)
	if schema, ok := schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any); ok {
		if t, ok := schema["type"].(string); ok {
			m["type"] = t
		}
	}
}
