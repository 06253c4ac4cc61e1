package applications_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
)

func TestUpdate(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "a", object{"descr": "x", "config_prop": object{"default_login_method": "pwd"}})
	s.Clock.Advance(time.Second)
	changed := c.Patch(path(app), object{
		"name": "b", "descr": nil, "config_prop": object{"default_reg_method": "mail"}, "sso_enabled": "0", "id": "7",
		"client_id": "mine",
		"secrets":   []any{}, "idps": []any{object{"config_id": "1", "provider_code": "x"}},
	}).Object()
	want := app
	want["name"], want["descr"], want["sso_enabled"], want["version"] = "b", "", "0", 2.0
	want["config_prop"] = object{"default_login_method": "pwd", "default_reg_method": "mail", "sso_enabled": "0",
		"mfa_enabled": "0"}
	want["time_modified"] = changed["time_modified"]
	assert.Equal(t, want, changed)
	unchanged(t, c, changed)

	assert.Equal(t, changed, c.Patch(path(app), changed).Object(), "a record may be sent back as it is")
	assert.Equal(t, "1", c.Patch(path(app), object{"config_prop": object{"sso_enabled": "1"}}).Object()["sso_enabled"])
	assert.Equal(t, "1", c.Patch(path(app), object{"mfa_enabled": "1"}).Object()["config_prop"].(object)["mfa_enabled"])
	for name, row := range map[string]struct {
		change   object
		location string
	}{
		"name":     {object{"name": nil}, "body.name"},
		"status":   {object{"status": "0"}, "body.status"},
		"multi":    {object{"multi_account_enabled": "1"}, "body.multi_account_enabled"},
		"type":     {object{"type": "2"}, "body.type"},
		"template": {object{"template_id": "gitlab"}, "body.template_id"},
		"url":      {object{"login_url": "x"}, "body.login_url"},
		"saml": {object{"protocol_prop": object{"lifetime_in_seconds": 0}},
			"body.protocol_prop.lifetime_in_seconds"},
	} {
		answer := c.Patch(path(app)+"?dry_run=true", row.change)
		assert.Equal(t, http.StatusBadRequest, answer.Status, name)
		assert.Contains(t, string(answer.Body), row.location+`"`, name)
	}
	// Each setting is changed in one of its two places, and sent unchanged in the other: that is no contradiction.
	changed = c.Patch(path(app), object{"sso_enabled": "0", "mfa_enabled": "1",
		"config_prop": object{"sso_enabled": "1", "mfa_enabled": "0"}}).Object()
	assert.Equal(t, []any{"0", "0"}, []any{changed["sso_enabled"], changed["mfa_enabled"]})
	c.Patch("/v1/applications/1", object{}).Problem(http.StatusNotFound, "not_found")
	in(s, "globex").Patch(path(app), object{}).Problem(http.StatusNotFound, "not_found")
}

// The client id is unique over all tenants; names and domains are unique within a tenant.
func TestUniqueInTheTenant(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "Straße", object{"domain_sn": "Ｄ1"})
	c.Post("/v1/applications", object{"name": "STRASSE", "domain_sn": "d1"}).
		Problem(http.StatusConflict, "already_exists", "body.name", "body.domain_sn")
	other := addApp(t, in(s, "globex"), "Straße", object{"domain_sn": "Ｄ1"})
	assert.NotEqual(t, app["client_id"], other["client_id"])
	addApp(t, c, "no domain")
	addApp(t, c, "none either")
}

