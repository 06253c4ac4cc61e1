package provisioning_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

var everything = []auth.Scope{
	auth.ProvisioningRead, auth.ProvisioningWrite, auth.UsersWrite, auth.UsersSecrets, auth.OrganizationWrite,
	auth.KVRead,
}

// lacking is a caller who holds everything but some scopes.
func (c *client) lacking(scopes ...auth.Scope) *testkit.Client {
	held := slices.DeleteFunc(slices.Clone(everything), func(s auth.Scope) bool { return slices.Contains(scopes, s) })
	return c.service.As("acme", held...)
}

// Nobody lets a connection do what he may not do himself: neither when it is made nor later.
func TestAConnectionDoesNotMoreThanItsMakerMay(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body  object
		needs auth.Scope
	}{
		"users":             {object{}, auth.UsersWrite},
		"by username":       {object{"adopt": "username"}, auth.UsersSecrets},
		"by email":          {object{"adopt": "email"}, auth.UsersSecrets},
		"passwords":         {object{"accept_password": "1"}, auth.UsersSecrets},
		"a tree":            {object{"object_code": "there"}, auth.OrganizationWrite},
		"a tree it reads":   {object{"object_code": "there", "owns": []string{"username"}}, auth.OrganizationWrite},
		"scopes":            {object{"scopes": []string{"kv:read"}}, auth.KVRead},
		"one of the scopes": {object{"scopes": []string{"users:write", "kv:read"}}, auth.KVRead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, nil)
			c.world.addTree("acme", "there")
			body := object{"name": "Another"}
			for member, value := range row.body {
				body[member] = value
			}
			all, lacks := c.lacking(), c.lacking(row.needs)
			refused := func(method, path string, body any) {
				t.Helper()
				p := lacks.Do(method, path, body).Problem(http.StatusForbidden, "forbidden")
				require.Contains(t, p.Detail, string(row.needs), "%s %s", method, path)
			}
			refused(http.MethodPost, connectionsPath, body)
			refused(http.MethodPost, connectionsPath+"?dry_run=true", body)
			require.Nil(t, c.world.ownerOf("acme", "there"))
			path := connectionsPath + "/" + all.Post(connectionsPath, body).ID()
			refused(http.MethodPatch, path, object{"client_id": "mine"})
			refused(http.MethodPost, path+"/tokens", object{"name": "mine"})
			lacks.Post(path+"/disable", nil).OK(nil)
			refused(http.MethodPost, path+"/enable", nil)
			require.Equal(t, "0", all.Get(path).Object()["status"])
			require.Equal(t, "", all.Get(path).Object()["client_id"])
			all.Post(path+"/enable", nil).OK(nil)
			all.Post(path+"/tokens", object{"name": "mine"}).Object()
			lacks.Do(http.MethodDelete, path, nil).OK(nil)
		})
	}
}

// What decides is what the connection can do after the change.
func TestAChangeThatTakesRightsAway(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	path := connectionsPath + "/" + c.lacking().Post(connectionsPath, object{"name": "Another", "adopt": "username",
		"scopes": []string{"kv:read"}}).ID()
	lacks := c.lacking(auth.UsersSecrets, auth.KVRead)
	lacks.Patch(path, object{"adopt": "never"}).Problem(http.StatusForbidden, "forbidden")
	lacks.Patch(path, object{"adopt": "never", "scopes": []string{}}).OK(nil)
	lacks.Patch(path, object{"adopt": "email"}).Problem(http.StatusForbidden, "forbidden")
	lacks.Patch(path, object{"scopes": []string{"platform:admin"}}).Problem(http.StatusForbidden, "forbidden")
	c.service.As("acme", auth.PlatformAdmin).Patch(path, object{"scopes": []string{"platform:admin"}}).OK(nil)
}

// Who makes a connection with a new tree does not need organization:write, also later.
func TestATreeThatIsMadeWithItsConnection(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	lacks := c.lacking(auth.OrganizationWrite)
	made := lacks.Post(connectionsPath, object{"name": "Another", "object_code": "new"}).Object()
	require.Equal(t, true, made["tree_made"])
	path := connectionsPath + "/" + made["id"].(string)
	lacks.Patch(path, object{"name": "x"}).OK(nil)
	lacks.Post(path+"/tokens", object{"name": "x"}).OK(nil)
	lacks.Post(path+"/approve", nil).OK(nil)
	c.world.addTree("acme", "there")
	taken := c.lacking().Post(connectionsPath, object{"name": "Third", "object_code": "there"}).Object()
	require.Equal(t, false, taken["tree_made"])
	path = connectionsPath + "/" + taken["id"].(string)
	lacks.Post(path+"/approve", nil).Problem(http.StatusForbidden, "forbidden")
	c.lacking(auth.UsersWrite).Post(path+"/approve", nil).Problem(http.StatusForbidden, "forbidden")
	lacks.Post(path+"/reject", nil).OK(nil)
}

