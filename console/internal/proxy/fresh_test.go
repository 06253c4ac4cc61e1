package proxy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestFreshOperations compares the list of operations with the documents of the services. With IDP_TEST_UPDATE=1 it
// writes the list.
func TestFreshOperations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../services/*/api/openapi.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var document struct {
			Paths map[string]map[string]struct {
				Fresh string `yaml:"x-fresh"`
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &document))
		for path, methods := range document.Paths {
			for method, operation := range methods {
				if operation.Fresh != "" {
					found[strings.ToUpper(method)+" "+path] = operation.Fresh
				}
			}
		}
	}
	require.Greater(t, len(found), 5)
	for operation, fresh := range found {
		conditional := strings.HasPrefix(fresh, ifBody) || strings.HasPrefix(fresh, ifQuery)
		require.True(t, fresh == always || conditional, "%s: %q", operation, fresh)
	}
	text, err := json.MarshalIndent(found, "", "  ")
	require.NoError(t, err)
	if os.Getenv("IDP_TEST_UPDATE") != "" {
		require.NoError(t, os.WriteFile("fresh.json", append(text, '\n'), 0o600))
		return
	}
	require.JSONEq(t, string(text), string(freshText), "run make generate")
}
