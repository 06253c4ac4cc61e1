package users_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckLoginName(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "Li.Wei", object{"email": "li.wei@acme.test", "mobile": "+8613800000000"})
	addUser(t, in(s, "globex"), "foreign")
	check := func(name string, userID any) (valid, available bool) {
		t.Helper()
		body := object{"login_name": name}
		if userID != nil {
			body["user_id"] = userID
		}
		answer := c.Post("/v1/users-login-name-check", body).Object()
		require.Len(t, answer, 3)
		reasons := answer["reasons"].([]any)
		require.Equal(t, answer["available"], len(reasons) == 0, "a reason whenever it is not available, and only then")
		return answer["valid"].(bool), answer["available"].(bool)
	}
	for _, name := range []string{"free", "foreign", "李伟", "x@acme.test", "+8613800000001", "o'neill@acme.test",
		"o'neill!#^~"} {
		valid, available := check(name, nil)
		require.True(t, valid && available, name)
	}
	for _, name := range []string{"Li.Wei", "lI.wEI", "ｌｉ.ｗｅｉ", "LI.WEI@acme.test", "+8613800000000"} {
		valid, available := check(name, nil)
		require.True(t, valid && !available, name)
		valid, available = check(name, user["id"])
		require.True(t, valid && available, "one's own: %s", name)
		_, available = check(name, "1")
		require.False(t, available, name)
	}
	for _, name := range []string{"", "a b", "a/b", strings.Repeat("x", 129), "\x00", "x@y z", "a:b@"} {
		valid, available := check(name, nil)
		require.False(t, valid || available, name)
	}
	for _, bad := range []string{`{}`, `{"login_name":1}`, `{"login_name":"x","name":"y"}`, `{"login_name":"` +
		strings.Repeat("x", 513) + `"}`} {
		c.Post("/v1/users-login-name-check", bad).Problem(http.StatusBadRequest, "invalid_parameters")
	}
}

func TestUserExists(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "Li.Wei", object{"email": "li.wei@acme.test", "mobile": "+8613800000000",
		"employee_number": "Ａ-17"})
	addUser(t, c, "other", object{"employee_number": "A-17"})
	foreign := addUser(t, in(s, "globex"), "foreign")
	for _, who := range []object{
		{"username": "LI.wei"}, {"email": "li.wei@ACME.test"}, {"mobile": "+8613800000000"}, {"id": user["id"]},
		{"id": user["id"], "username": "li.wei", "email": "li.wei@acme.test", "mobile": "+8613800000000",
			"employee_number": "a-17"},
		{"employee_number": "a-17", "username": "li.wei"}, {"username": "li.wei", "email": ""},
	} {
		require.Equal(t, object{"exists": true, "user_id": user["id"]}, c.Post("/v1/users-exist", who).Object(), who)
	}
	require.Equal(t, true, c.Post("/v1/users-exist", object{"employee_number": "A-17"}).Object()["exists"])
	for _, who := range []object{
		{"username": "li"}, {"username": "li.wei@acme.test"}, {"email": "li.wei"}, {"username": "foreign"},
		{"id": foreign["id"]}, {"id": "nobody"},
		{"username": "li.wei", "email": "other@acme.test"}, {"username": "other", "id": user["id"]},
		{"username": "li.wei", "employee_number": "A-18"},
		{"employee_number": "A"}, {"mobile": "8613800000000"}, {"username": "\x00"},
	} {
		require.Equal(t, object{"exists": false}, c.Post("/v1/users-exist", who).Object(), who)
	}
	c.Post("/v1/users-exist", object{}).Problem(http.StatusBadRequest, "invalid_parameters", "body")
	c.Post("/v1/users-exist", object{"username": "", "email": ""}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body")
	c.Post("/v1/users-exist", object{"display_name": "x"}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.display_name", "body")
	c.Post("/v1/users-exist", object{"username": 1}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.username")
}
