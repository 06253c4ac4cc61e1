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
