package users_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
)

// password is a valid password, which users in tests have.
const password = "a good Passw0rd"

func TestResetPassword(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	reset := path(user, "reset-password")
	s.As("acme", auth.UsersRead, auth.UsersWrite).Post(reset, nil).Problem(http.StatusForbidden, "forbidden")

	made := c.Post(reset, nil).Object()
	require.Len(t, made, 1)
	secret := made["password"].(string)
	require.GreaterOrEqual(t, len(secret), 16)
	now := c.Get(path(user)).Object()
	require.Equal(t, []any{true, true, s.Clock.Now().String()}, []any{now["password_set"], now["must_change_password"],
		now["time_password_changed"]})
	require.Equal(t, true, login(t, c, "li.wei", secret)["must_change_password"])
	require.NotEqual(t, secret, c.Post(reset, object{}).Object()["password"])
	require.False(t, signsIn(c, "li.wei", secret))

	require.Equal(t, object{}, c.Post(reset, object{"new_password": password}).Object(),
		"only a generated password is in the answer")
	require.Equal(t, true, login(t, c, "li.wei", password)["must_change_password"])
	before := c.Get(path(user)).Object()
	for _, bad := range []any{"short", "li.wei's password", password, "password1", 7} {
		c.Post(reset, object{"new_password": bad}).Problem(http.StatusBadRequest, "invalid_parameters",
			"body.new_password")
	}
	c.Post("/v1/users/1/reset-password", nil).Problem(http.StatusNotFound, "not_found")
	in(s, "globex").Post(reset, nil).Problem(http.StatusNotFound, "not_found")
	unchanged(t, c, before)
	require.True(t, signsIn(c, "li.wei", password))

	c.Patch(path(user), object{"must_change_password": false}).OK(nil)
	require.Equal(t, false, login(t, c, "li.wei", password)["must_change_password"])
}

func TestPasswordPolicy(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "Lǐ.Wei")
	reset := path(user, "reset-password")
	for _, good := range []string{"8 chars!", "密码密码密码密码", strings.Repeat("Ab1!", 64), "Lǐ Wei's own",
		" leading and trailing ", "🙂🙂🙂🙂🙂🙂🙂🙂"} {
		c.Post(reset, object{"new_password": good}).OK(nil)
	}
	user = c.Get(path(user)).Object()
	for _, bad := range []string{"7 chars", strings.Repeat("Ab1!", 64) + "x", "xx lǐ.wei xx", "LǏ.WEI 12345",
		"Li\u030c.wei 2026", "password", "PASSWORD", "iloveyou", "12345678", "qwertyuiop"} {
		c.Post(reset, object{"new_password": bad}).Problem(http.StatusBadRequest, "invalid_parameters",
			"body.new_password")
	}
	unchanged(t, c, user)
}

