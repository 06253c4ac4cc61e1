package organization_test

import (
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestKeywords(t *testing.T) {
	t.Parallel()
	testkit.Searches(t, start(t).As("acme", auth.OrganizationRead, auth.OrganizationWrite), testkit.Searched{
		Path: "/v1/core-objects", Array: true, Make: func(c *testkit.Client, name, code string) string {
			return c.Post("/v1/core-objects", object{"name": name, "code": code}).ID()
		},
	})
}
