package testkit

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// Document checks that the OpenAPI document in a file is the one that the service serves; see Golden.
func Document(t *testing.T, s *Service, file string) {
	t.Helper()
	answer := s.Stranger().Get("/openapi.yaml")
	require.Equal(t, http.StatusOK, answer.Status)
	basic.Golden(t, file, answer.Body)
}
