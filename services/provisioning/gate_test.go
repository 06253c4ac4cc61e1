package provisioning_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
)

func (c *client) held() []any {
	c.t.Helper()
	return c.admin().Get(c.path("/held")).Object()["items"].([]any)
}

func (c *client) state() any {
	c.t.Helper()
	return c.admin().Get(c.path("")).Object()["state"]
}

// people adds users and returns their ids.
func (c *client) people(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = c.addUser(fmt.Sprintf("user%03d", i), nil)
	}
	return ids
}

func TestAMassRemovalIsHeldUntilItIsApproved(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"gate": object{"percent": 10, "min": 2, "hours": 24}})
	ids := c.people(8)
	off := patchOf(object{"op": "replace", "value": object{"active": false}})
	for i, id := range ids[:5] {
		a := c.Patch(usersPath+"/"+id, off)
		if i < 2 {
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			continue
		}
		require.Equal(t, http.StatusServiceUnavailable, a.Status, "%s", a.Body)
		require.NotEmpty(t, a.Header.Get("Retry-After"))
		require.Equal(t, "1", c.world.user("acme", id)["status"], "nothing has changed")
	}
	c.want(http.StatusServiceUnavailable, http.MethodDelete, usersPath+"/"+ids[5], nil)
	c.Patch(usersPath+"/"+ids[2], off) // the client tries again: it is held once
	require.Equal(t, "held", c.state())
	require.Len(t, c.held(), 4)
	c.addUser("new", nil) // the rest goes on
	c.patch(http.StatusOK, usersPath+"/"+ids[3], object{"op": "replace", "path": "displayName", "value": "Changed"})

	c.service.As("acme", auth.ProvisioningRead).Post(c.path("/approve"), nil).Problem(http.StatusForbidden, "forbidden")
	outcome := c.admin().Post(c.path("/approve"), nil).Object()
	require.Equal(t, 3.0, outcome["done"], "%v", outcome)
	require.Len(t, outcome["skipped"], 1)
	require.Equal(t, "0", c.world.user("acme", ids[2])["status"])
	require.Equal(t, "1", c.world.user("acme", ids[3])["status"], "it has changed since")
	require.Equal(t, "0", c.world.user("acme", ids[5])["status"])
	require.Equal(t, "active", c.state())
	require.Empty(t, c.held())
	require.Equal(t, http.StatusOK, c.Patch(usersPath+"/"+ids[3], off).Status)
}

func TestARejectedRemovalIsDropped(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"gate": object{"percent": 0, "min": 0, "hours": 1}})
	id := c.people(1)[0]
	body, err := json.Marshal(patchOf(object{"op": "replace", "path": "active", "value": "False"},
		object{"op": "replace", "path": "password", "value": "Sesame, open"}))
	require.NoError(t, err)
	c.want(http.StatusServiceUnavailable, http.MethodPatch, usersPath+"/"+id, string(body))
	held := c.held()
	require.Len(t, held, 1)
	require.NotContains(t, fmt.Sprint(held), "Sesame")
	c.admin().Post(c.path("/reject"), nil).OK(nil)
	require.Empty(t, c.held())
	require.Equal(t, "active", c.state())
	require.Equal(t, "1", c.world.user("acme", id)["status"])
}

func TestOverHalfOfAGroupIsHeld(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	ids := c.people(20)
	group := c.addGroup("Everybody", ids...)
	path := groupsPath + "/" + group
	c.want(http.StatusServiceUnavailable, http.MethodPut, path, object{"displayName": "Everybody",
		"members": valued(ids[:9])})
	require.Len(t, c.members(group), 20)
	c.patch(http.StatusNoContent, path, object{"op": "remove", "path": "members", "value": valued(ids[:10])})
	require.Len(t, c.members(group), 10)
	outcome := c.admin().Post(c.path("/approve"), nil).Object()
	require.Len(t, outcome["skipped"], 1, "its members have changed since: %v", outcome)

	all := c.addGroup("All", ids...)
	c.want(http.StatusServiceUnavailable, http.MethodDelete, groupsPath+"/"+all, nil)
	require.Len(t, c.members(all), 20, "a deletion takes all members")
	outcome = c.admin().Post(c.path("/approve"), nil).Object()
	require.Equal(t, 1.0, outcome["done"], "%v", outcome)
	c.want(http.StatusNotFound, http.MethodGet, groupsPath+"/"+all, nil)
}
