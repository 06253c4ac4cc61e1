package applications_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestEveryOperationHonoursIfMatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	app := func(c *testkit.Client, n int) string {
		made := addApp(t, c, fmt.Sprint("Application ", n), object{"category": "4"})
		c.Post(path(made, "idp"), object{"config_id": "31"}).OK(nil)
		return path(made)
	}
	testkit.Matching(t, s, s.As("acme", auth.PlatformAdmin), testkit.Records{
		Make: map[string]func(c *testkit.Client, n int) string{
			"/v1/applications/{id}": app,
			"/v1/applications/{app_id}/accounts/{id}": func(c *testkit.Client, n int) string {
				made := addApp(t, c, fmt.Sprint("Application ", n))
				account := addAccount(t, c, made, "20", "expenses")
				id := account["id"].(string)
				return path(made, "accounts", id) + "?id=" + id
			},
			"/v1/applications/{app_id}/protocols/{protocol_type}": func(c *testkit.Client, n int) string {
				protocol := app(c, n) + "/protocols/saml"
				c.Do("PUT", protocol, object{"protocol_prop": object{
					"acs_url": "https://expenses.acme.test/saml/acs", "sp_entity": "https://expenses.acme.test",
				}}).OK(nil)
				return protocol
			},
		},
	})
}
