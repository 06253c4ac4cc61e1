package applications_test

import (
	"testing"
	"time"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// Later versions must be able to read stored documents: whoever changes a golden file provides for the old form.
func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	began := s.Clock.Now()
	app := addApp(t, c, "费用 <&>", object{
		"domain_sn": "expenses", "login_url": "https://a.test/login", "redirect_url": "https://a.test/cb",
		"protocol_type": "saml",
		"protocol_prop": object{"acs_url": "https://a.test/acs", "sp_entity": "sp",
			"response_attr": []any{object{"value": "email", "attribute": "mail"}}},
		"config_prop": object{"access_policy": object{"forget_password": []any{"mail"}},
			"allowed_social_login_provider": object{"wechat_scan_qr": 31}},
		"sign_in_prop": object{"consent": "1", "audiences": []any{"https://api.a.test"},
			"post_logout_urls": []any{"https://a.test/bye"}, "backchannel_logout_url": "https://a.test/back",
			"frontchannel_logout_url": "https://a.test/front", "slo_url": "https://a.test/slo", "slo_binding": "redirect",
			"acs_urls": []any{"https://a.test/acs2"}, "signed_requests": "0", "idp_initiated": "1"},
		"sys_ext_props": object{"a": 1}, "free_ext_props": object{"键": []any{"值"}}, "jwks_uri": "https://a.test/jwks",
	})
	s.Clock.Advance(time.Second)
	c.Post(path(app, "secrets?grace_seconds=60"), nil).OK(nil)
	c.Post(path(app, "idp"), object{"config_id": "31"}).OK(nil)
	c.Post(path(app, "protocols/saml/secret"), nil).OK(nil)
	account := addAccount(t, c, app, "7", "li.wei", object{"display_name": "李伟", "password": "form fill"})

	for name, document := range map[string]struct{ collection, id string }{
		"application": {"applications", app["id"].(string)}, "secret_hashes": {"secret_hashes", app["id"].(string)},
		"protocol": {"protocols", ""}, "account": {"accounts", account["id"].(string)},
		"account_holder": {"account_holders", ""},
	} {
		testkit.GoldenDocument(t, s, began, name, document.collection, document.id, steady)
	}
}