func TestStates(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "a")
	status := func(member string) any { return c.Get(path(app)).Object()[member] }
	for range 2 { // the second time nothing changes
		disabled := c.Post(path(app, "disable"), nil).Object()
		assert.Equal(t, "0", disabled["status"])
		assert.EqualValues(t, 2, disabled["version"])
		assert.Equal(t, disabled, c.Get(path(app)).Object())
	}
	assert.Equal(t, "1", c.Post(path(app, "enable"), nil).Object()["status"])
	for what, member := range map[string]string{"sso": "sso_enabled", "mfa": "mfa_enabled",
		"multi-accounts": "multi_account_enabled"} {
		for operation, value := range map[string]string{"enable": "1", "disable": "0"} {
			assert.Equal(t, object{}, c.With("Content-Type",
				"application/x-www-form-urlencoded").Post(path(app, what, operation), nil).Object())
			assert.Equal(t, value, status(member))
			if what != "multi-accounts" {
				assert.Equal(t, value, c.Get(path(app, "configs")).Object()[member])
			}
			c.Post("/v1/applications/1/"+what+"/"+operation, nil).Problem(http.StatusNotFound, "not_found")
			in(s, "globex").Post(path(app, what, operation), nil).Problem(http.StatusNotFound, "not_found")
			c.With("If-Match", `"99"`).Post(path(app, what, operation), nil).Problem(http.StatusPreconditionFailed,
				"version_mismatch")
		}
	}
	once := c.With("Idempotency-Key", "k1")
	once.Post(path(app, "sso/enable"), nil).OK(nil)
	assert.Equal(t, "true", once.Post(path(app, "sso/enable"), nil).Header.Get("Idempotent-Replayed"))
}

