package automation_test

import (
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/automation"
)

type object = map[string]any

func TestMain(m *testing.M) {
	automation.RunIfWorker()
	basic.Main(m)
}

func start(t testing.TB) *testkit.Service {
	return testkit.Start(t, automation.Spec(automation.DefaultConfig()))
}

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	testkit.Document(t, start(t), "api/openapi.yaml")
}
