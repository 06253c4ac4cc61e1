package provisioning_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
)

// giving is a client with a user, and a group whose rules give kv:read. The connection's scopes are within.
func giving(t *testing.T, within ...string) (c *client, user, group string) {
	t.Helper()
	c = connect(t, nil)
	c.service.As("acme", auth.PlatformAdmin).Patch(c.path(""), object{"scopes": append([]string{}, within...)}).OK(nil)
	user, group = c.addUser("li.wei", nil), c.addGroup("Keepers")
	c.world.give(group, "kv:read")
	return c, user, group
}

// A membership that gives scopes beyond those of the connection waits for a person who has them.
func TestAMembershipThatGivesScopesIsHeld(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(c *client, user, group string) (method, path string, body any){
		"PATCH": func(_ *client, user, group string) (string, string, any) {
			return http.MethodPatch, groupsPath + "/" + group, patchOf(object{"op": "add", "path": "members",
				"value": valued([]string{user})})
		},
		"PUT": func(_ *client, user, group string) (string, string, any) {
			return http.MethodPut, groupsPath + "/" + group, object{"displayName": "Keepers 2",
				"members": valued([]string{user})}
		},
		"POST": func(c *client, user, _ string) (string, string, any) {
			c.world.give(c.connection["root_node_id"].(string), "kv:read")
			return http.MethodPost, groupsPath, object{"displayName": "New", "members": valued([]string{user})}
		},
		"POST that revives": func(c *client, user, group string) (string, string, any) {
			c.want(http.StatusNoContent, http.MethodDelete, groupsPath+"/"+group, nil)
			return http.MethodPost, groupsPath, object{"displayName": "Keepers", "members": valued([]string{user})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, user, group := giving(t, "kv:write")
			method, path, body := send(c, user, group)
			for range 2 { // the client tries again
				refused := c.fault(http.StatusServiceUnavailable, "", method, path, body)
				require.Contains(t, refused["detail"], "gives people scopes of this API: kv:read")
			}
			require.Empty(t, c.world.membersOf("acme", group))
			require.NotContains(t, c.world.of("acme").nodes[group]["name"], "2")
			held := c.held()
			require.Len(t, held, 1)
			require.Equal(t, []any{"kv:read"}, held[0].(object)["scopes"])
			require.Equal(t, "held", c.admin().Get(c.path("")).Object()["state"])

			c.admin().Post(c.path("/approve"), nil).Problem(http.StatusForbidden, "forbidden")
			require.Len(t, c.held(), 1)
			done := c.lacking().Post(c.path("/approve"), nil).Object()
			require.Equal(t, 1.0, done["done"], "%v", done)
			require.Empty(t, c.held())
			answer := c.admin().Get(c.path("")).Object()
			require.Equal(t, "active", answer["state"])
			if name == "POST" {
				found := c.want(http.StatusOK, http.MethodGet, groupsPath+"?filter=displayName%20eq%20%22New%22", nil)
				group = found["Resources"].([]any)[0].(object)["id"].(string)
			}
			require.Equal(t, []string{user}, c.world.membersOf("acme", group))
		})
	}
}

// Scopes of the connection may be given; who leaves or is a member already gets nothing.
func TestMembershipsThatGiveNothingNew(t *testing.T) {
	t.Parallel()
	c, user, group := giving(t, "kv:read", "kv:write")
	add := patchOf(object{"op": "add", "path": "members", "value": valued([]string{user})})
	c.want(http.StatusNoContent, http.MethodPatch, groupsPath+"/"+group, add)
	c.service.As("acme", auth.PlatformAdmin).Patch(c.path(""), object{"scopes": []string{}}).OK(nil)
	c.want(http.StatusNoContent, http.MethodPatch, groupsPath+"/"+group, add)
	c.want(http.StatusOK, http.MethodPut, groupsPath+"/"+group, object{"displayName": "Renamed",
		"members": valued([]string{user})})
	require.Equal(t, []string{user}, c.members(group))
	c.patch(http.StatusNoContent, groupsPath+"/"+group, object{"op": "remove", "path": "members"})
	c.want(http.StatusServiceUnavailable, http.MethodPatch, groupsPath+"/"+group, add)
	c.service.As("acme", auth.PlatformAdmin).Patch(c.path(""), object{"scopes": []string{"platform:admin"}}).OK(nil)
	c.want(http.StatusNoContent, http.MethodPatch, groupsPath+"/"+group, add)
}

// A held membership lets removals go on: leavers must not stay because a membership waits.
func TestAHeldMembershipDoesNotCloseTheGate(t *testing.T) {
	t.Parallel()
	c, user, group := giving(t)
	add := patchOf(object{"op": "add", "path": "members", "value": valued([]string{user})})
	c.want(http.StatusServiceUnavailable, http.MethodPatch, groupsPath+"/"+group, add)
	c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+c.addUser("chen.jie", nil), nil)
	require.Len(t, c.held(), 1)
	c.admin().Post(c.path("/reject"), nil).OK(nil)
	require.Empty(t, c.held())
	require.Empty(t, c.members(group))
}

// Of a group of which the permissions service has not heard, the nodes above it count. Without an answer nobody joins.
func TestMembershipsWaitForThePermissionsService(t *testing.T) {
	t.Parallel()
	c, user, _ := giving(t)
	group := c.addGroup("unheard")
	path := groupsPath + "/" + group
	add := patchOf(object{"op": "add", "path": "members", "value": valued([]string{user})})
	c.world.give(c.connection["root_node_id"].(string), "kv:read")
	c.want(http.StatusServiceUnavailable, http.MethodPatch, path, add)
	require.Len(t, c.held(), 1)
	c.admin().Post(c.path("/reject"), nil).OK(nil)
	c.world.give(c.connection["root_node_id"].(string))
	c.world.lacksPermissions(apperr.New(apperr.Unavailable, "the index is not ready"))
	c.want(http.StatusServiceUnavailable, http.MethodPatch, path, add)
	require.Empty(t, c.held())
	c.patch(http.StatusNoContent, path, object{"op": "remove", "path": "members"})
	c.world.lacksPermissions(nil)
	c.want(http.StatusNoContent, http.MethodPatch, path, add)
}
