package gateway

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/pkg/openapi"
	"github.com/idplatform/idplatform/pkg/request"
)

// transferTypes are the content types of bodies whose length is not known in advance.
var transferTypes = []string{"application/x-ndjson", "text/csv"}

// TestTablesKnowEveryService checks that every operation in a service's OpenAPI document reaches that service through
// the gateway, and is treated as a transfer or an event stream if it is one.
func TestTablesKnowEveryService(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../services/*/api/openapi.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		service := filepath.Base(filepath.Dir(filepath.Dir(file)))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var document struct {
			Paths map[string]map[string]struct {
				RequestBody struct{ Content map[string]any } `yaml:"requestBody"`
				Responses   map[string]struct{ Content map[string]any }
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &document))
		require.NotEmpty(t, document.Paths, file)
		for path, operations := range document.Paths {
			target := strings.NewReplacer("{", "", "}", "").Replace(path)
			for method, operation := range operations {
				r := httptest.NewRequest(strings.ToUpper(method), target, nil)
				found, err := route(r.URL)
				require.NoError(t, err, "%s %s", method, path)
				require.Equal(t, service, found, "%s %s", method, path)
				answers := operation.Responses["200"].Content
				moves := slices.ContainsFunc(transferTypes, func(name string) bool {
					return operation.RequestBody.Content[name] != nil || answers[name] != nil
				})
				const differs = "%s %s: the gateway's tables and the document differ about a stream"
				require.Equal(t, moves, kindOf(r) == transfer, differs, method, path)
				r.Header.Set("Accept", request.EventStreamType)
				lasts := answers[request.EventStreamType] != nil
				require.Equal(t, lasts, kindOf(r) == eventStream, differs, method, path)
			}
		}
	}
}

// TestDocumentsDoNotConflict checks that no two services use one name of a schema, a tag or an operation for different
// things, and that the merged documents have no faults.
func TestDocumentsDoNotConflict(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../services/*/api/openapi.yaml")
	require.NoError(t, err)
	parts := map[string]map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var document map[string]any
		require.NoError(t, yaml.Unmarshal(text, &document))
		parts[filepath.Base(filepath.Dir(filepath.Dir(file)))] = document
	}
	merged, err := mergeOpenAPI(parts, nil)
	require.NoError(t, err)
	require.Empty(t, merged.Missing)
	documents, err := merged.encode()
	require.NoError(t, err)
	if folder := os.Getenv("IDP_TEST_OPENAPI"); folder != "" { // make openapi, for generators
		require.NoError(t, os.WriteFile(filepath.Join(folder, "openapi.json"), documents.json, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "openapi-3.0.json"), documents.json30, 0o600))
	}
	for version, document := range map[string][]byte{"3.1": documents.json, "3.0": documents.json30} {
		parsed, err := openapi.Parse(document)
		require.NoError(t, err)
		require.Empty(t, openapi.Faults(parsed), version)
	}

	schemas := parts[Users]["components"].(map[string]any)["schemas"].(map[string]any)
	schemas["Problem"] = map[string]any{"type": "string"}
	_, err = mergeOpenAPI(parts, nil)
	require.ErrorContains(t, err, "components/schemas/Problem", "a conflict would be found")
}
