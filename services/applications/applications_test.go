package applications_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/applications"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func start(t testing.TB) *testkit.Service {
	return testkit.Start(t, applications.Spec(applications.DefaultConfig()))
}

func TestConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: "/v1/applications",
		Body:       func(n int) any { return map[string]any{"name": fmt.Sprintf("Application %d", n)} },
		Change:     map[string]any{"descr": "Claims and receipts"},
		Faulty:     map[string]any{"name": " ", "login_url": "/login", "logout_url": "https://acme.test/#end"},
		Faults:     []string{"body.name", "body.login_url", "body.logout_url"},
		Unique:     []string{"name"},
		Read:       auth.ApplicationsRead, Write: auth.ApplicationsWrite, Unrelated: auth.KVRead,
	})
}
