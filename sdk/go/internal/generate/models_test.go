package main

import (
	"compress/gzip"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMembers: the type of a record has every member that its schema has in the platform's document, and the type of a
// request has none that the server ignores.
func TestMembers(t *testing.T) {
	t.Parallel()
	d := platformDocument(t)
	records, types := answered(d), sdkTypes(t)
	components, _ := d["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	compared := 0
	for name, schema := range schemas {
		if name == "Empty" || name == "EventDataStruct" { // no type has the first; each type of events is a second
			continue
		}
		declared := types[goName(name)]
		if assert.NotNil(t, declared, "%s has no type", name) {
			compared += compareMembers(t, name, schema, declared, types, records[name])
		}
	}
	require.Greater(t, compared, 2000)
}

// compareMembers returns how many members it has compared.
func compareMembers(
	t *testing.T, name string, v any, declared ast.Expr, types map[string]ast.Expr, record bool,
) int {
	t.Helper()
	schema, _ := v.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	of := structOf(declared, types)
	if len(properties) == 0 || of == nil { // a type without members is a text or raw JSON, which keeps all of them
		return 0
	}
	required, _ := schema["required"].([]any)
	fields := map[string]ast.Expr{}
	for _, field := range of.Fields.List {
		tag, err := strconv.Unquote(field.Tag.Value)
		require.NoError(t, err)
		member, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if member != "-" {
			fields[member] = field.Type
		}
	}
	compared := len(fields)
	for member, property := range properties {
		p, _ := property.(map[string]any)
		ignored := !record && p["readOnly"] == true && !slices.Contains(required, any(member))
		field, there := fields[member]
		assert.Equal(t, !ignored, there, "%s: whether the type has %s", name, member)
		delete(fields, member)
		if there {
			compared += compareMembers(t, name+"."+member, p, field, types, record)
			compared += compareMembers(t, name+"."+member, p["items"], field, types, record)
		}
	}
	assert.Empty(t, fields, "%s: fields that are no members", name)
	return compared
}

// structOf returns the struct that a type is, points to, or has as its items; nil if there is none.
func structOf(v ast.Expr, types map[string]ast.Expr) *ast.StructType {
	switch v := v.(type) {
	case *ast.StructType:
		return v
	case *ast.Ident:
		if types[v.Name] != nil {
			return structOf(types[v.Name], types)
		}
	case *ast.StarExpr:
		return structOf(v.X, types)
	case *ast.ArrayType:
		return structOf(v.Elt, types)
	case *ast.IndexExpr: // nullable.Nullable
		return structOf(v.Index, types)
	}
	return nil
}

// sdkTypes are the types of the SDK's package, by their names.
func sdkTypes(t *testing.T) map[string]ast.Expr {
	t.Helper()
	types := map[string]ast.Expr{}
	for _, file := range []string{"models.go", "problem.go"} {
		source, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(source, func(node ast.Node) bool {
			if declared, ok := node.(*ast.TypeSpec); ok {
				types[declared.Name.Name] = declared.Type
			}
			return true
		})
	}
	return types
}

// platformDocument is the document that the gateway has.
func platformDocument(t *testing.T) map[string]any {
	t.Helper()
	file, err := os.Open("../../../../gateway/openapi.json.gz")
	require.NoError(t, err)
	defer file.Close()
	plain, err := gzip.NewReader(file)
	require.NoError(t, err)
	var d map[string]any
	require.NoError(t, json.NewDecoder(plain).Decode(&d))
	return d
}

func TestAnswered(t *testing.T) {
	t.Parallel()
	var d map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{
		"paths": {"/v1/jobs": {"parameters": [{"$ref": "#/components/parameters/Tenant"}], "post": {
			"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/JobInput"}}}},
			"responses": {
				"200": {"content": {"application/json": {
					"schema": {"$ref": "#/components/schemas/JobList"}, "example": {"$ref": "https://a.test/Users/1"}
				}}},
				"default": {"$ref": "#/components/responses/Problem"}
			}
		}}},
		"components": {
			"responses": {"Problem": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}},
			"schemas": {
				"JobList": {"properties": {"items": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}}}},
				"Job": {"properties": {
					"target": {"allOf": [{"$ref": "#/components/schemas/Target"}]},
					"children": {"additionalProperties": {"$ref": "#/components/schemas/Job"}}
				}},
				"Target": {"type": "object"}, "Problem": {"type": "object"}, "JobInput": {"type": "object"}
			}
		}
	}`), &d))
	assert.Equal(t, map[string]bool{"JobList": true, "Job": true, "Target": true, "Problem": true}, answered(d))
}

// TestReadOnlyMembers: an optional member that only the platform sets is a member of the record alone. What tells null
// from absent is a member of requests alone.
func TestReadOnlyMembers(t *testing.T) {
	t.Parallel()
	members := `{"type": "object", "required": ["name"], "properties": {
		"name": {"type": "string"}, "fired": {"type": "integer", "format": "int64", "readOnly": true},
		"state": {"type": "string", "readOnly": true, "enum": ["on", "off"]},
		"until": {"type": "string", "nullable": true}
	}}`
	source, err := models([]byte(`{"openapi": "3.0.3", "info": {"title": "", "version": ""}, "paths": {"/v1/jobs": {"post": {
		"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/JobInput"}}}},
		"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}}}}
	}}}, "components": {"schemas": {"Job": ` + members + `, "JobInput": ` + members + `}}}`))
	require.NoError(t, err)
	job, input, found := strings.Cut(string(source), "type JobInput struct")
	require.True(t, found)
	assert.Contains(t, job, "Fired *int64 `json:\"fired,omitempty\"`")
	assert.Contains(t, job, "State *string `json:\"state,omitempty\"`")
	assert.Contains(t, job, `one of "on", "off"`)
	assert.Contains(t, job, "Until *string `json:\"until,omitempty\"`")
	assert.Contains(t, input, "Until nullable.Nullable[string] `json:\"until,omitempty\"`")
	assert.NotContains(t, input, "Fired")
	assert.NotContains(t, input, "State")
	assert.Contains(t, input, "`json:\"name\"`")
}
