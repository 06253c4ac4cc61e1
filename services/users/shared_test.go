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
	would := c.Patch(settings+"?dry_run=true", object{"shared_contacts": true}) // the first request of the tenant
	require.Equal(t, true, would.Object()["shared_contacts"])
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
	require.NotContains(t, bea, "first_contacts")
	ann = c.Get(path(ann)).Object()
	require.Equal(t, []any{"email", "mobile"}, ann["shared_contacts"])
	require.Equal(t, []any{"email", "mobile"}, ann["first_contacts"])
	require.EqualValues(t, 3, ann["version"])

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
	bea = c.Get(path(bea)).Object()
	require.Equal(t, []any{"mobile"}, bea["shared_contacts"])
	require.NotContains(t, bea, "first_contacts")
	require.True(t, signsIn(c, "desk@acme.test", password))
	require.True(t, signsIn(c, "ann@acme.test", password))
	require.Contains(t, string(find("desk@acme.test").User), `"bea"`)
	require.Equal(t, bea["id"], exists(object{"email": "desk@acme.test"}))
	require.False(t, signsIn(c, "+8613800000000", password))
	c.Delete(path(ann), nil).OK(nil)
	require.True(t, signsIn(c, "+8613800000000", password))
	require.NotContains(t, c.Get(path(bea)).Object(), "shared_contacts")

	t.Log("a changed value is shared no more, or with others")
	cleo := addUser(t, c, "cleo", object{"email": "cleo@acme.test"})
	cleo = c.Patch(path(cleo), object{"email": "desk@acme.test", "shared_contacts": []string{}}).Object()
	require.Equal(t, []any{"email"}, cleo["shared_contacts"])
	require.False(t, signsIn(c, "desk@acme.test", password))

	t.Log("who shares a value goes on when it is no longer allowed")
	allowSharing(c, false)
	require.Equal(t, []any{"email"}, c.Patch(path(cleo), object{"gender": "f"}).Object()["shared_contacts"])
	require.Equal(t, []string{"updated"}, statuses(importLines(t, c, "?on_conflict=update",
		`{"username":"cleo","email":"desk@acme.test","gender":"d"}`)))
	taken := func() {
		t.Helper()
		for _, body := range []object{{"username": "gil", "email": "desk@acme.test"}, {"username": "desk@acme.test"}} {
			c.Post("/v1/users", body).Problem(http.StatusConflict, "already_exists")
			body["status"] = "1"
		}
		require.Equal(t, []string{"failed"},
			statuses(importLines(t, c, "", `{"username":"gil","email":"desk@acme.test"}`)))
		require.Equal(t, false, c.Post("/v1/users-login-name-check", object{"login_name": "desk@acme.test"}).
			Object()["available"])
	}
	taken()
	dora := addUser(t, c, "dora")
	allowSharing(c, true)
	c.Patch(path(dora), object{"email": "desk@acme.test"}).OK(nil)
	allowSharing(c, false)
	c.Delete("/v1/batch/users", object{"ids": []any{bea["id"]}}).OK(nil) // the first with it
	taken()
	require.Equal(t, []any{"email"}, c.Get(path(cleo)).Object()["first_contacts"])
	c.Delete(path(cleo), nil).OK(nil)
	taken()
	require.NotContains(t, c.Get(path(dora)).Object(), "shared_contacts")
	c.Patch(path(dora), object{"email": nil}).OK(nil)
	addUser(t, c, "desk@acme.test")
}

// A username means its user, also one that is the user's own shared email.
func TestAUsernameThatIsAlsoShared(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	allowSharing(c, true)
	ann := addUser(t, c, "ann", object{"email": "desk@acme.test", "password": password})
	bea := addUser(t, c, "bea", object{"email": "desk@acme.test", "password": "the other one's"})
	c.Patch(path(bea), object{"username": "desk@acme.test"}).Problem(http.StatusConflict, "already_exists")
	c.Patch(path(ann), object{"username": "desk@acme.test"}).OK(nil)
	require.True(t, signsIn(c, "desk@acme.test", password))
	require.False(t, signsIn(c, "desk@acme.test", "the other one's"))
	require.Equal(t, object{"exists": true, "user_id": ann["id"]},
		c.Post("/v1/users-exist", object{"username": "desk@acme.test"}).Object())
	require.Equal(t, []any{object{"exists": true, "user_id": ann["id"]}},
		c.Post("/v1/batch/users-exist", object{"items": []any{object{"username": "desk@acme.test"}}}).Object()["items"])
	addUser(t, c, "cleo", object{"email": "cleo@acme.test"})
	c.Post("/v1/users", object{"username": "dora", "email": "desk@acme.test"}).
		Problem(http.StatusConflict, "already_exists")
	c.Delete(path(ann), nil).OK(nil)
	require.True(t, signsIn(c, "desk@acme.test", "the other one's"))
}

// Applications that know people by verified addresses would take one for the other.
func TestNobodyElseHasASharedContactVerified(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	allowSharing(c, true)
	ann := addUser(t, c, "ann", object{"email": "desk@acme.test", "email_verified": true})
	bea := addUser(t, c, "bea", object{"email": "desk@acme.test", "email_verified": true})
	require.Equal(t, false, bea["email_verified"])
	require.Equal(t, false, c.Patch(path(bea), object{"email_verified": true}).Object()["email_verified"])
	require.Equal(t, true, c.Get(path(ann)).Object()["email_verified"])
	importLines(t, c, "", `{"username":"cleo","email":"desk@acme.test","email_verified":true}`)
	require.NotContains(t, string(c.Get("/v1/users?keyword=cleo").Body), `"email_verified":true`)
	c.Delete(path(ann), nil).OK(nil)
	require.Equal(t, true, c.Patch(path(bea), object{"email_verified": true}).Object()["email_verified"])
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
	require.Contains(t, exported, `"first_contacts":["email"]`)
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

// However many make or change users with one email at the same time, one of them is the first.
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
	for range 2 * many {
		(<-answers).OK(nil)
	}
	first := 0
	for _, item := range c.Get("/v1/users?page_size=100").Object()["items"].([]any) {
		require.Equal(t, []any{"email"}, item.(object)["shared_contacts"])
		if item.(object)["first_contacts"] != nil {
			first++
		}
	}
	require.Equal(t, 1, first)
	require.EqualValues(t, 2*many, c.Get("/v1/users?keyword=desk@acme.test").Object()["total"])
}
