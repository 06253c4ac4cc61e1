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

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

// transferTypes are the content types of bodies whose length is not known in advance.
var transferTypes = []string{"application/x-ndjson", "text/csv"}

// TestTablesKnowEveryService checks that every operation in a service's OpenAPI document reaches that service through
// the gateway, and is treated as a transfer or an event stream if it is one.
func TestTablesKnowEveryService(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
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
