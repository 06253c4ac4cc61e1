package provisioning_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

func TestAGroupFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	a, b := c.addUser("a", nil), c.addUser("b", nil)
	id := c.addGroup("Platform", a)
	require.Equal(t, []string{a}, c.members(id))
	require.Equal(t, []string{a}, c.world.membersOf("acme", id))
	path := groupsPath + "/" + id
	before := c.Get(path).Header.Get("ETag")
	both := object{"op": "Add", "path": "members", "value": valued([]string{a, b})}
	require.Nil(t, c.patch(http.StatusNoContent, path, both))
	require.NotEqual(t, before, c.Get(path).Header.Get("ETag"))
	require.Equal(t, []string{a, b}, c.members(id))
	require.Equal(t, "Core", c.patch(http.StatusOK, path+"?attributes=displayName",
		object{"op": "replace", "value": object{"id": id, "displayName": "Core"}})["displayName"])
	c.patch(http.StatusNoContent, path, object{"op": "Remove", "path": "members", "value": valued([]string{a, "999"})})
	require.Equal(t, []string{b}, c.members(id))
	c.patch(http.StatusNoContent, path, object{"op": "remove", "path": fmt.Sprintf(`members[value eq "%s"]`, b)})
	require.Empty(t, c.members(id))
	c.want(http.StatusOK, http.MethodPut, path, object{"displayName": "Core", "members": valued([]string{a})})
	require.Equal(t, []string{a}, c.members(id))

	theirs := groupsPath + "?filter=" + url.QueryEscape(`members.value eq "`+a+`"`)
	found := c.want(http.StatusOK, http.MethodGet, theirs, nil)
	require.Equal(t, 1.0, found["totalResults"])
	of := c.want(http.StatusOK, http.MethodGet, usersPath+"/"+a+"?attributes=groups", nil)
	require.Equal(t, id, of["groups"].([]any)[0].(object)["value"])
	found = c.want(http.StatusOK, http.MethodGet, usersPath+"?filter="+url.QueryEscape(`groups.value eq "`+id+`"`), nil)
	require.Equal(t, 1.0, found["totalResults"])

	refused := c.fault(http.StatusBadRequest, "invalidValue", http.MethodPatch, path,
		patchOf(object{"op": "add", "path": "members", "value": valued([]string{b, "998", "999"})}))
	require.Contains(t, refused["detail"], "998, 999")
	require.Equal(t, []string{a}, c.members(id), "nothing has changed")
	nested := patchOf(object{"op": "add", "path": "members", "value": []any{object{"value": id, "type": "Group"}}})
	c.fault(http.StatusBadRequest, "invalidValue", http.MethodPatch, path, nested)
	c.fault(http.StatusConflict, "uniqueness", http.MethodPost, groupsPath, object{"displayName": "core"})

	c.want(http.StatusNoContent, http.MethodDelete, path, nil)
	c.fault(http.StatusNotFound, "", http.MethodGet, path, nil)
	require.Empty(t, c.world.membersOf("acme", id))
	require.Equal(t, id, c.addGroup("Core", b), "it is revived")
	require.Equal(t, []string{b}, c.members(id))
}

// Member changes travel as changes: none of many at the same time is lost.
func TestParallelChangesOfMembersAllHold(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	const n = 50
	ids := make([]string, n)
	for i := range ids {
		ids[i] = c.addUser(fmt.Sprintf("u%02d", i), nil)
	}
	group := c.addGroup("Everybody")
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			a := c.Patch(groupsPath+"/"+group, patchOf(object{"op": "Add", "path": "members",
				"value": []any{object{"value": id}}}))
			require.Equal(t, http.StatusNoContent, a.Status, "%s", a.Body)
		})
	}
	all.Wait()
	require.ElementsMatch(t, ids, c.members(group))
	require.Len(t, c.world.membersOf("acme", group), n)
}

