package testkit

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Document checks that the OpenAPI document in a file is the one that the service serves. IDP_TEST_UPDATE=1 writes it.
func Document(t *testing.T, s *Service, file string) {
	t.Helper()
	answer := s.Stranger().Get("/openapi.yaml")
	require.Equal(t, http.StatusOK, answer.Status)
	if os.Getenv("IDP_TEST_UPDATE") == "1" {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, answer.Body, 0o644))
		return
	}
	checkedIn, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(checkedIn), string(answer.Body), "%s is not up to date; `make generate` writes it anew", file)
}
