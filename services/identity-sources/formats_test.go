package identitysources_test

import (
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// Later versions must be able to read stored documents: whoever changes a golden file provides for the old form.
func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, began := in(s, "acme"), s.Clock.Now()
	connection := c.Post(connectionsPath, wechat(object{"display_name": "微信 <&>"})).Object()
	method := c.Post(methodsPath, object{"code": "pwd", "name": "Password", "type": "password", "factor": "1",
		"connection_ids": []any{id(connection)}, "policy": object{"重试": 3}}).ID()
	template := c.Post(templatesPath, object{"code": "staff", "name": "员工",
		"steps": []any{object{"methods": []any{"pwd"}, "required": true}}}).ID()
	c.Post(templatesPath+"/"+template+"/default", nil).OK(nil)
	for name, document := range map[string]struct{ collection, id string }{
		"connection": {"connections", id(connection)}, "auth_method": {"auth_methods", method},
		"auth_template": {"auth_templates", template},
	} {
		testkit.GoldenDocument(t, s, began, name, document.collection, document.id)
	}
	domain := c.Post(connectionsPath+"/"+id(connection)+"/domains", object{"domain": "acme.test"}).ID()
	testkit.GoldenDocument(t, s, began, "connection_domain", "connection_domains", domain, func(b []byte) []byte {
		return randomText.ReplaceAll(b, []byte("idplatform-verification=random"))
	})
}
