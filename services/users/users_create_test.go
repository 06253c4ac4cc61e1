package users_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestCreateUser(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	answer := c.Post("/v1/users", object{"username": "李伟.1"})
	user := answer.Object()
	now := s.Clock.Now().String()
	require.Equal(t, object{
		"id": user["id"], "tenant_id": "acme", "username": "李伟.1", "display_name": "", "email": "", "mobile": "",
		"employee_number": "", "gender": "",
		"locale": "", "zoneinfo": "", "avatar_url": "", "status": "1", "locked": false, "lock_reason": "",
		"locked_until": nil, "email_verified": false,
		"mobile_verified": false, "real_name_status": "none", "real_name": "", "id_number_masked": "",
		"password_set":         false,
		"must_change_password": false, "time_password_changed": nil, "time_last_login": nil, "time_resigned": nil, "managed_by": nil,
		"sys_ext_props": object{}, "free_ext_props": object{}, "version": 1.0, "time_created": now,
		"time_modified": now,
	}, user)
	require.Regexp(t, `^[1-9][0-9]{0,15}$`, user["id"])
	require.Equal(t, `"1"`, answer.Header.Get("ETag"))
	require.Equal(t, "application/json; charset=utf-8", answer.Header.Get("Content-Type"))
	unchanged(t, c, user)
	require.Equal(t, `"1"`, c.Get(path(user)).Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, c.With("If-None-Match", `"1"`).Get(path(user)).Status)

	all := object{
		"username": "wáng.芳_2-x@y+z", "display_name": "王芳 <b>&\u2028", "email": "wang.fang@acme.test",
		"mobile":          "+8613800000001",
		"employee_number": "A-18", "gender": "女", "locale": "zh-Hans-CN", "zoneinfo": "Asia/Shanghai", "status": "0",
		"email_verified":  true,
		"mobile_verified": true, "must_change_password": true, "sys_ext_props": object{"a": 1.0},
		"free_ext_props": object{"键": []any{"值"}},
	}
	user = c.Post("/v1/users", all).Object()
	for name, value := range all {
		require.Equal(t, value, user[name], name)
	}
	unchanged(t, c, user)
}

