package applications_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// addAccount creates a sub-account and returns the record.
func addAccount(t testing.TB, c *testkit.Client, app object, user, account string, more ...object) object {
	t.Helper()
	body := object{"user_id": user, "account": account}
	for _, members := range more {
		for name, value := range members {
			body[name] = value
		}
	}
	return c.Post(path(app, "accounts"), body).Object()
}

// multi is an application that allows users several sub-accounts.
func multi(t testing.TB, c *testkit.Client, name string) object {
	t.Helper()
	app := addApp(t, c, name)
	c.Post(path(app, "multi-accounts/enable"), nil).OK(nil)
	return app
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "a")
	account := addAccount(t, c, app, "7", "li.wei", object{
		"display_name": "李伟", "password": "form fill", "sys_ext_props": object{"a": 1}, "is_default": "0",
	})
	for member, want := range (object{
		"app_id": app["id"], "user_id": "7", "account": "li.wei", "display_name": "李伟", "status": "1",
		"is_default": "1", "password": "******",
		"sys_ext_props": object{"a": 1.0}, "free_ext_props": object{}, "version": 1.0, "tenant_id": "acme",
	}) {
		assert.Equal(t, want, account[member], member)
	}
	one := path(app, "accounts", account["id"].(string))
	assert.Equal(t, account, c.Get(one).Object())
	for _, document := range testkit.Stored(t, s, "acme", "sealed_values") {
		assert.NotContains(t, document, "form fill")
	}

	changed := c.Do(http.MethodPut, one, object{"user_id": "7", "account": "LI.WEI", "password": "******"}).Object()
	assert.Equal(t, []any{"LI.WEI", "", "******", "1", object{}}, []any{
		changed["account"], changed["display_name"], changed["password"], changed["is_default"],
		changed["sys_ext_props"],
	})
	assert.Equal(t, "", c.Do(http.MethodPut, one, object{"user_id": "7", "account": "x"}).Object()["password"])
	for name, row := range map[string]struct {
		body     object
		location string
	}{
		"another user": {object{"user_id": "8", "account": "x"}, "body.user_id"},
		"status":       {object{"user_id": "7", "account": "x", "status": "0"}, "body.status"},
		"default":      {object{"user_id": "7", "account": "x", "is_default": "0"}, "body.is_default"},
		"no account":   {object{"user_id": "7"}, "body.account"},
		"blank":        {object{"user_id": "7", "account": " "}, "body.account"},
		"props":        {object{"user_id": "7", "account": "x", "sys_ext_props": "x"}, "body.sys_ext_props"},
		"long":         {object{"user_id": "7", "account": strings.Repeat("x", 257)}, "body.account"},
	} {
		t.Run(name, func(*testing.T) {
			answer := c.Do(http.MethodPut, one, row.body)
			answer.Problem(http.StatusBadRequest, "invalid_parameters", row.location)
		})
	}
	c.With("If-Match", `"1"`).Do(http.MethodPut, one, object{"user_id": "7", "account": "y"}).
		Problem(http.StatusPreconditionFailed, "version_mismatch")

	id := account["id"].(string)
	assert.Equal(t, object{}, c.With("Content-Type", "multipart/form-data; boundary=x").Post(one+"/disable",
		"--x--\r\n").Object())
	assert.Equal(t, "0", c.Get(one).Object()["status"])
	c.Post(one+"/enable", nil).Problem(http.StatusBadRequest, "invalid_parameters", "query.id")
	c.Post(one+"/enable?id=1", nil).Problem(http.StatusBadRequest, "invalid_parameters", "query.id")
	assert.Equal(t, object{}, c.Post(one+"/enable?id="+id, nil).Object())
	assert.Equal(t, "1", c.Get(one).Object()["status"])

	other := addApp(t, c, "b")
	c.Get(path(other, "accounts", id)).Problem(http.StatusNotFound, "not_found")
	c.Delete(path(other, "accounts", id), nil).Problem(http.StatusNotFound, "not_found")
	in(s, "globex").Get(one).Problem(http.StatusNotFound, "not_found")
	c.Post("/v1/applications/1/accounts", object{"user_id": "7", "account": "x"}).Problem(http.StatusNotFound,
		"not_found")
	assert.Equal(t, object{}, c.Delete(one, nil).Object())
	c.Delete(one, nil).Problem(http.StatusNotFound, "not_found")
	assert.Empty(t, testkit.Stored(t, s, "acme", "sealed_values"))
	assert.Empty(t, testkit.Stored(t, s, "acme", "account_holders"))
}

