package identitysources_test

import (
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestKeywords(t *testing.T) {
	t.Parallel()
	method := func(c *testkit.Client, name, code string) string {
		return c.Post(methodsPath, object{"name": name, "code": code, "type": "password"}).ID()
	}
	template := func(c *testkit.Client, name, code string) string {
		steps := []any{object{"methods": []string{"pwd"}, "required": true}}
		return c.Post(templatesPath, object{"name": name, "code": code, "steps": steps}).ID()
	}
	connection := func(c *testkit.Client, name, _ string) string {
		body := ldap(nil)
		body["display_name"] = name
		return c.Post(connectionsPath, body).ID()
	}
	for what, list := range map[string]testkit.Searched{
		"methods": {Path: methodsPath, Make: method}, "templates": {Path: templatesPath, Make: template},
		"connections": {Path: connectionsPath, Make: connection, NoCodes: true, Array: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := in(start(t), "acme")
			method(c, "Password", "pwd")
			testkit.Searches(t, c, list)
		})
	}
}
