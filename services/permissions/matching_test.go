package permissions_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestEveryOperationHonoursIfMatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	code := func(n int) string { return fmt.Sprint("r", n) }
	testkit.Matching(t, s, s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "acme"), testkit.Records{
		Make: map[string]func(c *testkit.Client, n int) string{
			"/v1/resources/{id}": func(c *testkit.Client, n int) string {
				return "/v1/resources/" + addResource(t, c, code(n)) + "?application_id=9"
			},
			"/v1/resource-sets/{id}": func(c *testkit.Client, n int) string {
				return "/v1/resource-sets/" + addSet(t, c, code(n))
			},
			"/v1/resource-sets/{sid}/members/{mid}": func(c *testkit.Client, n int) string {
				members := "/v1/resource-sets/" + addSet(t, c, code(n), addResource(t, c, code(n))) + "/members"
				return members + "/" + c.Items(members, "id")[0].(string)
			},
			"/v1/auth-units/{id}": func(c *testkit.Client, n int) string {
				return "/v1/auth-units/" + c.Post("/v1/auth-units", object{"identity_type": "user",
					"identity_id": fmt.Sprint(1000 + n)}).ID()
			},
			"/v1/auth-units/{rid}/rules/{tid}": func(c *testkit.Client, n int) string {
				addResource(t, c, code(n))
				who := fmt.Sprint("user/", 1000+n)
				give(t, c, who, data(code(n), "read"))
				rules := "/v1/auth-units/" + id(unitOf(t, c, who)) + "/rules"
				var list []object
				c.Get(rules + "?self_only=true").OK(&list)
				return rules + "/" + id(list[0])
			},
		},
		Bodies: map[string]any{"replace-auth-unit-rule": object{"application_id": "9", "type": "data", "code": "ledger",
			"actions": []string{"read"}}},
	})
}

func id(record object) string { return record["id"].(string) }
