package applications_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/applications"
)

func TestCreateWithDefaults(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	app := c.Post("/v1/applications", object{"name": "Expenses"}).Object()
	assert.Regexp(t, `^[a-z2-7]{26}$`, app["client_id"])
	assert.Regexp(t, `^[A-Za-z0-9_-]{43}$`, app["client_secret"], "256 bits")
	secrets := app["secrets"].([]any)
	require.Len(t, secrets, 1)
	assert.Equal(t, "…"+app["client_secret"].(string)[39:], secrets[0].(object)["hint"])
	assert.Nil(t, secrets[0].(object)["time_expires"])
	for member, want := range (object{
		"type": "1", "category": "1", "protocol_type": "oidc", "status": "1", "sso_enabled": "1", "mfa_enabled": "0",
		"multi_account_enabled": "0", "sub_account_policy": "0", "domain_sn": "", "template_id": "",
		"tenant_id": "acme",
		"scopes":    []any{}, "idps": []any{}, "sys_ext_props": object{}, "free_ext_props": object{}, "version": 1.0,
		"config_prop":   object{"sso_enabled": "1", "mfa_enabled": "0"},
		"protocol_prop": object{"lifetime_in_seconds": 3600.0, "signature_algorithm": "RS256"},
	}) {
		assert.Equal(t, want, app[member], member)
	}
	delete(app, "client_secret")
	unchanged(t, c, app)

	protocols := c.Get(path(app, "protocols"))
	var list []object
	protocols.OK(&list)
	require.Len(t, list, 1)
	assert.Equal(t, "oidc", list[0]["protocol_type"])
	assert.Equal(t, "1", list[0]["status"])
}

// An application that runs in a browser or on a device gets no secret: nothing would take it.
func TestPublicClientsHaveNoSecret(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	for category, has := range map[string]bool{"1": true, "2": false, "3": false, "4": true} {
		made := c.Post("/v1/applications", object{"name": category, "category": category}).Object()
		require.Equal(t, has, made["client_secret"] != nil, category)
		require.Equal(t, has, len(made["secrets"].([]any)) == 1, category)
		refresh := c.Post(path(made, "secrets"), nil)
		if has {
			require.NotEmpty(t, refresh.Object()["client_secret"])
			continue
		}
		refresh.Problem(http.StatusConflict, "invalid_state")
		c.Patch(path(made), object{"category": "1"}).OK(nil)
		require.NotEmpty(t, c.Post(path(made, "secrets"), nil).Object()["client_secret"])
	}
	batch := c.Post("/v1/batch/applications", object{"items": []object{{"name": "a", "category": "2"}, {"name": "b"}}})
	items := batch.Object()["items"].([]any)
	require.NotContains(t, items[0], "client_secret")
	require.Contains(t, items[1], "client_secret")
}