func TestUsersMembers(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("字", n) }
	for member, values := range map[string]struct{ good, bad []any }{
		"username": {
			[]any{"'!#^~", "o'neill!#1^2~x@acme", "a", long(255), "Ünïcode", "0", ".", "नमस्ते", "a_b-c.d@e+f", "٣",
				`DOMAIN\user`, "first last", "a&b@x.com", "/ % * = $ ( : ,", "a?b", "a`b", "a|b", "a{b}", "a’b", "a～b",
				"a\"b", "<a>", "🙂", "ｌｉ．ｗｅｉ"},
			[]any{"", long(256), " ", "a\u3000b", " a", "a ", "a\n", "a\tb", "a\x00", "a\u00a0b", "a\u200bb", "\u3164",
				"a\u202eb", "li\u034f", "葛\U000e0100", "a\ufe0f", "\ufffd", nil, 1, []any{}},
		},
		"display_name": {[]any{"", long(256), "O'Neill, \"Bob\" <x>", "🙂"},
			[]any{long(257), "a\nb", "a\x00", "\u0085", 1}},
		"employee_number": {[]any{"", long(64)}, []any{long(65), "a\tb"}},
		"gender":          {[]any{"", long(64)}, []any{long(65), "\x7f"}},
		"email": {
			[]any{"", "a@b", "a.b+c@x-y.example", strings.Repeat("l", 64) + "@a.example", "李@例子.测试",
				"o'neill@acme.test", `"li wei"@b`, `"a@b\"\\"@c`, "a@[192.0.2.1]", "a@[IPv6:2001:db8::1]"},
			[]any{
				"a", "@b", "a@", "a@@b", "a b@c", "a@b c", "Li <a@b>", "a@b\n", "a@-b", "a@b-.c", "a@b..c", "a@.b",
				"a@b.", "a@b!c", "a@b_c", `"a"b@c`, `"a@c`, `""@c`, `"a"b"@c`, "\"a\n\"@c", "a@[192.0.2]",
				"a@[2001:db8::1]", "a@[192.0.2.1", "a@[IPv6:fe80::1%eth0]", ".a@b", "a..b@c",
				strings.Repeat("l", 65) + "@a.example", "a@" + strings.Repeat("l", 64) + ".example", "a@" +
					strings.Repeat("l.", 126) + "l",
			},
		},
		"mobile": {[]any{"", "+8613800000000", "+12", "+123456789012345"},
			[]any{"13800000000", "+0123", "+1", "+1234567890123456", "+86 138", "+８６１３８", "+86\n", 86}},
		"locale": {[]any{"", "zh-CN", "en", "sr-Latn-RS"}, []any{"chinese language", "x", "zh-CN\x00",
			strings.Repeat("en-", 30)}},
		"zoneinfo": {[]any{"", "Asia/Shanghai", "UTC"}, []any{"Mars/Olympus", "Local", "../etc/passwd",
			"/etc/localtime", "Asia/Shanghai\x00"}},
		"status":               {[]any{"1", "0"}, []any{"resigned", "2", 1, true}},
		"email_verified":       {[]any{true, false}, []any{"true", 1}},
		"must_change_password": {[]any{true, false}, []any{"1"}},
	} {
		t.Run(member, func(t *testing.T) {
			t.Parallel()
			_, c := acme(t)
			for i, value := range values.good {
				body := object{"username": member + strings.Repeat("x", i), member: value}
				user := c.Post("/v1/users?dry_run=true", body).Object()
				assert.Equal(t, value, user[member])
			}
			for _, value := range values.bad {
				body := object{"username": "bad", member: value}
				c.Post("/v1/users", body).Problem(http.StatusBadRequest, "invalid_parameters", "body."+member)
			}
			require.Empty(t, c.Items("/v1/users", "id"))
		})
	}
}

