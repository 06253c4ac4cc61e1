package provisioning_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// An externalId says who a user is. A name that comes again with another one is somebody else's, who does not get the
// account, the groups and the password of the former user.
func TestANameIsNoIdentity(t *testing.T) {
	t.Parallel()
	for how, free := range map[string]bool{"disable": false, "resign": false, "delete": true} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := connect(t, object{"on_delete": how})
			first := c.addUser("john.smith", object{"externalId": "emp-1"})
			group := c.addGroup("Staff", first)
			second := person("john.smith", object{"externalId": "emp-999"})
			taken := c.fault(http.StatusConflict, "uniqueness", http.MethodPost, usersPath, second)
			require.Contains(t, taken["detail"], first, "the first is active")
			c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+first, nil)
			if free {
				id := c.want(http.StatusCreated, http.MethodPost, usersPath, second)["id"].(string)
				require.NotEqual(t, first, id)
				require.NotContains(t, c.members(group), id)
				c.fault(http.StatusConflict, "uniqueness", http.MethodPost, usersPath,
					person("John.Smith", object{"externalId": "emp-1"}))
				return
			}
			status := c.world.user("acme", first)["status"]
			taken = c.fault(http.StatusConflict, "uniqueness", http.MethodPost, usersPath, second)
			require.Contains(t, taken["detail"], first)
			require.Contains(t, taken["detail"], "delete that user")
			require.Equal(t, status, c.world.user("acme", first)["status"])
			again := c.want(http.StatusCreated, http.MethodPost, usersPath,
				person("john.smith", object{"externalId": "emp-1"}))
			require.Equal(t, first, again["id"], "the same externalId")
		})
	}
}

// A user whom the client has disabled, not deleted, does not come back as somebody else either.
func TestADisabledUserIsNotAnother(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	first := c.addUser("john.smith", object{"externalId": "emp-1"})
	c.patch(http.StatusOK, usersPath+"/"+first, object{"op": "replace", "path": "active", "value": false})
	c.fault(http.StatusConflict, "uniqueness", http.MethodPost, usersPath,
		person("john.smith", object{"externalId": "emp-999"}))
	require.Equal(t, "0", c.world.user("acme", first)["status"])
}

// Where one side has no externalId, the name has to do.
func TestANameWithoutAnExternalID(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ before, after any }{
		"neither has":           {nil, nil},
		"the new one has":       {nil, "emp-1"},
		"only the former had":   {"emp-1", nil},
		"the same, other names": {"emp-1", "emp-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, nil)
			user := c.addUser("john.smith", object{"externalId": row.before})
			group := c.want(http.StatusCreated, http.MethodPost, groupsPath,
				object{"displayName": "Staff", "externalId": row.before})["id"]
			c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+user, nil)
			c.want(http.StatusNoContent, http.MethodDelete, groupsPath+"/"+group.(string), nil)
			userName, displayName := "john.smith", "Staff"
			if row.before != nil && row.before == row.after {
				userName, displayName = "j.smith", "Staff 2"
			}
			require.Equal(t, user, c.addUser(userName, object{"externalId": row.after}))
			require.Equal(t, group, c.want(http.StatusCreated, http.MethodPost, groupsPath,
				object{"displayName": displayName, "externalId": row.after})["id"])
		})
	}
}

// A user without an externalId is found among others who had the name.
func TestTheNamesakeWithoutAnExternalID(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"on_delete": "delete"})
	for _, externalID := range []any{"emp-1", "emp-2"} {
		id := c.addUser("john.smith", object{"externalId": externalID})
		c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+id, nil)
	}
	c.admin().Patch(c.path(""), object{"on_delete": "disable"}).OK(nil)
	id := c.addUser("john.smith", object{"externalId": "emp-3"})
	c.patch(http.StatusOK, usersPath+"/"+id, object{"op": "remove", "path": "externalId"})
	c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+id, nil)
	require.Equal(t, id, c.addUser("john.smith", object{"externalId": "emp-4"}))
	c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+id, nil)
	require.Equal(t, id, c.addUser("john.smith", object{"externalId": nil}), "who is there goes before who is deleted")
}

// Groups have an identity as users have. Their names need not be unique, so a group of another externalId is new.
func TestAGroupsNameIsNoIdentity(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	user := c.addUser("john.smith", nil)
	post := func(externalID any) string {
		return c.want(http.StatusCreated, http.MethodPost, groupsPath, object{"displayName": "Staff",
			"externalId": externalID})["id"].(string)
	}
	first := post("g-1")
	c.patch(http.StatusNoContent, groupsPath+"/"+first, object{"op": "add", "path": "members",
		"value": valued([]string{user})})
	c.want(http.StatusNoContent, http.MethodDelete, groupsPath+"/"+first, nil)
	second := post("g-999")
	require.NotEqual(t, first, second)
	require.Equal(t, first, post("g-1"))
	c.want(http.StatusNoContent, http.MethodDelete, groupsPath+"/"+first, nil)
	c.want(http.StatusNoContent, http.MethodDelete, groupsPath+"/"+second, nil)
	require.NotContains(t, []string{first, second}, post("g-1000"))
}
