package users_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/stretchr/testify/require"
)

func TestDeleteUser(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	const password = "a good Passw0rd"
	user := addUser(t, c, "li.wei", object{"email": "li.wei@acme.test", "password": password})
	other := addUser(t, c, "other")
	putAvatar(t, c, user).OK(nil)
	c.Post(path(user, "real-name-verification"), object{"real_name": "李伟", "id_number": "11010519491231002X"}).OK(nil)
	credential := c.Post("/v1/user-stored-credentials", credentialOf(user, "wechat", "w1")).ID()
	kept := c.Post("/v1/user-stored-credentials", credentialOf(other, "wechat", "w2")).ID()

	in(s, "globex").Delete(path(user), nil).Problem(http.StatusNotFound, "not_found")
	require.Equal(t, object{"id": user["id"]}, c.Delete(path(user), nil).Object())

	for _, gone := range []string{path(user), path(user, "avatar"), "/v1/user-stored-credentials/" + credential} {
		c.Get(gone).Problem(http.StatusNotFound, "not_found")
	}
	c.Delete(path(user), nil).Problem(http.StatusNotFound, "not_found")
	for _, operation := range []string{"lock", "unlock", "resign", "reinstate", "reset-password"} {
		c.Post(path(user, operation), nil).Problem(http.StatusNotFound, "not_found")
	}
	require.False(t, signsIn(c, "li.wei", password))
	require.Equal(t, []any{kept}, c.Items("/v1/user-stored-credentials", "id"))
	for _, collection := range []string{"users", "accounts", "avatars", "credentials"} {
		require.NotContains(t, testkit.Stored(t, s, "acme", collection), user["id"], collection)
	}

	// Names, numbers and identities are free again; the id is not.
	again := addUser(t, c, "li.wei", object{"email": "li.wei@acme.test"})
	require.NotEqual(t, user["id"], again["id"])
	require.Equal(t, false, again["password_set"])
	c.Post(path(again, "real-name-verification"), object{"real_name": "李伟", "id_number": "11010519491231002X"}).OK(nil)
	c.Post("/v1/user-stored-credentials", credentialOf(again, "wechat", "w1")).OK(nil)
}

func TestDeleteUsers(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	var users []object
	for n := range 3 {
		users = append(users, addUser(t, c, fmt.Sprint("user", n)))
	}
	foreign := addUser(t, in(s, "globex"), "user0")
	many := func(n int) object {
		ids := make([]any, n)
		for i := range ids {
			ids[i] = fmt.Sprint(i)
		}
		return object{"ids": ids}
	}
	for _, bad := range []any{object{}, many(0), many(1001), object{"ids": nil}, object{"ids": users[0]["id"]},
		object{"ids": []any{1}}, object{"ids": []any{nil}}} {
		c.Delete("/v1/batch/users", bad).Problem(http.StatusBadRequest, "invalid_parameters")
	}
	require.Len(t, c.Items("/v1/users", "id"), 3)

	require.Equal(t, object{}, c.Delete("/v1/batch/users", many(1000)).Object(), "ids that do not exist are no error")
	ids := []any{users[0]["id"], users[2]["id"], users[0]["id"], foreign["id"], "nobody"}
	require.Equal(t, object{}, c.Delete("/v1/batch/users?dry_run=true", object{"ids": ids}).Object())
	require.Len(t, c.Items("/v1/users", "id"), 3)
	require.Equal(t, object{}, c.Delete("/v1/batch/users", object{"ids": ids}).Object())
	require.Equal(t, []any{"user1"}, c.Items("/v1/users", "username"))
	unchanged(t, in(s, "globex"), foreign)
}