func TestCreateUserTellsAllFaults(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	answer := c.Post("/v1/users", object{
		"username": "secret name ", "email": "secret", "mobile": "secret", "zoneinfo": "secret", "status": "resigned",
		"password": "secret",
		"locked":   true, "real_name": "secret",
	})
	answer.Problem(http.StatusBadRequest, "invalid_parameters", "body.username", "body.email", "body.mobile",
		"body.zoneinfo", "body.status",
		"body.password", "body.locked", "body.real_name")
	require.NotContains(t, string(answer.Body), "secret")
	c.Post("/v1/users", object{"display_name": "no username"}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.username")
	c.Post("/v1/users", object{}).Problem(http.StatusBadRequest, "invalid_parameters", "body.username")
	require.Empty(t, c.Items("/v1/users", "id"))
}

// A record that was read can be sent as a new one: its read-only members are ignored; members that other operations
// change must be blank.
func TestCreateUserFromRecord(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	first := addUser(t, c, "first", object{"display_name": "甲", "email": "first@acme.test",
		"password": "a good Passw0rd"})
	s.Clock.Advance(1000)

	body := c.Get(path(first)).Object()
	body["username"], body["email"] = "second", "second@acme.test"
	second := c.Post("/v1/users", body).Object()
	require.NotEqual(t, first["id"], second["id"])
	require.Equal(t, 1.0, second["version"])
	require.Equal(t, false, second["password_set"])
	require.Nil(t, second["time_password_changed"])
	require.Equal(t, "甲", second["display_name"])

	body["email"] = "first@acme.test"
	body["username"] = "third"
	c.Post("/v1/users", body).Problem(http.StatusConflict, "already_exists", "body.email")
	for member, value := range map[string]any{
		"locked": true, "lock_reason": "x", "locked_until": "2030-01-01T00:00:00Z", "real_name_status": "verified",
		"real_name": "李", "id_number_masked": "1**2",
	} {
		c.Post("/v1/users", object{"username": "fourth", member: value}).
			Problem(http.StatusBadRequest, "invalid_parameters", "body."+member)
	}
}

func TestUniqueNames(t *testing.T) {
	t.Parallel()
	const sharpS = "straße"
	for name, row := range map[string]struct {
		first, second object
		taken         []string
	}{
		"username": {object{"username": "li.wei"}, object{"username": "li.wei"}, []string{"body.username"}},
		"case":     {object{"username": "Li.Wei"}, object{"username": "lI.wEI"}, []string{"body.username"}},
		"width": {object{"username": "ＬＩ.ｗｅｉ１"}, object{"username": "li.wei1"},
			[]string{"body.username"}},
		"composition": {object{"username": "re\u0301ne"}, object{"username": "R\u00c9NE"},
			[]string{"body.username"}},
		"full case folding":  {object{"username": sharpS}, object{"username": "STRASSE"}, []string{"body.username"}},
		"half-width kana":    {object{"username": "ｶﾞ"}, object{"username": "ガ"}, []string{"body.username"}},
		"accents tell apart": {object{"username": "rene"}, object{"username": "rené"}, nil},
		"characters alike":   {object{"username": "伟"}, object{"username": "偉"}, nil},
		"email": {object{"username": "a", "email": "x@acme.test"},
			object{"username": "b", "email": "X@ACME.test"}, []string{"body.email"}},
		"mobile": {object{"username": "a", "mobile": "+8613800000000"},
			object{"username": "b", "mobile": "+8613800000000"}, []string{"body.mobile"}},
		"username of email": {object{"username": "a", "email": "x@acme.test"}, object{"username": "X@acme.test"},
			[]string{"body.username"}},
		"email of username": {object{"username": "x@acme.test"}, object{"username": "b", "email": "x@acme.test"},
			[]string{"body.email"}},
		"username of mobile": {object{"username": "a", "mobile": "+8613800000000"},
			object{"username": "+8613800000000"}, []string{"body.username"}},
		"mobile of username": {object{"username": "+8613800000000"},
			object{"username": "b", "mobile": "+8613800000000"}, []string{"body.mobile"}},
		"empty is not taken": {object{"username": "a", "email": "", "mobile": ""},
			object{"username": "b", "email": "", "mobile": ""}, nil},
		"employee number": {object{"username": "a", "employee_number": "1"},
			object{"username": "b", "employee_number": "1"}, nil},
		"one's own": {object{"username": "a"}, object{"username": "x@acme.test", "email": "x@acme.test"},
			nil},
		"all that are taken": {object{"username": "a", "email": "x@acme.test", "mobile": "+8613800000000"},
			object{"username": "A", "email": "x@acme.test", "mobile": "+8613800000000"},
			[]string{"body.username", "body.email", "body.mobile"}},
		"prefixes tell apart": {object{"username": "li"}, object{"username": "li.wei"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := acme(t)
			first := c.Post("/v1/users", row.first).Object()
			in(s, "globex").Post("/v1/users", row.second).OK(nil) // other tenants have separate names
			answer := c.Post("/v1/users", row.second)
			if row.taken == nil {
				answer.OK(nil)
				return
			}
			answer.Problem(http.StatusConflict, "already_exists", row.taken...)
			require.Len(t, c.Items("/v1/users", "id"), 1)

			other := addUser(t, c, "other")
			c.Patch(path(other), row.second).Problem(http.StatusConflict, "already_exists", row.taken...)
			unchanged(t, c, other)
			c.Delete(path(first), nil).OK(nil)
			c.Patch(path(other), row.second).OK(nil) // free again
			c.Post("/v1/users", row.first).Problem(http.StatusConflict, "already_exists")
		})
	}
}

// exact contains values that JSON libraries tend to change.
const exact = `{"big":12345678901234567890123,"float":1.10,"null":null,"empty":{},"list":[],"html":"<&>\u2028\"\\/","zh":"李伟","emoji":"🙂",` +
	`"escaped":"\u0000\ud83d\ude42\u003c","deep":{"a":[{"b":[[null,true]]}]},"":"no name"}`

// props are a user's ext props, with numbers as they are written.
func props(t testing.TB, answer *testkit.Answer) (sys, free any) {
	t.Helper()
	var user struct {
		Sys  json.RawMessage `json:"sys_ext_props"`
		Free json.RawMessage `json:"free_ext_props"`
	}
	answer.OK(&user)
	return literal(t, string(user.Sys)), literal(t, string(user.Free))
}

func literal(t testing.TB, text string) (value any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&value))
	return value
}