func TestConfigs(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	app := addApp(t, c, "a", object{"config_prop": object{"access_policy": object{"forget_password": []any{"mail"},
		"x": 1}}})
	answer := c.Get(path(app, "configs"))
	assert.Equal(t, app["config_prop"], any(answer.Object()))
	assert.Equal(t, `"1"`, answer.Header.Get("ETag"))
	assert.Equal(t, http.StatusNotModified, c.With("If-None-Match", `"1"`).Get(path(app, "configs")).Status)
	changed := c.With("If-Match", `"1"`).Patch(path(app, "configs"),
		object{"mfa_enabled": "1", "access_policy": object{"x": nil}, "developer_id": "d"})
	assert.Equal(t, object{"mfa_enabled": "1", "sso_enabled": "1", "developer_id": "d",
		"access_policy": object{"forget_password": []any{"mail"}}}, changed.Object())
	assert.Equal(t, `"2"`, changed.Header.Get("ETag"))
	assert.Equal(t, "1", c.Get(path(app)).Object()["mfa_enabled"])
	c.Patch(path(app, "configs"), object{"sso_enabled": "on", "x": 1}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.sso_enabled", "body.x")
	c.Patch(path(app, "configs"), object{"tenant_id": "globex"}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.tenant_id")
	c.With("If-Match", `"1"`).Patch(path(app, "configs"), object{}).Problem(http.StatusPreconditionFailed,
		"version_mismatch")
	c.Get("/v1/applications/1/configs").Problem(http.StatusNotFound, "not_found")
}

func TestList(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addApp(t, in(s, "globex"), "Expenses")
	for _, app := range []object{
		{"name": "Expenses", "category": "1"}, {"name": "Travel expenses", "category": "4"},
		{"name": "费用管理", "category": "4"},
		{"name": "GitLab", "template_id": "gitlab",
			"template_params": object{"params": object{"base_url": "https://gitlab.acme.test"}}},
	} {
		s.Clock.Advance(time.Second)
		addApp(t, c, "", app)
	}
	disabled := c.Get("/v1/applications?name=Travel").Object()["items"].([]any)[0].(object)
	s.Clock.Advance(time.Second)
	c.Post(path(disabled, "disable"), nil).OK(nil)
	for query, want := range map[string][]any{
		"":                          {"Expenses", "Travel expenses", "费用管理", "GitLab"},
		"name=EXPENSES":             {"Expenses", "Travel expenses"},
		"name=%E7%94%A8":            {"费用管理"},
		"name=travel%20expenses":    {"Travel expenses"},
		"name=elephant":             {},
		"type=2":                    {"GitLab"},
		"types=1,2":                 {"Expenses", "Travel expenses", "费用管理", "GitLab"},
		"types=2&type=1":            {},
		"types=%202%20,%202":        {"GitLab"},
		"status=0":                  {"Travel expenses"},
		"category=4":                {"Travel expenses", "费用管理"},
		"category=4&status=1":       {"费用管理"},
		"page_sort=name[desc]":      {"费用管理", "Travel expenses", "GitLab", "Expenses"},
		"name=e&status=1&type=1":    {"Expenses"},
		"page_sort=time_modified":   {"Expenses", "费用管理", "GitLab", "Travel expenses"},
		"category=4&page_sort=name": {"Travel expenses", "费用管理"},
	} {
		assert.Equal(t, want, c.Items("/v1/applications?"+query, "name"), query)
		assert.EqualValues(t, len(want), c.Get("/v1/applications?" + query).Object()["total"], query)
	}
	for query, location := range map[string]string{
		"type=3": "query.type", "types=1,3": "query.types", "status=x": "query.status", "category=5": "query.category",
		"page_sort=descr": "query.page_sort",
	} {
		c.Get("/v1/applications?"+query).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
}

func TestFindByDomain(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	first := addApp(t, c, "a", object{"login_url": "https://Apps.acme.test:8443/a", "domain_sn": "a-1"})
	s.Clock.Advance(time.Second)
	second := addApp(t, c, "b", object{"login_url": "https://apps.acme.test/b", "domain_sn": "b-1"})
	chinese := addApp(t, c, "c", object{"login_url": "https://例子.广告:8443/"})
	for query, want := range map[string]object{
		"domain=apps.acme.test": first, "domain=APPS.acme.test:8443": first, "domain_sn=B-1": second,
		"domain=apps.acme.test&domain_sn=b-1": second, "domain=xn--fsqu00a.xn--4rr70v": chinese,
		"domain=%E4%BE%8B%E5%AD%90.%E5%B9%BF%E5%91%8A": chinese, "domain=XN--fsqu00a.xn--4rr70v:8443": chinese,
	} {
		assert.Equal(t, want, c.Get("/v1/application?"+query).Object(), query)
	}
	for _, query := range []string{"domain=acme.test", "domain_sn=c", "domain=apps.acme.test&domain_sn=c"} {
		c.Get("/v1/application?"+query).Problem(http.StatusNotFound, "not_found")
	}
	c.Get("/v1/application").Problem(http.StatusBadRequest, "invalid_parameters", "query.domain")
	in(s, "globex").Get("/v1/application?domain_sn=a-1").Problem(http.StatusNotFound, "not_found")
}

func TestRefreshSecrets(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := c.Post("/v1/applications", object{"name": "a"}).Object()
	s.As("acme", auth.ApplicationsWrite).Post(path(app, "secrets"), nil).Problem(http.StatusForbidden, "forbidden")
	hints := func() (list []any) {
		for _, secret := range c.Get(path(app)).Object()["secrets"].([]any) {
			list = append(list, secret.(object)["hint"])
		}
		return list
	}
	hintOf := func(answer object) any { return "…" + answer["client_secret"].(string)[39:] }

	fresh := c.Post(path(app, "secrets"), nil).Object()
	assert.Equal(t, app["client_id"], fresh["client_id"])
	assert.Equal(t, s.Clock.Now().String(), fresh["time_expires_old"])
	assert.NotEqual(t, app["client_secret"], fresh["client_secret"])
	assert.Equal(t, []any{hintOf(fresh)}, hints(), "without grace_seconds the old one expires at once")

	next := c.Post(path(app, "secrets?grace_seconds=60"), nil).Object()
	assert.Equal(t, s.Clock.Now().Add(time.Minute).String(), next["time_expires_old"])
	assert.Equal(t, []any{hintOf(fresh), hintOf(next)}, hints())
	for range 3 {
		c.Post(path(app, "secrets?grace_seconds=7776000"), nil).OK(nil)
	}
	full := c.Get(path(app)).Object()
	c.Post(path(app, "secrets?grace_seconds=60"), nil).Problem(http.StatusConflict, "invalid_state")
	unchanged(t, c, full)
	s.Clock.Advance(time.Minute)
	assert.Len(t, hints(), 4, "expired secrets are not listed")
	for _, query := range []string{"-1", "7776001", "x"} {
		c.Post(path(app, "secrets?grace_seconds="+query), nil).Problem(http.StatusBadRequest, "invalid_parameters",
			"query.grace_seconds")
	}
	c.Post("/v1/applications/1/secrets", nil).Problem(http.StatusNotFound, "not_found")
	once := c.With("Idempotency-Key", "k1")
	require.Equal(t, once.Post(path(app, "secrets"), nil).Object(), once.Post(path(app, "secrets"), nil).Object())
}
