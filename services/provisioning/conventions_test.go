package provisioning_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: connectionsPath,
		Body: func(n int) any {
			return object{"name": fmt.Sprint("Connection ", n), "client_id": fmt.Sprint("client-", n)}
		},
		Change: object{"on_delete": "resign"},
		Faulty: object{"name": " ", "gate": object{"percent": 101, "min": 0, "hours": 1}},
		Faults: []string{"body.name", "body.gate.percent"}, Unique: []string{"client_id"},
		Read: auth.ProvisioningRead, Write: auth.ProvisioningWrite, Also: []auth.Scope{auth.UsersWrite},
		Unrelated: auth.KVRead,
		Open: []string{
			"scim-get-config", "scim-list-types", "scim-list-schemas", "scim-get-type", "scim-get-schema",
		},
	})
}

// Idempotency-Key and dry run hold for SCIM, too.
func TestSCIMKeepsTheConventions(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	keyed := &client{Client: c.With("Idempotency-Key", "key-1"), t: t}
	first := keyed.Post(usersPath, person("li.wei", nil))
	again := keyed.Post(usersPath, person("li.wei", nil))
	require.Equal(t, http.StatusCreated, first.Status, "%s", first.Body)
	require.Equal(t, http.StatusCreated, again.Status)
	require.JSONEq(t, string(first.Body), string(again.Body))
	require.Equal(t, first.Header.Get("Location"), again.Header.Get("Location"))
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	keyed.fault(http.StatusUnprocessableEntity, "", http.MethodPost, usersPath, person("other", nil))

	would := c.Post(usersPath+"?dry_run=true", person("wang.fang", nil))
	require.Equal(t, http.StatusCreated, would.Status, "%s", would.Body)
	require.Equal(t, "true", would.Header.Get("Dry-Run"))
	require.Equal(t, 1, c.world.usersOf("acme"))
	require.Equal(t, 1.0, c.want(http.StatusOK, http.MethodGet, usersPath, nil)["totalResults"])
	id := c.addGroup("Platform")
	require.Equal(t, http.StatusNoContent, c.Patch(groupsPath+"/"+id+"?dry_run=true",
		patchOf(object{"op": "replace", "path": "displayName", "value": "Core"})).Status)
	require.Equal(t, "Platform", c.want(http.StatusOK, http.MethodGet, groupsPath+"/"+id, nil)["displayName"])
}

// A token of another issuer is of no connection, even if its client has the same name.
func TestTokensOfOtherIssuers(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"client_id": "tester"})
	other := &client{Client: c.service.As("acme", auth.SCIM), t: t}
	other.fault(http.StatusForbidden, "", http.MethodGet, usersPath, nil)
	c.service.As("acme", auth.SCIM).Get(connectionsPath).Problem(http.StatusForbidden, "forbidden")
}

// Whatever a client asks for below the root of SCIM, it is answered in SCIM's form.
func TestEveryErrorIsOneOfSCIM(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	stranger := &client{Client: c.service.Stranger().With("Content-Type", scimType), t: t}
	for _, row := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/scim/v2", http.StatusNotFound},
		{http.MethodGet, "/scim/v2/", http.StatusNotFound},
		{http.MethodGet, "/scim/v2/Devices", http.StatusNotFound},
		{http.MethodGet, "/scim/v2/Users/1/groups", http.StatusNotFound},
		{http.MethodGet, "/scim/v2/users/1", http.StatusNotFound},
		{http.MethodPost, usersPath + "/1", http.StatusMethodNotAllowed},
		{http.MethodPut, usersPath, http.StatusMethodNotAllowed},
		{http.MethodDelete, "/scim/v2/Schemas", http.StatusMethodNotAllowed},
		{http.MethodGet, "/scim/v2/Bulk", http.StatusMethodNotAllowed},
		{"BREW", usersPath, http.StatusMethodNotAllowed},
		{http.MethodGet, "/scim/v2/Me", http.StatusNotImplemented},
		{http.MethodPost, "/scim/v2/Me", http.StatusNotImplemented},
		{http.MethodPut, "/scim/v2/Me", http.StatusNotImplemented},
		{http.MethodPatch, "/scim/v2/Me", http.StatusNotImplemented},
		{http.MethodDelete, "/scim/v2/Me", http.StatusNotImplemented},
		{http.MethodPost, "/scim/v2/.search", http.StatusNotImplemented},
	} {
		refused := c.fault(row.status, "", row.method, row.path, nil)
		require.NotEmpty(t, refused["detail"], "%s %s", row.method, row.path)
		allow := c.Do(row.method, row.path, nil).Header.Get("Allow")
		require.Equal(t, row.status == http.StatusMethodNotAllowed, allow != "", "%s %s", row.method, row.path)
	}
	stranger.fault(http.StatusNotFound, "", http.MethodGet, "/scim/v2/Devices", nil)
	c.service.Stranger().Get("/scim/v22").Problem(http.StatusNotFound, "not_found")
}
