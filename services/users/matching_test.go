package users_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestEveryOperationHonoursIfMatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.As("acme", auth.PlatformAdmin)
	user := func(c *testkit.Client, n int) object {
		return c.Post("/v1/users", object{"username": fmt.Sprint("user-", n), "password": "Correct-horse-9"}).Object()
	}
	testkit.Matching(t, s, c, testkit.Records{Make: map[string]func(c *testkit.Client, n int) string{
		"/v1/users/{id}": func(c *testkit.Client, n int) string { return "/v1/users/" + user(c, n)["id"].(string) },
		credentials + "/{id}": func(c *testkit.Client, n int) string {
			credential := credentialOf(user(c, n), "wechat_scan_qr", fmt.Sprint(n))
			return credentials + "/" + c.Post(credentials, credential).ID()
		},
	}, Bodies: map[string]any{
		"change-password": object{"old_password": "Correct-horse-9", "new_password": "Battery-staple-8"},
	}})
}