// All members are returned as they were sent.
func TestCreateWithEverything(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	sent := object{
		"name": "费用 <&>", "type": "1", "domain_sn": "expenses.acme", "category": "2", "descr": "two\nlines",
		"logo":      "/img/e.png",
		"login_url": "https://Expenses.acme.test:8443/login", "logout_url": "http://localhost:3000/out",
		"redirect_url": "https://a.test/cb, https://b.test/cb?x=1", "sub_account_policy": "1",
		"sys_ext_props":  object{"n": json.Number("12345678901234567890"), "键": []any{nil, true}},
		"free_ext_props": object{"a": object{"b": "c"}},
		"protocol_type":  "saml",
		"protocol_prop": object{
			"acs_url": "https://expenses.acme.test/acs", "sp_entity": "expenses",
			"response_attr": []any{object{"value": "email", "attribute": "mail",
				"nameFormat": "urn:oasis:names:tc:SAML:2.0:attrname-format:basic"}},
			"digest_algorithm":        "http://www.w3.org/2001/04/xmlenc#sha256",
			"signature_algorithm":     "rsa-sha512",
			"lifetime_in_seconds":     86400,
			"name_identifier_format":  "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
			"authn_context_class_ref": "urn:oasis:names:tc:SAML:2.0:ac:classes:Password",
		},
		"config_prop": object{
			"status": "1", "tenant_id": "acme", "mfa_config": object{"any": 1}, "reg_policy": []any{"open"},
			"mfa_enabled": "1", "sso_enabled": "0",
			"developer_id": "d", "access_policy": object{"forget_password": []any{"mail"}, "more": 1},
			"allowed_reg_method": object{"mail": true},
			"default_reg_method": "mail", "allowed_login_method": object{"name": "pwd"}, "default_login_method": "pwd",
			"allowed_social_login_provider": object{"wechat_scan_qr": 31, "dingding_scan_qr": 32},
		},
		"jwks_uri": "https://expenses.acme.test/jwks.json",
	}
	app := addApp(t, c, "", sent)
	addApp(t, c, "an app on a device",
		object{"category": "3", "redirect_url": "com.example.app:/cb, https://a.test/cb"})
	var got, want object
	body, err := json.Marshal(sent)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, &want))
	got = object{}
	for member := range want {
		got[member] = app[member]
	}
	assert.Equal(t, want, got)
	assert.Equal(t, "0", app["sso_enabled"], "both members show one value")
	assert.Equal(t, "1", app["mfa_enabled"])
	assert.Contains(t, string(c.Get(path(app)).Body), "12345678901234567890")
	unchanged(t, c, app)
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	for name, row := range map[string]struct {
		body      object
		locations []string
	}{
		"no name":             {object{}, []string{"body.name"}},
		"a long name":         {object{"name": strings.Repeat("李", 129)}, []string{"body.name"}},
		"a control character": {object{"name": "a\u0007"}, []string{"body.name"}},
		"type":                {object{"name": "a", "type": "3"}, []string{"body.type"}},
		"category":            {object{"name": "a", "category": "5"}, []string{"body.category"}},
		"protocol":            {object{"name": "a", "protocol_type": "kerberos"}, []string{"body.protocol_type"}},
		"policy":              {object{"name": "a", "sub_account_policy": "yes"}, []string{"body.sub_account_policy"}},
		"a number for a text": {object{"name": 1}, []string{"body.name"}},
		"relative":            {object{"name": "a", "login_url": "//acme.test"}, []string{"body.login_url"}},
		"no web address":      {object{"name": "a", "login_url": "javascript:alert(1)"}, []string{"body.login_url"}},
		"http":                {object{"name": "a", "login_url": "http://acme.test"}, []string{"body.login_url"}},
		"a password": {object{"name": "a", "logout_url": "https://u:p@acme.test"},
			[]string{"body.logout_url"}},
		"fragments": {object{"name": "a", "redirect_url": "https://a.test,https://b.test/#x"},
			[]string{"body.redirect_url"}},
		"a line end after a URL": {object{"name": "a", "redirect_url": "https://a.test/cb\n"},
			[]string{"body.redirect_url"}},
		"a line end between URLs": {object{"name": "a", "redirect_url": "https://a.test,\nhttps://b.test"},
			[]string{"body.redirect_url"}},
		"no port": {object{"name": "a", "redirect_url": "https://a.test:99999/cb", "logout_url": "https://a.test:0"},
			[]string{"body.redirect_url", "body.logout_url"}},
		"a scheme of an app's own": {object{"name": "a", "redirect_url": "com.example.app:/cb"},
			[]string{"body.redirect_url"}},
		"a script for an app": {object{"name": "a", "category": "3", "redirect_url": "javascript:/alert"},
			[]string{"body.redirect_url"}},
		"an empty redirect":   {object{"name": "a", "redirect_url": "https://a.test,"}, []string{"body.redirect_url"}},
		"a data logo":         {object{"name": "a", "logo": "data:image/png;base64,AA"}, []string{"body.logo"}},
		"spaces in domain_sn": {object{"name": "a", "domain_sn": "a b"}, []string{"body.domain_sn"}},
		"disabled":            {object{"name": "a", "status": "0"}, []string{"body.status"}},
		"several accounts": {object{"name": "a", "multi_account_enabled": "1"},
			[]string{"body.multi_account_enabled"}},
		"a contradiction": {object{"name": "a", "sso_enabled": "0", "config_prop": object{"sso_enabled": "1"}},
			[]string{"body.sso_enabled"}},
		"scopes": {object{"name": "a", "scopes": []any{"users:read", "everything"}},
			[]string{"body.scopes"}},
		"props": {object{"name": "a", "sys_ext_props": []any{}}, []string{"body.sys_ext_props"}},
		"large props": {object{"name": "a", "free_ext_props": object{"a": strings.Repeat("x", 64<<10)}},
			[]string{"body.free_ext_props"}},
		"template params": {object{"name": "a", "template_params": object{"version": "1"}},
			[]string{"body.template_params"}},
		"unknown members": {
			object{"name": "a", "x": 1, "config_prop": object{"y": 1}, "protocol_prop": object{"z": 1}},
			[]string{"body.x", "body.config_prop.y", "body.protocol_prop.z"},
		},
		"types of the configuration": {object{"name": "a", "config_prop": object{
			"status": 1, "mfa_config": "x", "reg_policy": "x", "access_policy": object{"forget_password": "x"},
			"allowed_login_method": object{"name": 1}, "allowed_social_login_provider": object{"wechat_scan_qr": "31"},
		}}, []string{
			"body.config_prop.status", "body.config_prop.mfa_config", "body.config_prop.reg_policy",
			"body.config_prop.access_policy.forget_password", "body.config_prop.allowed_login_method.name",
			"body.config_prop.allowed_social_login_provider.wechat_scan_qr",
		}},
		"another tenant's": {object{"name": "a", "config_prop": object{"tenant_id": "globex"}},
			[]string{"body.config_prop.tenant_id"}},
		"both key sets": {object{"name": "a", "jwks_uri": "https://a.test", "jwks": object{"keys": []any{}}},
			[]string{"body.jwks_uri", "body.jwks"}},
		"a symmetric key": {object{"name": "a", "jwks": object{"keys": []any{object{"kty": "oct", "k": "AAAA"}}}},
			[]string{"body.jwks"}},
		"jwks_uri over http": {object{"name": "a", "jwks_uri": "http://a.test/keys"}, []string{"body.jwks_uri"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Post("/v1/applications", row.body).Problem(http.StatusBadRequest, "invalid_parameters", row.locations...)
		})
	}
}

