package testkit

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMasksWithoutAMarkAreFound(t *testing.T) {
	t.Parallel()
	var doc description
	require.NoError(t, json.Unmarshal([]byte(`{"Components": {"Schemas": {"Thing": {"properties": {
		"name": {"type": "string"}, "key": {"type": "string"}, "pin": {"type": "string", "writeOnly": true},
		"old": {"type": "string", "readOnly": true}, "parts": {"items": {"$ref": "#/components/schemas/Thing"}},
		"headers": {"additionalProperties": {"type": "string"}}, "config": {"additionalProperties": {}}
	}}}}}`), &doc))
	var record any
	require.NoError(t, json.Unmarshal([]byte(`{"name": "a", "key": "******", "pin": "******", "old": "******",
		"parts": [{"key": "******"}], "headers": {"X-Key": "******"}, "config": {"AppSecret": "******"},
		"unknown": "******"}`), &record))
	thing := map[string]any{"$ref": "#/components/schemas/Thing"}
	require.ElementsMatch(t, []string{"body.key", "body.parts[].key", "body.headers.X-Key"},
		doc.unmarked(record, thing, "body"))

	named := func(name string) func(map[string]any) bool {
		return func(schema map[string]any) bool { return schema[name] == true }
	}
	list := map[string]any{"items": thing}
	require.True(t, doc.has(list, named("writeOnly"), map[string]bool{}))
	require.False(t, doc.has(list, named("deprecated"), map[string]bool{}))
}
