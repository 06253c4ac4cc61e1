package users_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

const settings = "/v1/users-settings"

func allowSharing(c *testkit.Client, allowed bool) {
	c.Patch(settings, object{"shared_contacts": allowed}).OK(nil)
}

func TestSettingsOfUsers(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	first := c.Get(settings).Object()
	require.Equal(t, false, first["shared_contacts"])
	require.EqualValues(t, 1, first["version"])
	c.With("If-Match", `"7"`).Patch(settings, object{"shared_contacts": true}).Problem(412, "version_mismatch")
	require.Equal(t, true, c.With("If-Match", `"1"`).Patch(settings, object{"shared_contacts": true}).
		Object()["shared_contacts"])
	c.Patch(settings, object{"shared_contacts": 1}).Problem(http.StatusBadRequest, "invalid_parameters")
	require.Equal(t, true, c.Get(settings).Object()["shared_contacts"])
	require.Equal(t, false, in(s, "globex").Get(settings).Object()["shared_contacts"])
	s.As("acme", auth.UsersRead).Patch(settings, object{}).Problem(http.StatusForbidden, "forbidden")
}

// Ann is there first; Bea has her email and mobile, too.
func TestSharedContacts(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	contacts := object{"email": "desk@acme.test", "mobile": "+8613800000000", "password": password}
	ann := addUser(t, c, "ann", contacts, object{"employee_number": "1"})
	bea := object{"username": "bea", "email": "DESK@acme.test", "mobile": "+8613800000000", "password": password,
		"employee_number": "2"}
	c.Post("/v1/users", bea).Problem(http.StatusConflict, "already_exists")
	allowSharing(c, true)
	in(s, "globex").Post("/v1/users", bea).OK(nil)
	in(s, "globex").Post("/v1/users", object{"username": "ann", "email": "desk@acme.test"}).
		Problem(http.StatusConflict, "already_exists") // its settings do not allow it

	bea = addUser(t, c, "bea", bea)
	require.Equal(t, []any{"email", "mobile"}, bea["shared_contacts"])
	require.NotContains(t, c.Get(path(ann)).Object(), "shared_contacts")
	unchanged(t, c, ann)

	t.Log("nobody signs in by what is shared")
	for _, name := range []string{"desk@acme.test", "+8613800000000"} {
		require.Equal(t, object{"verified": false, "reason": "invalid_credentials"}, login(t, c, name, password))
	}
	require.True(t, signsIn(c, "ann", password))
	require.True(t, signsIn(c, "bea", password))

	t.Log("a username is nobody's email, and nobody's email is a username")
	c.Post("/v1/users", object{"username": "desk@acme.test"}).Problem(http.StatusConflict, "already_exists")
	addUser(t, c, "dora@acme.test")
	c.Post("/v1/users", object{"username": "emma", "email": "dora@acme.test"}).
		Problem(http.StatusConflict, "already_exists")
	c.Post("/v1/users?dry_run=true", object{"username": "fay", "email": "desk@acme.test"}).OK(nil)

	t.Log("each is found")
	exists := func(who object) any { return c.Post("/v1/users-exist", who).Object()["user_id"] }
	for n, user := range map[string]object{"1": ann, "2": bea} {
		who := object{"email": "desk@acme.test", "mobile": "+8613800000000", "employee_number": n}
		require.Equal(t, user["id"], exists(who))
		require.Equal(t, []any{object{"exists": true, "user_id": user["id"]}},
			c.Post("/v1/batch/users-exist", object{"items": []any{who}}).Object()["items"])
	}
	several := object{"exists": true, "several": true}
	require.Equal(t, several, c.Post("/v1/users-exist", object{"email": "desk@acme.test"}).Object())
	require.Equal(t, []any{several}, c.Post("/v1/batch/users-exist",
		object{"items": []any{object{"mobile": "+8613800000000"}}}).Object()["items"])
	for _, keyword := range []string{"desk@", "desk", "%2B86138"} {
		require.EqualValues(t, 2, c.Get("/v1/users?keyword=" + keyword).Object()["total"], keyword)
		require.EqualValues(t, 2, c.Get("/v1/users?page_sort=email&keyword=" + keyword).Object()["total"], keyword)
	}
	find := func(email string) questions.UserState {
		found, err := questions.FindUser.Ask(request.System(t.Context(), "acme"), s.Deps.Bus,
			questions.UserName{Email: email})
		require.NoError(t, err)
		return found
	}
	require.Empty(t, find("desk@acme.test").User, "several have it")

	t.Log("who has a value alone signs in by it")
	c.Patch(path(ann), object{"email": "ann@acme.test"}).OK(nil)
	require.True(t, signsIn(c, "desk@acme.test", password))
	require.Contains(t, string(find("desk@acme.test").User), `"bea"`)
	require.Equal(t, bea["id"], exists(object{"email": "desk@acme.test"}))
	require.Equal(t, false, c.Post("/v1/users-login-name-check", object{"login_name": "desk@acme.test"}).
		Object()["available"])
	require.False(t, signsIn(c, "+8613800000000", password))
	c.Delete(path(ann), nil).OK(nil)
	require.True(t, signsIn(c, "+8613800000000", password))

	t.Log("a changed value is shared no more, or with others")
	bea = c.Patch(path(bea), object{"email": "bea@acme.test", "shared_contacts": []string{"email"}}).Object()
	require.Equal(t, []any{"mobile"}, bea["shared_contacts"])
	cleo := addUser(t, c, "cleo", object{"email": "cleo@acme.test"})
	cleo = c.Patch(path(cleo), object{"email": "bea@acme.test"}).Object()
	require.Equal(t, []any{"email"}, cleo["shared_contacts"])
	require.False(t, signsIn(c, "bea@acme.test", password))

	t.Log("who shares a value goes on when it is no longer allowed")
	allowSharing(c, false)
	require.Equal(t, []any{"email"}, c.Patch(path(cleo), object{"gender": "f"}).Object()["shared_contacts"])
	c.Post("/v1/users", object{"username": "gil", "email": "bea@acme.test"}).
		Problem(http.StatusConflict, "already_exists")
	require.Equal(t, []string{"updated"}, statuses(importLines(t, c, "?on_conflict=update",
		`{"username":"cleo","email":"bea@acme.test","gender":"d"}`)))
}

