package provisioning_test

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

func TestAUserFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	body := person("li.wei", object{
		"name": object{"givenName": "Wei", "familyName": "Li"}, "active": true, "title": "Guide",
		"emails":       []any{object{"value": "li.wei@acme.test", "type": "work", "primary": true}},
		"phoneNumbers": []any{object{"value": "+86 138-0000-0000", "type": "mobile"}},
		"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": object{"employeeNumber": "A-17", "department": "R&D"},
		"nonsense": 1, "password": "Sesame, open",
	})
	answer := c.Post(usersPath, body)
	require.Equal(t, http.StatusCreated, answer.Status, "%s", answer.Body)
	query := usersPath + "?filter=" + url.QueryEscape(`externalId eq "ext-li.wei"`)
	made := c.want(http.StatusOK, http.MethodGet, query, nil)
	require.Equal(t, 1.0, made["totalResults"])
	user := made["Resources"].([]any)[0].(object)
	id := user["id"].(string)
	require.Contains(t, answer.Header.Get("Location"), "/scim/v2/Users/"+id)
	require.Equal(t, `W/"1"`, answer.Header.Get("ETag"))
	require.Equal(t, "Wei Li", user["displayName"])
	require.NotContains(t, user, "nonsense")
	require.NotContains(t, user, "password")
	record := c.world.user("acme", id)
	require.Equal(t, "+8613800000000", record["mobile"])
	require.Equal(t, "A-17", record["employee_number"])
	require.Empty(t, c.world.passwords)

	c.fault(http.StatusConflict, "uniqueness", http.MethodPost, usersPath, body)
	got := c.Get(usersPath + "/" + id)
	known := c.With("If-None-Match", got.Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, known.Get(usersPath+"/"+id).Status)
	changed := c.patch(http.StatusOK, usersPath+"/"+id, object{"op": "Replace", "path": "displayName", "value": "李伟"})
	require.Equal(t, "李伟", changed["displayName"])
	require.Equal(t, `W/"2"`, changed["meta"].(object)["version"])
	stale := &client{Client: c.With("If-Match", `W/"1"`), t: t}
	stale.fault(http.StatusPreconditionFailed, "", http.MethodPatch, usersPath+"/"+id,
		patchOf(object{"op": "replace", "path": "title", "value": "x"}))
	fresh := &client{Client: c.With("If-Match", `W/"2"`), t: t}
	fresh.patch(http.StatusOK, usersPath+"/"+id, object{"op": "remove", "path": "title"})

	put := c.want(http.StatusOK, http.MethodPut, usersPath+"/"+id, object{"userName": "li.wei2"})
	require.Equal(t, "li.wei2", put["userName"])
	require.Equal(t, "ext-li.wei", put["externalId"], "PUT keeps it")
	require.Equal(t, true, put["active"])
	require.NotContains(t, put, "emails")

	require.Nil(t, c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+id, nil))
	c.fault(http.StatusNotFound, "", http.MethodGet, usersPath+"/"+id, nil)
	require.Equal(t, "0", c.world.user("acme", id)["status"])
	require.Equal(t, 0.0, c.want(http.StatusOK, http.MethodGet, usersPath, nil)["totalResults"])
	again := c.want(http.StatusCreated, http.MethodPost, usersPath, person("li.wei", nil))
	require.Equal(t, id, again["id"], "it is revived")
	require.Equal(t, "1", c.world.user("acme", id)["status"])
}

// A DELETE under If-Match is refused if the user has changed, even if the copy does not know of it yet.
func TestADeleteOfAnOlderVersionIsRefused(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"disable", "resign", "delete"} {
		c := connect(t, object{"on_delete": how})
		id := c.addUser("li.wei", nil)
		c.world.mu.Lock()
		c.world.of("acme").touch(c.world.of("acme").users[id])
		c.world.mu.Unlock()
		known := &client{Client: c.With("If-Match", c.Get(usersPath+"/"+id).Header.Get("ETag")), t: t}
		known.fault(http.StatusPreconditionFailed, "", http.MethodDelete, usersPath+"/"+id, nil)
		require.Equal(t, "1", c.world.user("acme", id)["status"])
		c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+id, nil)
	}
}

func TestWhatADeleteDoes(t *testing.T) {
	t.Parallel()
	for how, status := range map[string]string{"disable": "0", "resign": "resigned"} {
		c := connect(t, object{"on_delete": how})
		id := c.addUser("li.wei", nil)
		c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+id, nil)
		require.Equal(t, status, c.world.user("acme", id)["status"])
		require.Equal(t, id, c.addUser("li.wei", nil), "the same user is back")
		require.Equal(t, "1", c.world.user("acme", id)["status"])
	}
	c := connect(t, object{"on_delete": "delete"})
	id := c.addUser("li.wei", nil)
	c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+id, nil)
	require.Equal(t, 0, c.world.usersOf("acme"))
	require.NotEqual(t, id, c.addUser("li.wei", nil))
}

