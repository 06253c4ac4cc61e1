package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The gateway's document has what the services' documents have.
func TestGatewaysDocument(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../services/*/api/openapi.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	dir := t.TempDir()
	made, packed := filepath.Join(dir, "openapi.json"), filepath.Join(dir, "openapi.json.gz")
	require.NoError(t, run(files, made, filepath.Join(dir, "older.json"), packed))
	want, err := os.ReadFile(made)
	require.NoError(t, err)
	for _, file := range []string{packed, "../../gateway/openapi.json.gz"} {
		have, err := unpack(file)
		require.NoError(t, err)
		require.True(t, string(want) == string(have), "%s: run make openapi", file)
	}
}

func TestFaultsOfDocuments(t *testing.T) {
	t.Parallel()
	const one = `
paths: {/v1/a: {get: {operationId: get-a, security: [], responses: {}}}}
components: {schemas: {Problem: {type: object}}}
tags: [{name: A, description: One.}]
`
	for other, fault := range map[string]string{
		`{paths: {/v1/b: {}}, components: {schemas: {Problem: {type: object}}}, tags: [{name: A, description: One.}]}`: "",
		`{paths: {/v1/a: {}}}`:                                                       "another path /v1/a",
		`{components: {schemas: {Problem: {type: string}}}}`:                         "another schemas Problem",
		`{tags: [{name: A, description: Two.}]}`:                                     "another tag A",
		`{paths: {/v1/b: {get: {operationId: get-a, security: [], responses: {}}}}}`: "get-a is the id of two operations",
		`{paths: {/v1/b: {get: {operationId: get-b, responses: {}}}}}`:               "GET /v1/b has no security",
		`{security: []}`: "does not know the member security",
		`[]`:             "other.yaml",
	} {
		dir := t.TempDir()
		var files []string
		for name, text := range map[string]string{"one.yaml": one, "other.yaml": other} {
			files = append(files, filepath.Join(dir, name))
			require.NoError(t, os.WriteFile(files[len(files)-1], []byte(text), 0o600))
		}
		out, older := filepath.Join(dir, "openapi.json"), filepath.Join(dir, "older.json")
		packed := out + ".gz"
		err := run(files, out, older, packed)
		if fault != "" {
			require.ErrorContains(t, err, fault)
			require.NoFileExists(t, out)
			require.NoFileExists(t, packed)
			continue
		}
		require.NoError(t, err)
		require.FileExists(t, out)
		require.FileExists(t, older)
	}
}
