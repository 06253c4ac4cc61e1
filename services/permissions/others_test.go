package permissions_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
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
