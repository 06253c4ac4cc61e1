package operations

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCompiledIn(t *testing.T) {
	t.Parallel()
	table := CompiledIn()
	assert.Greater(t, len(table.All), 200)
	o := table.Find("update-user")
	require.NotNil(t, o)
	assert.Equal(t, "PATCH /v1/users/{id} users:write", o.Method+" "+o.Path+" "+o.Scope)
	assert.True(t, o.Matches)
	assert.True(t, o.Changes())
	assert.True(t, table.Find("list-users").Paged)
	for _, reads := range []string{"list-users", "check-auth", "users-exist", "user-exists", "create-token"} {
		assert.False(t, table.Find(reads).Changes(), reads)
	}
	assert.Equal(t, "get-user", table.Match("GET", "/v1/users/7").ID)
	assert.Equal(t, "export-users", table.Match("GET", "/v1/users/export").ID, "a name comes before a parameter")
	assert.Nil(t, table.Match("GET", "/v1/users/"))
	assert.Nil(t, table.Find("nonsense"))
}

func TestParse(t *testing.T) {
	t.Parallel()
	table, err := Parse([]byte(`{
		"paths": {"/v1/a/{id}": {"patch": {
			"operationId": "change-a", "summary": "S", "x-scope": "a:write", "security": [{}], "parameters": [
				{"$ref": "#/components/parameters/M"},
				{"in": "path", "name": "id", "required": true, "schema": {"type": "string"}},
				{"in": "query", "name": "deep", "schema": {"type": "string", "enum": ["true", "false"]}}],
			"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}},
			"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}}}},
		"components": {
			"parameters": {"M": {"in": "header", "name": "If-Match"}},
			"schemas": {"A": {"required": ["n"], "properties": {
				"n": {"type": ["integer", "null"]}, "id": {"type": "string", "readOnly": true},
				"locked": {"type": "boolean", "x-changed-by": ["lock-a"]},
				"list": {"type": "array", "items": {"type": "string"}}}}}}}`))
	require.NoError(t, err)
	assert.Equal(t, &Operation{
		ID: "change-a", Method: "PATCH", Path: "/v1/a/{id}", Summary: "S", Scope: "a:write", Matches: true,
		Parameters: []Parameter{
			{Name: "id", In: "path", Type: "string", Required: true},
			{Name: "deep", In: "query", Type: "string", Values: []string{"true", "false"}},
		},
		Body: []string{JSON}, Answer: []string{JSON},
		Members: []Parameter{
			{Name: "list", Type: "array", Items: "string"}, {Name: "n", Type: "integer", Required: true},
		},
	}, table.Find("change-a"))
	for _, bad := range []string{"", "[]", "{}", `{"paths":{}}`} {
		_, err := Parse([]byte(bad))
		assert.Error(t, err, bad)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"paths":{"/a":{"get":{"operationId":"a","parameters":[{"$ref":"#/components/parameters/x"}]}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := Parse(text)
		assert.Equal(t, err == nil, table != nil)
	})
}
