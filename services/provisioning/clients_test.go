package provisioning_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a client says about an extension that the connection does not declare is ignored; the rest is carried out.
func TestUndeclaredExtensionsAreIgnored(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	path := usersPath + "/" + c.addUser("li.wei", nil)
	for _, op := range []object{
		{"op": "Add", "path": "urn:acme:badge:colour", "value": "red"},
		{"op": "replace", "path": "urn:acme:badge", "value": object{"colour": "red"}},
		{"op": "remove", "path": `urn:acme:badge:doors[floor eq "1"].key`},
		{"op": "add", "value": object{"urn:acme:badge": object{"colour": "red"}}},
	} {
		changed := c.patch(http.StatusOK, path, op, object{"op": "replace", "path": "title", "value": "Guide"})
		require.Equal(t, "Guide", changed["title"])
		require.NotContains(t, changed, "urn:acme:badge")
		c.patch(http.StatusOK, path, object{"op": "remove", "path": "title"})
	}
	c.fault(http.StatusBadRequest, "invalidPath", http.MethodPatch, path,
		patchOf(object{"op": "replace", "path": "colour", "value": "red"}))
	c.service.RunTask("store the log")
	log := c.admin().Get(c.path("/log?page_sort=time[asc]")).Object()["items"].([]any)
	require.Equal(t, []any{"urn:acme:badge:colour"}, log[1].(object)["ignored"])
}

// What clients send in forms of their own is taken.
func TestFormsOfClients(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	id := c.addUser("li.wei", object{"timezone": "China Standard Time"})
	require.Equal(t, "Asia/Shanghai", c.world.user("acme", id)["zoneinfo"])
	path := usersPath + "/" + id
	c.patch(http.StatusOK, path, object{"op": "replace", "path": "active", "value": []any{object{"value": "False"}}})
	require.Equal(t, "0", c.world.user("acme", id)["status"])
	c.patch(http.StatusOK, path, object{"op": "replace", "value": object{"active": []any{object{"value": true}}}})
	require.Equal(t, "1", c.world.user("acme", id)["status"])
	for _, bad := range []any{[]any{}, []any{object{"value": "False"}, object{"value": "True"}},
		[]any{object{"value": "no"}}, []any{object{"primary": true}}} {
		if a := c.Patch(path, patchOf(object{"op": "replace", "path": "active", "value": bad})); a.Status < 300 {
			require.Equal(t, "1", c.world.user("acme", id)["status"], "%v", bad)
		}
	}
	c.patch(http.StatusOK, path, object{"op": "replace", "path": "timezone", "value": "w. europe standard time"})
	require.Equal(t, "Europe/Berlin", c.world.user("acme", id)["zoneinfo"])
	before := c.Get(path).Header.Get("ETag")
	c.patch(http.StatusOK, path, object{"op": "replace", "path": "timezone", "value": "W. Europe Standard Time"})
	require.Equal(t, before, c.Get(path).Header.Get("ETag"), "nothing has changed")
	for _, broken := range []string{`emails[type eq`, `emails[type eq work]`, `emails[hat eq "x"].value`, `emails[]`} {
		c.fault(http.StatusBadRequest, "invalidPath", http.MethodPatch, path,
			patchOf(object{"op": "replace", "path": broken, "value": "x"}))
	}
}

// A member that the users service refuses does not keep the rest of the user out.
func TestBadMembersAreLeftOut(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	bad := object{"emails": []any{object{"value": "nobody", "type": "work"}}, "locale": "no such language",
		"timezone": "Mars/Olympus", "title": "Guide"}
	id := c.addUser("li.wei", bad)
	user := c.want(http.StatusOK, http.MethodGet, usersPath+"/"+id, nil)
	require.Equal(t, "Guide", user["title"])
	for _, name := range []string{"emails", "locale", "timezone"} {
		require.NotContains(t, user, name)
	}
	changed := c.patch(http.StatusOK, usersPath+"/"+id,
		object{"op": "add", "path": "emails", "value": []any{object{"value": "nobody"}}},
		object{"op": "replace", "path": "displayName", "value": "Li Wei"})
	require.Equal(t, "Li Wei", changed["displayName"])
	good := []any{object{"value": "li.wei@acme.test"}}
	c.patch(http.StatusOK, usersPath+"/"+id, object{"op": "replace", "path": "emails", "value": good})
	require.Equal(t, "li.wei@acme.test", c.world.user("acme", id)["email"])
	c.fault(http.StatusBadRequest, "invalidValue", http.MethodPost, usersPath, person(" x", bad))
	c.service.RunTask("store the log")
	log := c.admin().Get(c.path("/log?page_sort=time[asc]")).Object()["items"].([]any)
	require.Equal(t, []any{"emails", "locale", "timezone"}, log[0].(object)["ignored"])
	require.Equal(t, []any{"emails"}, log[2].(object)["ignored"])
}

// A conflict names the attribute, and never keeps a user who has left active.
func TestConflictsWithOtherUsers(t *testing.T) {
	t.Parallel()
	emails := []any{object{"value": "li.wei@acme.test", "type": "work"}}
	off := object{"op": "Replace", "path": "active", "value": "False"}
	for attribute, value := range map[string]any{
		"userName": "li.wei", "emails": emails, "externalId": "ext-li.wei",
		"phoneNumbers": []any{object{"value": "+8613800000000", "type": "mobile"}},
	} {
		t.Run(attribute, func(t *testing.T) {
			t.Parallel()
			c := connect(t, object{"gate": object{"percent": 0, "min": 1, "hours": 24}})
			c.addUser("li.wei", object{"emails": emails,
				"phoneNumbers": []any{object{"value": "+8613800000000", "type": "mobile"}}})
			id := c.addUser("wang.fang", nil)
			path := usersPath + "/" + id
			taken := object{"op": "Replace", "path": attribute, "value": value}
			refused := c.fault(http.StatusConflict, "uniqueness", http.MethodPatch, path, patchOf(taken))
			require.Contains(t, refused["detail"], attribute)
			require.Equal(t, "1", c.world.user("acme", id)["status"])
			refused = c.fault(http.StatusConflict, "uniqueness", http.MethodPatch, path, patchOf(taken, off))
			require.Contains(t, refused["detail"], attribute)
			require.Equal(t, "0", c.world.user("acme", id)["status"])
			user := c.want(http.StatusOK, http.MethodGet, path, nil)
			require.Equal(t, []any{false, "wang.fang", "ext-wang.fang"},
				[]any{user["active"], user["userName"], user["externalId"]})
			c.want(http.StatusServiceUnavailable, http.MethodDelete, usersPath+"/"+c.addUser("other", nil), nil)
		})
	}
}