func TestAdoption(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		adopt    string
		verified bool
		username string
		status   int
	}{
		"never":            {"never", true, "li.wei", http.StatusConflict},
		"by username":      {"username", false, "li.wei", http.StatusCreated},
		"by email":         {"email", true, "other", http.StatusCreated},
		"unverified email": {"email", false, "other", http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, object{"adopt": row.adopt})
			id := c.world.addUser("acme", row.username, "li.wei@acme.test", row.verified)
			body := person("li.wei", object{"emails": []any{object{"value": "li.wei@acme.test"}}})
			o := c.want(row.status, http.MethodPost, usersPath, body)
			if row.status == http.StatusCreated {
				require.Equal(t, id, o["id"])
				require.NotNil(t, c.world.user("acme", id)["managed_by"])
			} else {
				require.Equal(t, "uniqueness", o["scimType"])
				require.Nil(t, c.world.user("acme", id)["managed_by"])
			}
		})
	}
}

func TestLoginLinkAndPassword(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"login_link": object{"idp_config_id": 31, "id1": "externalId"}, "accept_password": "1"})
	id := c.addUser("li.wei", object{"password": "Sesame, open"})
	require.Equal(t, id, c.world.of("acme").creds["oidc/31/ext-li.wei"])
	require.Equal(t, "Sesame, open", c.world.passwords[id])
	byName := connect(t, object{"login_link": object{"idp_config_id": 32, "id1": "userName"}})
	id = byName.addUser("li.wei", nil)
	require.Equal(t, id, byName.world.of("acme").creds["oidc/32/li.wei"])
}

// No connection sees what belongs to another one, or to nobody.
func TestConnectionsAreApart(t *testing.T) {
	t.Parallel()
	a := connect(t, nil)
	b := another(t, a.service, a.world, "entra", nil)
	local := a.world.addUser("acme", "local", "", false)
	mine, theirs := a.addUser("a", nil), b.addUser("b", nil)
	group := b.addGroup("B", theirs)
	for _, path := range []string{usersPath + "/" + theirs, usersPath + "/" + local, groupsPath + "/" + group} {
		a.fault(http.StatusNotFound, "", http.MethodGet, path, nil)
		a.fault(http.StatusNotFound, "", http.MethodDelete, path, nil)
		a.fault(http.StatusNotFound, "", http.MethodPatch, path,
			patchOf(object{"op": "replace", "path": "displayName", "value": "x"}))
	}
	require.Equal(t, 1.0, a.want(http.StatusOK, http.MethodGet, usersPath, nil)["totalResults"])
	require.Equal(t, 0.0, a.want(http.StatusOK, http.MethodGet, groupsPath, nil)["totalResults"])
	a.fault(http.StatusBadRequest, "invalidValue", http.MethodPost, groupsPath,
		object{"displayName": "A", "members": valued([]string{mine, theirs})})
	a.fault(http.StatusConflict, "uniqueness", http.MethodPost, usersPath, person("b", object{"externalId": "x"}))
}

// Without If-Match, changes of one user at the same time are all made.
func TestParallelChangesOfAUserAllHold(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	path := usersPath + "/" + c.addUser("li.wei", nil)
	const n = 60
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			a := c.Patch(path, patchOf(object{"op": "add", "path": "roles",
				"value": []any{object{"value": fmt.Sprint("role-", i)}}}))
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		})
	}
	all.Wait()
	require.Len(t, c.want(http.StatusOK, http.MethodGet, path, nil)["roles"], n)
}

// What others always change first is answered with 503, so that the client tries again; 412 is for If-Match alone.
func TestAUserWhoChangesAllTheTime(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	id := c.addUser("li.wei", nil)
	c.world.mu.Lock()
	c.world.fail = func(asked string) (error, bool) {
		return apperr.New(apperr.VersionMismatch, "it has changed"), asked != "change"
	}
	c.world.mu.Unlock()
	rename := patchOf(object{"op": "replace", "path": "displayName", "value": "Li Wei"})
	c.fault(http.StatusServiceUnavailable, "", http.MethodPatch, usersPath+"/"+id, rename)
	require.NotEmpty(t, c.Patch(usersPath+"/"+id, rename).Header.Get("Retry-After"))
	known := &client{Client: c.With("If-Match", c.Get(usersPath+"/"+id).Header.Get("ETag")), t: t}
	known.fault(http.StatusPreconditionFailed, "", http.MethodPatch, usersPath+"/"+id, rename)
}
