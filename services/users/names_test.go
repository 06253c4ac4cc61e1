package users_test

import (
	"fmt"
	"net/http"
	"net/url"
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
	for _, name := range []string{"", "a ", strings.Repeat("x", 256), "\x00", "a\u200bb", "x@y\t"} {
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

// Many checks at once give what each gives alone, in the order of the items.
func TestUsersExist(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "Li.Wei", object{"email": "li.wei@acme.test", "mobile": "+8613800000000",
		"employee_number": "A-17"})
	for i := range 5 { // more than a round reads for one number
		addUser(t, c, fmt.Sprint("a", i), object{"employee_number": "A-18"})
	}
	addUser(t, c, "last", object{"employee_number": "A-19"})
	addUser(t, c, "own@acme.test", object{"email": "own@acme.test"})
	foreign := addUser(t, in(s, "globex"), "foreign")
	items := []object{
		{"username": "LI.wei"}, {"username": "nobody"}, {"email": "li.wei@ACME.test"}, {"mobile": "+8613800000000"},
		{"id": user["id"]}, {"id": foreign["id"]}, {"username": "foreign"}, {"username": "li.wei@acme.test"},
		{"employee_number": "a-17"}, {"employee_number": "A-17"}, {"employee_number": "A-20"},
		{"employee_number": "A-19"}, {"employee_number": "A"},
		{"id": user["id"], "username": "li.wei", "email": "li.wei@acme.test", "employee_number": "a-17"},
		{"username": "li.wei", "email": "other@acme.test"}, {"username": "a1", "employee_number": "A-18"},
		{"username": "a1", "employee_number": "A-17"}, {"username": "a1", "id": user["id"]},
		{"username": "li.wei"}, {"username": "\x00"}, {"username": "li.wei", "email": ""},
		{"username": "own@acme.test"}, {"email": "own@acme.test"},
		{"username": "own@acme.test", "email": "own@acme.test"},
	}
	var want []any
	for _, item := range items {
		want = append(want, c.Post("/v1/users-exist", item).Object())
	}
	exist := func(items ...object) any {
		t.Helper()
		return c.Post("/v1/batch/users-exist", object{"items": items}).Object()["items"]
	}
	require.Equal(t, want, exist(items...))
	shared := exist(object{"employee_number": "A-18"}, object{"employee_number": "A-19"}).([]any)
	several := object{"exists": true, "several": true}
	require.Equal(t, several, shared[0])
	require.Equal(t, true, shared[1].(object)["exists"])
	require.Equal(t, several, c.Post("/v1/users-exist", object{"employee_number": "A-18"}).Object())

	many := make([]object, 1000)
	for i := range many {
		many[i] = object{"username": fmt.Sprint("nobody", i)}
	}
	many[999] = object{"email": "li.wei@acme.test"}
	require.Equal(t, object{"exists": true, "user_id": user["id"]}, exist(many...).([]any)[999])

	for _, bad := range []struct {
		body      any
		locations []string
	}{
		{object{}, []string{"body.items"}}, {object{"items": []object{}}, []string{"body.items"}},
		{object{"items": append(many, many[0])}, []string{"body.items"}},
		{object{"items": []object{{"username": "x"}, {}, {"email": ""}}}, []string{"body.items[1]", "body.items[2]"}},
		{object{"items": []object{{"phone": "1"}}}, []string{"body.items[0].phone", "body.items[0]"}},
		{object{"items": []object{{"username": 1}}}, []string{"body.items[0].username"}},
	} {
		c.Post("/v1/batch/users-exist", bad.body).
			Problem(http.StatusBadRequest, "invalid_parameters", bad.locations...)
	}
}

// Names as other directories have them work wherever a user is named.
func TestNamesOfOtherDirectories(t *testing.T) {
	t.Parallel()
	for _, name := range []string{`DOMAIN\user`, "first last", "a&b@x.com", "/ % * = $ ( : ,", "=1+1", "´a", "a@ b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := acme(t)
			user := addUser(t, c, name, object{"password": password})
			require.True(t, signsIn(c, " "+strings.ToUpper(name)+" ", password))
			require.Equal(t, object{"exists": true, "user_id": user["id"]},
				c.Post("/v1/users-exist", object{"username": name}).Object())
			found := c.Get("/v1/users?keyword=" + url.QueryEscape(name)).Object()
			require.Equal(t, 1.0, found["total"])
			c.Post("/v1/users", object{"username": strings.ToUpper(name)}).
				Problem(http.StatusConflict, "already_exists", "body.username")
			c.Patch(path(user), object{"display_name": "Somebody"}).OK(nil)
			answer := c.Post("/v1/users-login-name-check", object{"login_name": name, "user_id": user["id"]}).Object()
			require.Equal(t, []any{true, true}, []any{answer["valid"], answer["available"]})
			for _, form := range []string{ndjson, "text/csv"} {
				file := c.With("Accept", form).Get("/v1/users/export")
				require.Equal(t, http.StatusOK, file.Status, "%s", file.Body)
				require.Equal(t, []string{"created"},
					statuses(lines(t, send(in(s, "globex-"+form[:4]), form, "", string(file.Body)))), "%s", file.Body)
			}
		})
	}
}
