package users_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/users"
)

// Who can make a way to sign in as somebody has the scopes that this person has: by a reset, an import or a stored
// credential.
func TestNobodyTakesOverAUserWithMoreScopes(t *testing.T) {
	t.Parallel()
	scopes := map[string]string{}
	s := startWith(t, cheap(), scopes)
	c := in(s, "acme")
	boss, clerk, li := addUser(t, c, "boss"), addUser(t, c, "clerk"), addUser(t, c, "li.wei")
	scopes[boss["id"].(string)], scopes[clerk["id"].(string)] = "kv:read platform:admin", "users:write"
	users := map[string]object{"boss": boss, "clerk": clerk, "li.wei": li}
	credential := func(c *testkit.Client, user object, id1 string) *testkit.Answer {
		return c.Post(credentials, credentialOf(user, "oidc", id1))
	}
	imported := func(c *testkit.Client, name string) string {
		return importLines(t, c, "?on_conflict=update", `{"username":"`+name+`","password":"an imp0rted one"}`)[0].Status
	}
	for name, row := range map[string]struct {
		client *testkit.Client
		user   string
		allow  bool
	}{
		"boss":              {c, "boss", false},
		"clerk":             {c, "clerk", true},
		"li.wei":            {c, "li.wei", true},
		"by the platform's": {s.As("acme", auth.PlatformAdmin), "boss", true},
	} {
		user := users[row.user]
		answers := map[string]*testkit.Answer{
			"reset":    row.client.Post(path(user, "reset-password"), nil),
			"reset to": row.client.Post(path(user, "reset-password"), object{"new_password": "a new Passw0rd"}),
			"batch":    row.client.Post("/v1/batch/users-reset-password", object{"ids": []any{user["id"]}}),
			"bind":     credential(row.client, user, name),
		}
		for way, answer := range answers {
			if row.allow {
				require.Equal(t, http.StatusOK, answer.Status, "%s of %s: %s", way, name, answer.Body)
			} else {
				answer.Problem(http.StatusForbidden, "forbidden")
			}
		}
		want := map[bool]string{true: "updated", false: "failed"}[row.allow]
		require.Equal(t, want, imported(row.client, row.user), name)
	}
	bound := credential(s.As("acme", auth.PlatformAdmin), boss, "another").ID()
	c.Patch(credentials+"/"+bound, object{"id1": "mine"}).Problem(http.StatusForbidden, "forbidden")
	c.Delete(credentials+"/"+bound, nil).OK(nil) // takes a way to sign in, and gives none
}

// A name that comes twice in one import is the same new user, in a dry run, too.
func TestImportOfANameTwiceWithPasswords(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	rows := `{"username":"li.wei","password":"a first Passw0rd"}` + "\n" +
		`{"username":"li.wei","password":"a second Passw0rd"}`
	for _, query := range []string{"?on_conflict=update&dry_run=true", "?on_conflict=update"} {
		require.Equal(t, []string{"created", "updated"}, statuses(importLines(t, c, query, rows)), query)
	}
	answer := c.Post("/v1/thin/login-verification", object{"login_name": "li.wei", "password": "a second Passw0rd"})
	require.Equal(t, true, answer.Object()["verified"])
}

// Only a platform administrator resets a password while the permissions service is away.
func TestResetsWaitForThePermissionsService(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, users.Spec(cheap()))
	c := in(s, "acme")
	user := addUser(t, c, "li.wei")
	c.Post(path(user, "reset-password"), nil).Problem(http.StatusServiceUnavailable, "unavailable")
	s.As("acme", auth.PlatformAdmin).Post(path(user, "reset-password"), nil).OK(nil)
}