func TestExtPropsAreKeptExactly(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := "/v1/users/" + c.Post("/v1/users", `{"username":"a","sys_ext_props":`+exact+`,"free_ext_props":`+exact+
		`}`).ID()
	want := literal(t, exact)
	check := func(answer *testkit.Answer) {
		t.Helper()
		sys, free := props(t, answer)
		require.Equal(t, want, sys)
		require.Equal(t, want, free)
	}
	check(c.Get(user))
	check(c.Patch(user, object{"display_name": "another member"}))
	c.Patch(user, `{"sys_ext_props":{"added":98765432109876543210}}`).OK(nil)
	check(c.Patch(user, `{"sys_ext_props":{"added":null}}`))
	require.EqualValues(t, 4, c.Get(user).Object()["version"])
	// a patch cannot send these back
	c.Patch(user, `{"sys_ext_props":{"null":null},"free_ext_props":{"null":null}}`).OK(nil)
	c.Patch(user, c.Get(user).Body).OK(nil)
	require.EqualValues(t, 5, c.Get(user).Object()["version"], "what is sent back as it was read changes nothing")
}

func TestExtPropsHaveALimit(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	largest := `{"a":"` + strings.Repeat("x", 64<<10-len(`{"a":""}`)) + `"}`
	larger := `{"ab":"` + strings.Repeat("x", 64<<10-len(`{"a":""}`)) + `"}`
	user := c.Post("/v1/users", `{"username":"a","sys_ext_props":`+largest+`,"free_ext_props":`+largest+`}`).Object()
	for _, member := range []string{"sys_ext_props", "free_ext_props"} {
		for _, bad := range []string{larger, `[]`, `"{}"`, `1`} {
			c.Post("/v1/users", `{"username":"b","`+member+`":`+bad+`}`).
				Problem(http.StatusBadRequest, "invalid_parameters", "body."+member)
			c.Patch(path(user), `{"`+member+`":`+bad+`}`).Problem(http.StatusBadRequest, "invalid_parameters", "body."+
				member)
		}
		// merged with the existing members
		c.Patch(path(user), `{"`+member+`":{"b":1}}`).Problem(http.StatusBadRequest, "invalid_parameters", "body."+
			member)
	}
	unchanged(t, c, user)
}

func TestCreateUserWithPassword(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	const password = "a good Passw0rd"
	s.As("acme", auth.UsersRead, auth.UsersWrite).Post("/v1/users", object{"username": "a", "password": password}).
		Problem(http.StatusForbidden, "forbidden")
	require.Empty(t, c.Items("/v1/users", "id"))

	answer := c.Post("/v1/users", object{"username": "li.wei", "password": password})
	user := answer.Object()
	require.NotContains(t, string(answer.Body), password)
	require.NotContains(t, user, "password")
	require.Equal(t, true, user["password_set"])
	require.Equal(t, s.Clock.Now().String(), user["time_password_changed"])
	require.Equal(t, false, user["must_change_password"])
	require.True(t, signsIn(c, "li.wei", password))
}