func TestBatchResetPasswords(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	a, b := addUser(t, c, "xavier", object{"password": password}), addUser(t, c, "yvonne")
	foreign := addUser(t, in(s, "globex"), "zoe.z")
	const url = "/v1/batch/users-reset-password"
	s.As("acme", auth.UsersWrite).Post(url, object{"ids": []any{a["id"]}}).Problem(http.StatusForbidden, "forbidden")
	c.Post(url, object{"ids": []any{a["id"], "nobody", foreign["id"]}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.ids[1]", "body.ids[2]")
	c.Post(url, object{"ids": []any{a["id"], b["id"], a["id"]}}).Problem(http.StatusBadRequest, "invalid_parameters",
		"body.ids[2]")
	for _, bad := range []any{object{}, object{"ids": []any{}}, object{"ids": make([]string, 1001)},
		object{"ids": []any{a["id"]}, "new_password": password}} {
		c.Post(url, bad).Problem(http.StatusBadRequest, "invalid_parameters")
	}
	unchanged(t, c, a)
	unchanged(t, c, b)
	require.True(t, signsIn(c, "xavier", password))

	var answer struct {
		Items []struct{ ID, Password string }
	}
	c.Post(url, object{"ids": []any{b["id"], a["id"]}}).OK(&answer)
	require.Len(t, answer.Items, 2)
	require.Equal(t, []any{b["id"], a["id"]}, []any{answer.Items[0].ID, answer.Items[1].ID})
	require.NotEqual(t, answer.Items[0].Password, answer.Items[1].Password)
	require.True(t, signsIn(c, "yvonne", answer.Items[0].Password))
	require.True(t, signsIn(c, "xavier", answer.Items[1].Password))
	require.False(t, signsIn(c, "xavier", password))
	require.Equal(t, true, c.Get(path(a)).Object()["must_change_password"])
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password, "must_change_password": true})
	change := func(oldPassword, newPassword string) int {
		return c.Post(path(user, "change-password"),
			object{"old_password": oldPassword, "new_password": newPassword}).Status
	}
	c.Post(path(user, "change-password"), object{"old_password": "wrong", "new_password": "a new Passw0rd"}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.old_password")
	c.Post(path(user, "change-password"), object{"old_password": password, "new_password": "short"}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.new_password")
	c.Post(path(user, "change-password"), object{"old_password": password, "new_password": password}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.new_password")
	c.Post(path(user, "change-password"), object{"old_password": password}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.new_password")
	c.Post("/v1/users/1/change-password", object{"old_password": "x", "new_password": "x"}).
		Problem(http.StatusNotFound, "not_found")
	unchanged(t, c, user)

	require.Equal(t, object{}, c.Post(path(user, "change-password"),
		object{"old_password": password, "new_password": "a new Passw0rd"}).Object())
	require.Equal(t, false, c.Get(path(user)).Object()["must_change_password"])
	require.False(t, signsIn(c, "li.wei", password))
	require.True(t, signsIn(c, "li.wei", "a new Passw0rd"))

	c.Post(path(user, "lock"), nil).OK(nil)
	require.Equal(t, http.StatusConflict, change("a new Passw0rd", "a newer Passw0rd"))
	c.Post(path(user, "unlock"), nil).OK(nil)
	c.Patch(path(user), object{"status": "0"}).OK(nil)
	require.Equal(t, http.StatusConflict, change("a new Passw0rd", "a newer Passw0rd"))
	c.Patch(path(user), object{"status": "1"}).OK(nil)
	require.Equal(t, http.StatusOK, change("a new Passw0rd", "a newer Passw0rd"))
	require.Equal(t, http.StatusBadRequest, c.Post(path(addUser(t, c, "none"), "change-password"),
		object{"old_password": "", "new_password": "a newer Passw0rd"}).Status)

	// A wrong old password is a failed login: five of them lock the user.
	for range 5 {
		require.Equal(t, http.StatusBadRequest, change("wrong", "a newest Passw0rd"))
	}
	require.Equal(t, http.StatusConflict, change("a newer Passw0rd", "a newest Passw0rd"))
	require.Equal(t, "locked", login(t, c, "li.wei", "a newer Passw0rd")["reason"])
	require.Equal(t, s.Clock.Now().Add(15*60e9).String(), c.Get(path(user)).Object()["locked_until"])
}

// The last five passwords cannot be used again, however they were set; the sixth can.
func TestPasswordHistory(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	nth := func(n int) string { return fmt.Sprintf("password number %d", n) }
	user := addUser(t, c, "li.wei", object{"password": nth(1)})
	for n := 2; n <= 6; n++ {
		if n%2 == 0 {
			c.Post(path(user, "change-password"), object{"old_password": nth(n - 1), "new_password": nth(n)}).OK(nil)
		} else {
			c.Post(path(user, "reset-password"), object{"new_password": nth(n)}).OK(nil)
		}
	}
	for n := 2; n <= 6; n++ {
		c.Post(path(user, "reset-password"), object{"new_password": nth(n)}).
			Problem(http.StatusBadRequest, "invalid_parameters", "body.new_password")
		c.Post(path(user, "change-password"), object{"old_password": nth(6), "new_password": nth(n)}).
			Problem(http.StatusBadRequest, "invalid_parameters", "body.new_password")
	}
	c.Post(path(user, "change-password"), object{"old_password": nth(6), "new_password": nth(1)}).OK(nil)
	require.True(t, signsIn(c, "li.wei", nth(1)))
}