// If-Match holds until the change: of many for the same version one is made.
func TestOneOfManyChangesOfAVersionIsMade(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	a := c.addUser("a", nil)
	path := groupsPath + "/" + c.addGroup("Platform", a)
	conditional := c.With("If-Match", c.Get(path).Header.Get("ETag"))
	var all sync.WaitGroup
	var made atomic.Int64
	for i := range 10 {
		all.Go(func() {
			body := object{"displayName": fmt.Sprint("Platform ", i/2), "members": valued([]string{a}[i%2:])}
			switch answer := conditional.Do(http.MethodPut, path, body); answer.Status {
			case http.StatusOK:
				made.Add(1)
			default:
				require.Equal(t, http.StatusPreconditionFailed, answer.Status, "%s", answer.Body)
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(1), made.Load())
	require.Equal(t, http.StatusPreconditionFailed, conditional.Delete(path, nil).Status)
	anyVersion := c.With("If-Match", "*").Do(http.MethodPut, path, object{"displayName": "Any"})
	require.Equal(t, http.StatusOK, anyVersion.Status, "%s", anyVersion.Body)
}

// A change of members is one of the group: who asks for what is new since some time sees it.
func TestAMemberMovesLastModified(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	a := c.addUser("a", nil)
	path := groupsPath + "/" + c.addGroup("Platform")
	modified := func() any {
		return c.want(http.StatusOK, http.MethodGet, path, nil)["meta"].(object)["lastModified"]
	}
	before := modified()
	c.service.Clock.Advance(time.Minute)
	add := object{"op": "add", "path": "members", "value": valued([]string{a})}
	c.patch(http.StatusNoContent, path, add)
	after := modified()
	require.NotEqual(t, before, after)
	c.service.Clock.Advance(time.Minute)
	c.patch(http.StatusNoContent, path, add)
	require.Equal(t, after, modified(), "it was a member already")
}

// What the organization service refuses of the members is told, and not tried for ever.
func TestRefusedMembersAreTold(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	a := c.addUser("a", nil)
	c.world.fail = func(asked string) (error, bool) {
		if asked == "change-members" {
			return apperr.New(apperr.InvalidState, "a user has too many memberships"), false
		}
		return nil, false
	}
	answer := c.fault(http.StatusConflict, "", http.MethodPost, groupsPath,
		object{"displayName": "Platform", "members": valued([]string{a})})
	require.Contains(t, answer["detail"], "not all of its members: a user has too many memberships")
	c.world.mu.Lock()
	c.world.fail = nil
	c.world.mu.Unlock()
	c.service.Clock.Advance(time.Hour)
	c.service.RunTask("finish groups")
	found := c.want(http.StatusOK, http.MethodGet, groupsPath, nil)["Resources"].([]any)
	require.Len(t, found, 1)
	require.Empty(t, c.members(found[0].(object)["id"].(string)))
}

func TestNodesThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	a := c.addUser("a", nil)
	parent := c.addGroup("Parent", a)
	c.world.addNode("acme", "okta", "Child", object{"parent_id": parent})
	c.fault(http.StatusConflict, "", http.MethodDelete, groupsPath+"/"+parent, nil)
	require.Equal(t, []string{a}, c.members(parent))

	reader := another(t, c.service, c.world, "reader", object{"owns": []any{"username"}})
	reader.fault(http.StatusBadRequest, "mutability", http.MethodPost, groupsPath, object{"displayName": "X"})
	none := another(t, c.service, c.world, "none", object{"object_code": ""})
	none.fault(http.StatusNotFound, "", http.MethodGet, groupsPath, nil)
}

// A tree that was there before its connection is copied first.
func TestAnExistingTreeIsCopied(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := newWorld(t, s)
	first := another(t, s, w, "okta", nil)
	a := first.addUser("a", nil)
	group := first.addGroup("Old", a)
	first.admin().Delete(first.path(""), nil).OK(nil)
	s.RunTask("tell owners")
	require.Nil(t, w.user("acme", a)["managed_by"])
	dynamic := w.addNode("acme", "okta", "Dynamic", object{"is_dynamic": "1"})

	second := another(t, s, w, "okta", object{"adopt": "username"})
	s.RunTask("copy trees")
	require.Equal(t, a, second.addUser("a", nil))
	require.Equal(t, []string{a}, second.members(group))
	require.Equal(t, 2.0, second.want(http.StatusOK, http.MethodGet, groupsPath, nil)["totalResults"])
	second.fault(http.StatusBadRequest, "mutability", http.MethodPatch, groupsPath+"/"+dynamic,
		patchOf(object{"op": "add", "path": "members", "value": valued([]string{a})}))
}

// TestWhatIsReadCanBeWrittenBack: a group whose resource is larger than other bodies may be is replaced by what was
// read, which changes none of its members.
func TestWhatIsReadCanBeWrittenBack(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	ids := c.people(20)
	id := c.addGroup("Many", ids...)
	path := groupsPath + "/" + id
	read := c.want(http.StatusOK, http.MethodGet, path, nil)
	before := c.world.membersOf("acme", id)
	for _, m := range read["members"].([]any) {
		m.(object)["display"] = strings.Repeat("李", 50_000) // is read only: what is sent does not count
	}
	written := c.want(http.StatusOK, http.MethodPut, path, read)
	require.Len(t, written["members"], 20)
	require.Equal(t, before, c.world.membersOf("acme", id))
	require.Equal(t, read["meta"], written["meta"], "nothing has changed")

	read["members"] = slices.Concat(read["members"].([]any)[1:], valued([]string{c.addUser("new", nil)}))
	c.patch(http.StatusNoContent, path, object{"op": "replace", "path": "members", "value": read["members"]})
	require.Len(t, c.members(id), 20)
	require.NotContains(t, c.members(id), ids[0])

	many := make([]string, 100_001)
	for i := range many {
		many[i] = strconv.Itoa(i + 1)
	}
	c.fault(http.StatusBadRequest, "tooMany", http.MethodPut, path,
		object{"displayName": "Many", "members": valued(many)})
	read["displayName"] = strings.Repeat("x", 16<<20)
	c.fault(http.StatusRequestEntityTooLarge, "", http.MethodPut, path, read)
	c.fault(http.StatusRequestEntityTooLarge, "", http.MethodPut, usersPath+"/"+ids[0],
		person("a", object{"displayName": strings.Repeat("x", 1<<20)}))
}
