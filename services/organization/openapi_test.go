package organization_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The document that is checked in is the one that the service serves. IDP_TEST_UPDATE=1 writes it.
func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	const file = "api/openapi.yaml"
	answer := start(t).Stranger().Get("/openapi.yaml")
	require.Equal(t, http.StatusOK, answer.Status)
	if os.Getenv("IDP_TEST_UPDATE") == "1" {
		require.NoError(t, os.MkdirAll("api", 0o755))
		require.NoError(t, os.WriteFile(file, answer.Body, 0o644))
		return
	}
	checkedIn, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(checkedIn), string(answer.Body), "%s is not up to date; `make generate` writes it anew", file)
}