// The configuration can allow http URLs.
func TestAllowHTTP(t *testing.T) {
	t.Parallel()
	config := applications.DefaultConfig()
	config.AllowHTTP = true
	s := testkit.Start(t, applications.Spec(config))
	addApp(t, in(s, "acme"), "a", object{"login_url": "http://intranet.acme.test"})
}

// A caller without the scope does not get the new secret. Only the SHA-256 of a secret is stored.
func TestFreshSecretNeedsItsScope(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	plain := s.As("acme", auth.ApplicationsRead, auth.ApplicationsWrite)
	assert.NotContains(t, plain.Post("/v1/applications", object{"name": "a"}).Object(), "client_secret")
	app := c.Post("/v1/applications", object{"name": "b"}).Object()
	sum := sha256.Sum256([]byte(app["client_secret"].(string)))
	kept := testkit.Stored(t, s, "acme", "secret_hashes")[app["id"].(string)]
	assert.Contains(t, kept, hex.EncodeToString(sum[:]))
	assert.NotContains(t, kept, app["client_secret"])
}

// A replay shows the secret again. The stored answer is encrypted.
func TestFreshSecretIsReplayed(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	once := c.With("Idempotency-Key", "k1")
	first := once.Post("/v1/applications", object{"name": "a"}).Object()
	again := once.Post("/v1/applications", object{"name": "a"})
	assert.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	assert.Equal(t, first, again.Object())
	for _, document := range testkit.Stored(t, s, "acme", "idempotency") {
		assert.NotContains(t, document, first["client_secret"])
	}
}

// No caller can give scopes that it lacks, or get them by the secrets and keys of another application.
func TestScopesBeyondTheCallers(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	admin := s.As("acme", auth.PlatformAdmin)
	c.Post("/v1/applications", object{"name": "a", "scopes": []any{"users:read"}}).Problem(http.StatusForbidden,
		"forbidden")
	c.Post("/v1/batch/applications", object{"items": []any{object{"name": "a", "scopes": []any{"platform:admin"}}}}).
		Problem(http.StatusForbidden, "forbidden")
	mine := addApp(t, c, "mine", object{"scopes": []any{"applications:read", "applications:read"}})
	assert.Equal(t, []any{"applications:read"}, mine["scopes"])
	strong := addApp(t, admin, "strong", object{"category": "4", "scopes": []any{"platform:admin"}})
	for _, change := range []object{
		{"scopes": []any{}}, {"scopes": []any{"platform:admin", "users:read"}}, {"jwks_uri": "https://evil.test/jwks"},
	} {
		c.Patch(path(strong), change).Problem(http.StatusForbidden, "forbidden")
	}
	c.Post(path(strong, "secrets"), nil).Problem(http.StatusForbidden, "forbidden")
	c.Post(path(strong, "protocols/oidc/secret"), nil).Problem(http.StatusForbidden, "forbidden")
	c.Patch(path(strong), object{"descr": "x"}).Problem(http.StatusForbidden, "forbidden")
	unchanged(t, c, strong)
	addApp(t, admin, "another", object{"category": "4", "scopes": []any{"platform:admin"}})
	admin.Patch(path(strong), object{"scopes": []any{"users:read"}}).OK(nil)
}