// A username means its user, also where others have it as a contact value since a time when nobody had that name.
func TestAUsernameGoesBeforeAContact(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	allowSharing(c, true)
	ann := addUser(t, c, "ann", object{"email": "desk@acme.test"})
	addUser(t, c, "bea", object{"email": "desk@acme.test", "password": "the other one's"})
	for n := range 3 {
		addUser(t, c, fmt.Sprint("other-", n), object{"email": "desk@acme.test"})
	}
	c.Delete(path(ann), nil).OK(nil)
	addUser(t, c, "desk@acme.test", object{"password": password})
	require.True(t, signsIn(c, "desk@acme.test", password))
	require.False(t, signsIn(c, "desk@acme.test", "the other one's"))
}

func TestImportOfSharedContacts(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	addUser(t, c, "ann", object{"email": "desk@acme.test"})
	const file = `{"username":"bea","email":"desk@acme.test"}
{"username":"cleo","email":"new@acme.test"}
{"username":"dora","email":"new@acme.test"}
{"username":"ann","email":"desk@acme.test"}
{"username":"desk@acme.test"}`
	require.Equal(t, []string{"failed", "created", "failed", "failed", "failed"}, statuses(importLines(t, c, "", file)))
	allowSharing(c, true)
	require.Equal(t, []string{"created", "skipped", "created", "skipped", "skipped"},
		statuses(importLines(t, c, "?on_conflict=skip&dry_run=true", file)))
	require.Equal(t, []string{"created", "updated", "created", "updated", "failed"},
		statuses(importLines(t, c, "?on_conflict=update", file)))
	exported := string(c.Get("/v1/users/export").Body)
	require.Contains(t, exported, `"shared_contacts":["email"]`)
	for _, line := range importLines(t, c, "?on_conflict=update", exported) {
		require.Equal(t, "updated", line.Status, line)
	}
	for _, name := range []string{"bea", "dora"} {
		record := c.Get("/v1/users?keyword=" + name).Object()["items"].([]any)[0].(object)
		require.Equal(t, []any{"email"}, record["shared_contacts"], name)
		require.EqualValues(t, 1, record["version"], name)
	}
	require.Equal(t, []string{"updated"}, statuses(importLines(t, c, "?on_conflict=update",
		`{"username":"cleo","email":"desk@acme.test"}`)))
	require.Equal(t, []any{"email"},
		c.Get("/v1/users?keyword=cleo").Object()["items"].([]any)[0].(object)["shared_contacts"])
}

// However many make or change users with one email at the same time, one of them has it alone.
func TestSharedContactsAtOnce(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	allowSharing(c, true)
	const many = 8
	answers := make(chan *testkit.Answer, 2*many)
	moving := make([]object, many)
	for n := range many {
		moving[n] = addUser(t, c, fmt.Sprint("moves-", n))
	}
	for n := range many {
		go func() {
			answers <- c.Post("/v1/users", object{"username": fmt.Sprint("new-", n), "email": "desk@acme.test"})
		}()
		go func() { answers <- c.Patch(path(moving[n]), object{"email": "desk@acme.test"}) }()
	}
	alone := 0
	for range 2 * many {
		if record := (<-answers).Object(); record["shared_contacts"] == nil {
			alone++
		}
	}
	require.Equal(t, 1, alone)
	require.EqualValues(t, 2*many, c.Get("/v1/users?keyword=desk@acme.test").Object()["total"])
}