// A user who does not exist gets no sub-account. Nobody gets one while the users service does not answer.
func TestAccountsOfUsers(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	app := addApp(t, c, "a")
	c.Post(path(app, "accounts"), object{"user_id": "1048577", "account": "x"}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.user_id")
	c.Post(path(app, "accounts"), object{"account": "x"}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.user_id")
	unanswered := in(alone(t), "acme")
	app = addApp(t, unanswered, "a")
	unanswered.Post(path(app, "accounts"), object{"user_id": "7", "account": "x"}).
		Problem(http.StatusServiceUnavailable, "unavailable")
}

func TestSeveralAccounts(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "a")
	first := addAccount(t, c, app, "7", "one")
	c.Post(path(app, "accounts"), object{"user_id": "7", "account": "two"}).Problem(http.StatusConflict,
		"already_exists", "body.user_id")
	c.Post(path(app, "accounts"), object{"user_id": "8", "account": "ONE"}).Problem(http.StatusConflict,
		"already_exists", "body.account")
	addAccount(t, c, addApp(t, c, "b"), "7", "one") // in another application
	c.Post(path(app, "multi-accounts/enable"), nil).OK(nil)
	isDefault := func(account object) any {
		return c.Get(path(app, "accounts", account["id"].(string))).Object()["is_default"]
	}
	s.Clock.Advance(time.Second)
	second := addAccount(t, c, app, "7", "two")
	assert.Equal(t, []any{"1", "0"}, []any{isDefault(first), isDefault(second)})
	s.Clock.Advance(time.Second)
	third := addAccount(t, c, app, "7", "three", object{"is_default": "1"})
	assert.Equal(t, []any{"0", "0", "1"}, []any{isDefault(first), isDefault(second), isDefault(third)})
	c.Do(http.MethodPut, path(app, "accounts", second["id"].(string)),
		object{"user_id": "7", "account": "two", "is_default": "1"}).OK(nil)
	assert.Equal(t, []any{"0", "1", "0"}, []any{isDefault(first), isDefault(second), isDefault(third)})

	c.Post(path(app, "multi-accounts/disable"), nil).Problem(http.StatusConflict, "in_use")
	c.Delete(path(app, "accounts", second["id"].(string)), nil).OK(nil)
	assert.Equal(t, []any{"1", "0"}, []any{isDefault(first), isDefault(third)}, "the oldest becomes the default")
	c.Delete(path(app, "accounts", first["id"].(string)), nil).OK(nil)
	assert.Equal(t, "1", isDefault(third))
	c.Post(path(app, "multi-accounts/disable"), nil).OK(nil)
	assert.Equal(t, "0", c.Get(path(app)).Object()["multi_account_enabled"])
}

func TestBatchOfAccounts(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	app := multi(t, c, "a")
	batch := "/v1/batch/applications/" + app["id"].(string) + "/accounts"
	items := func(list ...object) object { return object{"items": list} }
	addAccount(t, c, app, "1", "taken")
	c.Post(batch, items(object{"user_id": "2", "account": "a"}, object{"user_id": "1048577", "account": ""})).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.items[1].account")
	c.Post(batch, items(object{"user_id": "2", "account": "a"}, object{"user_id": "1048577", "account": "b"})).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.items[1].user_id")
	c.Post(batch, items(object{"user_id": "2", "account": "a"}, object{"user_id": "3", "account": "Taken"},
		object{"user_id": "4", "account": "A"})).
		Problem(http.StatusConflict, "already_exists", "body.items[1].account", "body.items[2].account")
	once := c.With("Idempotency-Key", "k1")
	body := items(object{"user_id": "2", "account": "a"}, object{"user_id": "2", "account": "b"},
		object{"user_id": "2", "account": "c", "is_default": "1"},
		object{"user_id": "1", "account": "d", "is_default": "1"})
	made := once.Post(batch, body)
	assert.Equal(t, []any{"0", "0", "1", "1"}, values(t, made, "is_default"))
	assert.Equal(t, made.Object(), once.Post(batch, body).Object())
	assert.Equal(t, []any{"0"}, c.Items(path(app, "accounts?account=taken"), "is_default"))
	c.Post(path(app, "multi-accounts/disable"), nil).Problem(http.StatusConflict, "in_use")

	strict := addApp(t, c, "b")
	c.Post("/v1/batch/applications/"+strict["id"].(string)+"/accounts",
		items(object{"user_id": "2", "account": "a"}, object{"user_id": "2", "account": "b"})).
		Problem(http.StatusConflict, "already_exists", "body.items[1].user_id")
	assert.EqualValues(t, 0, c.Get(path(strict, "accounts")).Object()["total"])
}

func TestAccountLists(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app, other := multi(t, c, "a"), addApp(t, c, "b")
	addAccount(t, c, other, "1", "li.wei")
	for i, row := range [][3]string{{"1", "li.wei", "李伟"}, {"1", "li.wei.admin", "李伟 (admin)"},
		{"2", "wang.fang", "王芳"}, {"3", "Zoë", ""}} {
		s.Clock.Advance(time.Second)
		account := addAccount(t, c, app, row[0], row[1], object{"display_name": row[2]})
		if i == 2 {
			c.Post(path(app, "accounts", account["id"].(string), "disable"), nil).OK(nil)
		}
	}
	for query, want := range map[string][]any{
		"":                                {"li.wei", "li.wei.admin", "wang.fang", "Zoë"},
		"user_id=1":                       {"li.wei", "li.wei.admin"},
		"account=LI.WEI":                  {"li.wei"},
		"display_name=%E7%8E%8B%E8%8A%B3": {"wang.fang"},
		"status=0":                        {"wang.fang"},
		"keyword=%E4%BC%9F":               {"li.wei", "li.wei.admin"},
		"keyword=wang.FANG":               {"wang.fang"},
		"keyword=.":                       {"li.wei", "li.wei.admin", "wang.fang"},
		"user_id=1&keyword=admin":         {"li.wei.admin"},
		"page_sort=account[desc]":         {"Zoë", "wang.fang", "li.wei.admin", "li.wei"},
		"page_sort=display_name":          {"Zoë", "li.wei", "li.wei.admin", "wang.fang"},
		"page_size=2&page_num=2":          {"wang.fang", "Zoë"},
	} {
		assert.Equal(t, want, c.Items(path(app, "accounts?"+query), "account"), query)
	}
	c.Get("/v1/applications/1/accounts").Problem(http.StatusNotFound, "not_found")
	in(s, "globex").Get(path(app, "accounts")).Problem(http.StatusNotFound, "not_found")
	c.Get(path(app, "accounts?page_sort=password")).Problem(http.StatusBadRequest, "invalid_parameters",
		"query.page_sort")

	condition := func(field, op string, value any) object { return object{"field": field, "op": op, "value": value} }
	for name, row := range map[string]struct {
		match string
		list  []object
		want  []any
	}{
		"none":          {"", nil, []any{"li.wei", "li.wei.admin", "wang.fang", "Zoë"}},
		"eq":            {"all", []object{condition("account", "eq", "LI.wei")}, []any{"li.wei"}},
		"in":            {"all", []object{condition("user_id", "in", []any{"2", "3", "9"})}, []any{"wang.fang", "Zoë"}},
		"prefix":        {"all", []object{condition("account", "prefix", "li.")}, []any{"li.wei", "li.wei.admin"}},
		"contains":      {"all", []object{condition("display_name", "contains", "ADMIN")}, []any{"li.wei.admin"}},
		"contains long": {"all", []object{condition("display_name", "contains", "李伟 (admin)")}, []any{"li.wei.admin"}},
		"all": {"all", []object{condition("account", "prefix", "li"),
			condition("account", "contains", "admin")}, []any{"li.wei.admin"}},
		"any": {"any", []object{condition("status", "eq", "0"), condition("account", "contains", "admin")},
			[]any{"li.wei.admin", "wang.fang"}},
		"any of none": {"any", []object{}, []any{"li.wei", "li.wei.admin", "wang.fang", "Zoë"}},
	} {
		body := object{"conditions": row.list}
		if row.list == nil {
			body["conditions"] = []any{}
		}
		if row.match != "" {
			body["match"] = row.match
		}
		assert.Equal(t, row.want, values(t, c.Post(path(app, "accounts-query"), body), "account"), name)
	}
	first := c.Post(path(app, "accounts-query?page_size=3"), object{"conditions": []any{}}).Object()
	rest := c.Post(path(app, "accounts-query?page_size=3&page_token="+fmt.Sprint(first["next_page_token"])),
		object{"conditions": []any{}})
	assert.Equal(t, []any{"Zoë"}, values(t, rest, "account"))
	for name, bad := range map[string]struct {
		condition object
		location  string
	}{
		"field":    {condition("password", "eq", "x"), "body.conditions[0].field"},
		"op":       {condition("account", "matches", "x"), "body.conditions[0].op"},
		"contains": {condition("user_id", "contains", "x"), "body.conditions[0].op"},
		"many":     {condition("account", "eq", []any{"x", "y"}), "body.conditions[0].value"},
		"empty":    {condition("account", "eq", ""), "body.conditions[0].value"},
		"nothing":  {condition("account", "in", []any{}), "body.conditions[0].value"},
	} {
		t.Run(name, func(*testing.T) {
			c.Post(path(app, "accounts-query"), object{"conditions": []any{bad.condition}}).
				Problem(http.StatusBadRequest, "invalid_parameters", bad.location)
		})
	}
	many := make([]object, 21)
	for i := range many {
		many[i] = condition("account", "eq", "x")
	}
	require.Equal(t, http.StatusBadRequest, c.Post(path(app, "accounts-query"), object{"conditions": many}).Status)
}

// A user's sub-accounts in all applications, of the caller's tenant alone.
func TestAccountsOfAUser(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	first, second := multi(t, c, "a"), addApp(t, c, "b")
	ids := map[string]string{}
	for _, row := range []struct {
		app           object
		user, account string
	}{
		{first, "1", "li.wei"}, {second, "1", "liwei"}, {second, "2", "wang.fang"}, {first, "1", "admin"},
	} {
		ids[row.account] = addAccount(t, c, row.app, row.user, row.account)["id"].(string)
		s.Clock.Advance(time.Second)
	}
	globex := in(s, "globex")
	addAccount(t, globex, addApp(t, globex, "a"), "1", "elsewhere")
	for query, want := range map[string][]any{
		"user_id=1":                              {"li.wei", "liwei", "admin"},
		"user_id=2":                              {"wang.fang"},
		"user_id=3":                              {},
		"user_id=1&page_sort=time_created[desc]": {"admin", "liwei", "li.wei"},
		"user_id=1&page_sort=account":            {"admin", "li.wei", "liwei"},
		"user_id=1&page_size=2&page_num=2":       {"admin"},
	} {
		assert.Equal(t, want, c.Items("/v1/accounts?"+query, "account"), query)
	}
	page := c.Get("/v1/accounts?user_id=1&page_size=2").Object()
	assert.EqualValues(t, 3, page["total"])
	assert.Equal(t, first["id"], page["items"].([]any)[0].(object)["app_id"])
	next := "/v1/accounts?user_id=1&page_size=2&page_token=" + page["next_page_token"].(string)
	assert.Equal(t, []any{"admin"}, c.Items(next, "account"))
	c.Delete(path(second, "accounts", ids["liwei"]), nil).OK(nil)
	assert.Equal(t, []any{"li.wei", "admin"}, c.Items("/v1/accounts?user_id=1", "account"))
	c.Delete(path(first), nil).OK(nil)
	assert.Empty(t, c.Items("/v1/accounts?user_id=1", "account"))

	for query, location := range map[string]string{
		"": "query.user_id", "user_id=": "query.user_id", "user_id=1&page_sort=password": "query.page_sort",
		"user_id=1&page_size=201": "query.page_size", "user_id=2&page_token=x": "query.page_token",
	} {
		c.Get("/v1/accounts?"+query).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
}