func TestBatchCreate(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	addApp(t, c, "taken", object{"domain_sn": "d1"})
	items := func(list ...object) object { return object{"items": list} }
	c.Post("/v1/batch/applications", items(object{"name": "a"}, object{"name": " ", "login_url": "x"})).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.items[1].name", "body.items[1].login_url")
	c.Post("/v1/batch/applications",
		items(object{"name": "a"}, object{"name": "TAKEN"}, object{"name": "b", "domain_sn": "D1"},
			object{"name": "A"})).
		Problem(http.StatusConflict, "already_exists", "body.items[1].name", "body.items[2].domain_sn",
			"body.items[3].name")
	c.Post("/v1/batch/applications", items()).Problem(http.StatusBadRequest, "invalid_parameters")
	assert.EqualValues(t, 1, c.Get("/v1/applications").Object()["total"])

	once := c.With("Idempotency-Key", "k1")
	made := once.Post("/v1/batch/applications",
		items(object{"name": "a"}, object{"name": "b", "protocol_type": "cas"})).Object()
	assert.Equal(t, made, once.Post("/v1/batch/applications",
		items(object{"name": "a"}, object{"name": "b", "protocol_type": "cas"})).Object())
	for i, name := range []string{"a", "b"} {
		app := made["items"].([]any)[i].(object)
		assert.Equal(t, name, app["name"])
		assert.Regexp(t, `^[A-Za-z0-9_-]{43}$`, app["client_secret"])
		delete(app, "client_secret")
		unchanged(t, c, app)
		c.Get(path(app, "protocols", app["protocol_type"].(string))).OK(nil)
	}
}

// An application is deleted with everything that belongs to it, unless grants refer to it or the permissions service
// does not answer.
func TestDelete(t *testing.T) {
	t.Parallel()
	s := alone(t)
	c := in(s, "acme")
	app := addApp(t, c, "a")
	answer := c.Delete(path(app), nil)
	answer.Problem(http.StatusServiceUnavailable, "unavailable")
	assert.NotEmpty(t, answer.Header.Get("Retry-After"))
	count := 2
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "permissions", "grants-of-application",
		func(_ context.Context, q object) (object, error) {
			assert.Equal(t, object{"id": app["id"]}, q)
			return object{"count": count}, nil
		}))
	refusal := c.Delete(path(app), nil).Problem(http.StatusConflict, "in_use")
	require.Len(t, refusal.Errors, 1)
	assert.EqualValues(t, 2, refusal.Errors[0].Count)
	assert.Equal(t, "auth_rules", refusal.Errors[0].Location)
	unchanged(t, c, app)
	c.With("If-Match", `"7"`).Delete(path(app), nil).Problem(http.StatusPreconditionFailed, "version_mismatch")
	count = 0
	c.Delete(path(app)+"?dry_run=true", nil).OK(nil)
	unchanged(t, c, app)
	assert.Equal(t, object{"id": app["id"]}, c.Delete(path(app), nil).Object())
	c.Delete(path(app), nil).Problem(http.StatusNotFound, "not_found")
	for _, below := range []string{"", "/configs", "/protocols", "/protocols/oidc", "/accounts", "/logo"} {
		c.Get(path(app)+below).Problem(http.StatusNotFound, "not_found")
	}
	for _, collection := range []string{"applications", "secret_hashes", "protocols"} {
		assert.Empty(t, testkit.Stored(t, s, "acme", collection), collection)
	}
	addApp(t, c, "a") // the name is free again
}