func TestScopesOfAConnection(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	require.Equal(t, []any{}, c.connection["scopes"])
	c.lacking().Post(connectionsPath, object{"name": "x", "scopes": []string{"kv:read", "nothing", "kv:read", "",
		"kv:read kv:write"}}).Problem(http.StatusBadRequest, "invalid_parameters", "body.scopes[1]", "body.scopes[2]",
		"body.scopes[3]", "body.scopes[4]")
}

// Nobody is adopted who has scopes of the platform's API that the connection lacks.
func TestWhoHasScopesIsNotAdopted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		has, within []string
		status      int
	}{
		"none":             {nil, nil, http.StatusCreated},
		"one":              {[]string{"kv:read"}, nil, http.StatusConflict},
		"all":              {[]string{"platform:admin"}, []string{"kv:read"}, http.StatusConflict},
		"within":           {[]string{"kv:read"}, []string{"kv:read"}, http.StatusCreated},
		"one that lacks":   {[]string{"kv:read", "kv:write"}, []string{"kv:read"}, http.StatusConflict},
		"within all there": {[]string{"kv:read", "platform:admin"}, []string{"platform:admin"}, http.StatusCreated},
	} {
		for _, adopt := range []string{"username", "email"} {
			t.Run(name+" by "+adopt, func(t *testing.T) {
				t.Parallel()
				c := connect(t, object{"adopt": adopt, "accept_password": "1"})
				c.service.As("acme", auth.PlatformAdmin).Patch(c.path(""), object{"scopes": row.within}).OK(nil)
				id := c.world.addUser("acme", "li.wei", "li.wei@acme.test", true)
				c.world.give(id, row.has...)
				body := person("li.wei", object{"emails": []any{object{"value": "li.wei@acme.test"}},
					"password": "Sesame, open"})
				if row.status == http.StatusCreated {
					require.Equal(t, id, c.want(row.status, http.MethodPost, usersPath, body)["id"])
					return
				}
				c.fault(row.status, "uniqueness", http.MethodPost, usersPath, body)
				bulk := c.want(http.StatusOK, http.MethodPost, "/scim/v2/Bulk", object{
					"schemas":    []string{"urn:ietf:params:scim:api:messages:2.0:BulkRequest"},
					"Operations": []object{{"method": "POST", "path": "/Users", "bulkId": "1", "data": body}},
				})
				require.Equal(t, "409", bulk["Operations"].([]any)[0].(object)["status"])
				require.Nil(t, c.world.user("acme", id)["managed_by"])
				require.Empty(t, c.world.passwords)
			})
		}
	}
}

// Where users may share addresses, a connection still adopts the owner of a verified one. If it must not adopt the
// owner, it makes nobody.
func TestASharedAddressIsAdopted(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"adopt": "email"})
	c.world.mu.Lock()
	c.world.sharing = true
	c.world.mu.Unlock()
	post := func(name, email string) object {
		return c.want(http.StatusCreated, http.MethodPost, usersPath,
			person(name, object{"emails": []any{object{"value": email}}}))
	}
	ann := c.world.addUser("acme", "ann", "ann@acme.test", true)
	require.Equal(t, ann, post("ann.lee", "ann@acme.test")["id"])
	boss := c.world.addUser("acme", "boss", "boss@acme.test", true)
	c.world.give(boss, "platform:admin")
	c.fault(http.StatusConflict, "uniqueness", http.MethodPost, usersPath,
		person("other", object{"emails": []any{object{"value": "boss@acme.test"}}}))
	unproven := c.world.addUser("acme", "bea", "bea@acme.test", false)
	require.NotEqual(t, unproven, post("bea.lee", "bea@acme.test")["id"])
}

// A connection sets no password of a user who has scopes beyond its own, but disables the user.
func TestPasswordsOfUsersWithScopes(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"accept_password": "1"})
	id := c.addUser("li.wei", object{"password": "Sesame, open"})
	change := func(value object) {
		c.want(http.StatusOK, http.MethodPatch, usersPath+"/"+id, patchOf(object{"op": "replace", "value": value}))
	}
	change(object{"password": "Open, sesame"})
	require.Equal(t, "Open, sesame", c.world.passwords[id])
	c.world.give(id, "platform:admin")
	change(object{"password": "A third one!", "active": false})
	require.Equal(t, "Open, sesame", c.world.passwords[id])
	require.Equal(t, "0", c.world.user("acme", id)["status"])
}

// Without an answer about scopes nobody is adopted.
func TestAdoptionWaitsForThePermissionsService(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"adopt": "username"})
	id := c.world.addUser("acme", "li.wei", "", false)
	c.world.lacksPermissions(apperr.New(apperr.Unavailable, "the index is not ready"))
	c.want(http.StatusServiceUnavailable, http.MethodPost, usersPath, person("li.wei", nil))
	require.Nil(t, c.world.user("acme", id)["managed_by"])
}
