package identitysources_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestEveryOperationHonoursIfMatch(t *testing.T) {
	t.Parallel()
	s, _ := startNamed(t)
	in(s, "acme").Post(methodsPath, object{"code": "pwd", "name": "Password", "type": "password"}).OK(nil)
	testkit.Matching(t, s, s.As("acme", auth.PlatformAdmin), testkit.Records{
		Make: map[string]func(c *testkit.Client, n int) string{
			methodsPath + "/{id}": func(c *testkit.Client, n int) string {
				return methodsPath + "/" + c.Post(methodsPath, object{"code": fmt.Sprint("m", n), "name": "M",
					"type": "password"}).ID()
			},
			templatesPath + "/{id}": func(c *testkit.Client, n int) string {
				return templatesPath + "/" + c.Post(templatesPath, object{"code": fmt.Sprint("t", n), "name": "T",
					"steps": []any{object{"methods": []any{"pwd"}, "required": true}}}).ID()
			},
			connectionsPath + "/{id}": func(c *testkit.Client, n int) string {
				return one(c.Post(connectionsPath, wechat(object{"display_name": fmt.Sprint("C", n)})).Object())
			},
			connectionsPath + "/{connection_id}/domains/{id}": func(c *testkit.Client, n int) string {
				at := one(c.Post(connectionsPath, wechat()).Object()) + "/domains"
				return at + "/" + c.Post(at, object{"domain": fmt.Sprint("d", n, ".test")}).ID()
			},
		},
		Bodies: map[string]any{
			"update-auth-method": object{"name": "Other"}, "update-auth-template": object{"name": "Other"},
			"update-connection-domain": object{"enforce": "1"},
			"replace-connection":       wechat(object{"display_name": "Other"}),
		},
	})
}
