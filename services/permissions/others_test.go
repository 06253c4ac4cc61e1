package permissions_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// What other applications grant of an application's resources keeps it from being deleted, also where they grant a set
// of their own that has them. One question is enough, however many resources there are.
func TestGrantsByOtherApplications(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	for i := range 150 {
		c.Post("/v1/resources", object{"application_id": "8", "type": "data", "code": "shared" + strconv.Itoa(i),
			"is_global": "1", "actions": []object{{"code": "read"}}}).OK(nil)
	}
	c.Post("/v1/resource-sets", object{"application_id": "8", "code": "theirs", "is_global": "1"}).OK(nil)
	granted := func() int64 {
		t.Helper()
		n, err := questions.GrantsOfApplication.Ask(request.System(t.Context(), "acme"), s.Deps.Bus,
			questions.ApplicationID{ID: "8"})
		require.NoError(t, err)
		return n.Count
	}
	own := data("shared0", "read")
	own["application_id"] = "8"
	grant := func(rules ...object) {
		t.Helper()
		c.Post("/v1/batch/auth-unit-rules", object{
			"identities": []object{{"identity_type": "user", "identity_id": "20"}}, "rules": rules,
		}).OK(nil)
	}
	grant(own)
	require.EqualValues(t, 0, granted(), "an own grant")
	for i := range 150 {
		rule := data("shared"+strconv.Itoa(i), "read")
		rule["application_id"] = "9"
		grant(rule)
	}
	require.EqualValues(t, 150, granted())
	set := addSet(t, c, "ours")
	for i := range 2 {
		c.Post("/v1/resource-sets/"+set+"/members", object{"resource_code": "shared" + strconv.Itoa(i),
			"resource_type": "data"}).OK(nil)
	}
	require.EqualValues(t, 150, granted(), "a set that nobody is granted")
	grant(object{"application_id": "9", "type": "res_set", "code": "ours", "actions": []string{"read"}})
	require.EqualValues(t, 151, granted(), "once, though two of its resources are shared")
	grant(object{"application_id": "9", "type": "res_set", "code": "theirs", "actions": []string{"read"}})
	require.EqualValues(t, 152, granted())
}

// Rules of several applications in one request name resources and sets: their own by code, otherwise the only global
// one; by id, also a global one of another application.
func TestRulesNameResourcesAndSetsOfTheirApplications(t *testing.T) {
	t.Parallel()
	c := in(start(t), "acme")
	ids := map[string]string{}
	for _, at := range []struct{ application, code, global string }{
		{"7", "own", "0"}, {"8", "own", "1"}, {"9", "own", "0"}, {"8", "shared", "1"}, {"8", "private", "0"},
		{"8", "twice", "1"}, {"9", "twice", "1"},
	} {
		body := object{"application_id": at.application, "code": at.code, "is_global": at.global}
		ids["res_set "+at.application+at.code] = c.Post("/v1/resource-sets", body).ID()
		body["type"], body["actions"] = "data", []object{{"code": "read"}}
		ids["data "+at.application+at.code] = c.Post("/v1/resources", body).ID()
	}
	for kind, by := range map[string]string{"data": "resource_id", "res_set": "resource_set_id"} {
		rule := func(application, code, id string) object {
			r := object{"application_id": application, "type": kind, "actions": []string{"read"}}
			if code != "" {
				r["code"] = code
			} else {
				r[by] = id
			}
			return r
		}
		grant := func(user string, rules ...object) *testkit.Answer {
			return c.Post("/v1/batch/auth-unit-rules", object{
				"identities": []object{{"identity_type": "user", "identity_id": user}}, "rules": rules,
			})
		}
		user := "user-of-" + kind
		grant(user, rule("7", "own", ""), rule("9", "own", ""), rule("6", "own", ""), rule("7", "shared", ""),
			rule("9", "twice", ""), rule("9", "", ids[kind+" 8shared"])).OK(nil)
		var given []string
		for _, r := range c.Get("/v1/auth-rules?identity_type=user&identity_id=" + user).Object()["items"].([]any) {
			given = append(given, r.(object)["application_id"].(string)+" "+r.(object)[by].(string))
		}
		require.ElementsMatch(t, []string{
			"7 " + ids[kind+" 7own"], "9 " + ids[kind+" 9own"], "6 " + ids[kind+" 8own"], "7 " + ids[kind+" 8shared"],
			"9 " + ids[kind+" 9twice"], "9 " + ids[kind+" 8shared"],
		}, given)
		grant(user, rule("9", "own", ""), rule("7", "twice", ""), rule("7", "private", ""), rule("8", "private", ""),
			rule("9", "", ids[kind+" 8private"]), rule("9", "nothing", ""), rule("9", "", "1")).
			Problem(http.StatusBadRequest, "invalid_parameters", "body.rules[1].code", "body.rules[2].code",
				"body.rules[4]."+by, "body.rules[5].code", "body.rules[6]."+by)
	}
}
