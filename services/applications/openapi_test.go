package applications_test

import (
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	testkit.Document(t, start(t), "api/openapi.yaml")
}
