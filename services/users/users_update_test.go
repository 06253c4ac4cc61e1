package users_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUpdateUser(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{
		"display_name": "李伟", "email": "li.wei@acme.test", "mobile": "+8613800000000", "employee_number": "A-17",
		"locale":        "zh-CN",
		"sys_ext_props": object{"keep": 1, "drop": 2, "nested": object{"a": 1, "b": 2}},
	})
	s.Clock.Advance(time.Second)
	answer := c.Patch(path(user), object{
		"display_name": nil, "email": nil, "employee_number": "B-1", "status": "0", "username": "li.wei.2",
		"sys_ext_props": object{"drop": nil, "nested": object{"b": nil, "c": 3}},
	})
	want := map[string]any{
		"display_name": "", "email": "", "employee_number": "B-1", "status": "0", "username": "li.wei.2",
		"version":       2.0,
		"time_modified": s.Clock.Now().String(), "sys_ext_props": object{"keep": 1.0,
			"nested": object{"a": 1.0, "c": 3.0}},
	}
	for member, value := range user {
		if _, changed := want[member]; !changed {
			want[member] = value
		}
	}
	require.Equal(t, want, answer.Object())
	require.Equal(t, `"2"`, answer.Header.Get("ETag"))
	unchanged(t, c, want)
	require.Equal(t, object{}, c.Patch(path(user), object{"sys_ext_props": nil}).Object()["sys_ext_props"])
	require.Equal(t, "1", c.Patch(path(user), object{"status": "1"}).Object()["status"])
	c.Patch("/v1/users/1", object{}).Problem(http.StatusNotFound, "not_found")
}

func TestUpdateUserRefuses(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "li.wei", object{"email": "li.wei@acme.test"})
	for body, location := range map[string]string{
		`{"password":"a good Passw0rd"}`:            "body.password",
		`{"locked":true}`:                           "body.locked",
		`{"lock_reason":"x"}`:                       "body.lock_reason",
		`{"locked_until":"2100-01-01T00:00:00Z"}`:   "body.locked_until",
		`{"real_name":"李伟"}`:                        "body.real_name",
		`{"real_name_status":"verified"}`:           "body.real_name_status",
		`{"id_number_masked":"1*2"}`:                "body.id_number_masked",
		`{"status":"resigned"}`:                     "body.status",
		`{"status":"9"}`:                            "body.status",
		`{"username":null}`:                         "body.username",
		`{"username":""}`:                           "body.username",
		`{"Username":"x"}`:                          "body.Username",
		`{"email":"x"}`:                             "body.email",
		`{"mobile":7}`:                              "body.mobile",
		`{"display_name":"\u0000"}`:                 "body.display_name",
		`{"zoneinfo":"Mars"}`:                       "body.zoneinfo",
		`{"sys_ext_props":[]}`:                      "body.sys_ext_props",
		`{"no_such_member":1}`:                      "body.no_such_member",
		`{"must_change_password":"yes"}`:            "body.must_change_password",
		`{"display_name":"good","locked":true}`:     "body.locked",
		`{"display_name":"good","email":"bad one"}`: "body.email",
	} {
		c.Patch(path(user), body).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	unchanged(t, c, user)
}

// What was read can be sent back, including read-only members. A request that changes nothing makes no version and no
// event.
func TestReadChangeWrite(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": "a good Passw0rd", "email": "li.wei@acme.test",
		"sys_ext_props": object{"html": "<&>\u2028"}})
	c.Post(path(user, "lock"), object{"reason": "<on leave> & away", "until": s.Clock.Now().Add(time.Hour)}).OK(nil)
	c.Post(path(user, "real-name-verification"), object{"real_name": "李伟", "id_number": "11010519491231002X"}).OK(nil)
	user = c.Get(path(user)).Object()
	s.Clock.Advance(time.Second)

	require.Equal(t, user, c.Patch(path(user), user).Object())
	require.Equal(t, user, c.Patch(path(user), object{}).Object())
	require.Equal(t, user, c.Patch(path(user), object{"id": "1", "tenant_id": "globex", "version": 99,
		"avatar_url": "x", "time_resigned": nil}).Object())
	user["display_name"] = "李 伟"
	require.Equal(t, "李 伟", c.Patch(path(user), user).Object()["display_name"])
	require.Equal(t, []string{"created", "locked", "updated", "updated", "deleted"}, actions(t, s, c, user))
}

// A new address is not yet verified.
func TestVerifiedAddresses(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "li.wei", object{"email": "a@acme.test", "email_verified": true, "mobile": "+8613800000000",
		"mobile_verified": true})
	require.Equal(t, true, c.Patch(path(user), object{"display_name": "x"}).Object()["email_verified"])
	user["email"] = "b@acme.test" // with email_verified as it was read
	user = c.Patch(path(user), user).Object()
	require.Equal(t, false, user["email_verified"])
	require.Equal(t, true, user["mobile_verified"])
	user = c.Patch(path(user), object{"mobile": "+8613800000001"}).Object()
	require.Equal(t, false, user["mobile_verified"])
	require.Equal(t, true, c.Patch(path(user), object{"mobile_verified": true}).Object()["mobile_verified"])
}

func TestUpdateResignedUser(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "li.wei")
	user = c.Post(path(user, "resign"), nil).Object()
	for _, status := range []any{"1", "0", nil} {
		c.Patch(path(user), object{"status": status}).Problem(http.StatusConflict, "invalid_state")
	}
	unchanged(t, c, user)
	user["display_name"] = "gone"
	changed := c.Patch(path(user), user).Object()
	require.Equal(t, "gone", changed["display_name"])
	require.Equal(t, "resigned", changed["status"])
}
