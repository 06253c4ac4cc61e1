package provisioning_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
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
	require.Equal(t, 4.0, outcome["done"], "%v", outcome)
	require.Empty(t, outcome["skipped"])
	require.Equal(t, "0", c.world.user("acme", ids[2])["status"])
	require.Equal(t, "0", c.world.user("acme", ids[3])["status"], "the removal still applies")
	require.Equal(t, "Changed", c.world.user("acme", ids[3])["display_name"])
	require.Equal(t, "0", c.world.user("acme", ids[5])["status"])
	require.Equal(t, "active", c.state())
	require.Empty(t, c.held())
	c.patch(http.StatusOK, usersPath+"/"+ids[3], object{"op": "replace", "path": "active", "value": true})
	require.Equal(t, http.StatusOK, c.Patch(usersPath+"/"+ids[3], off).Status, "the count has begun again")
}

// What is held waits by itself: everything else goes on.
func TestAHeldRequestHoldsNothingElse(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	ids := c.people(25)
	path := groupsPath + "/" + c.addGroup("Everybody", ids...)
	clear := object{"op": "replace", "path": "members", "value": []any{}}
	c.patch(http.StatusServiceUnavailable, path, clear)
	c.patch(http.StatusOK, usersPath+"/"+ids[0], object{"op": "replace", "path": "active", "value": "False"})
	c.want(http.StatusNoContent, http.MethodDelete, usersPath+"/"+ids[1], nil)
	c.want(http.StatusNoContent, http.MethodDelete, groupsPath+"/"+c.addGroup("Few", ids[2]), nil)
	c.patch(http.StatusNoContent, path, object{"op": "remove", "path": "members", "value": valued(ids[2:3])})
	c.patch(http.StatusServiceUnavailable, path, clear)
	require.Len(t, c.held(), 1)
	require.Equal(t, "held", c.state())
}

// Requests are approved and rejected one by one, too.
func TestSomeHeldRequestsAreDecided(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"gate": object{"percent": 0, "min": 0, "hours": 1}})
	ids := c.people(3)
	for _, id := range ids {
		c.want(http.StatusServiceUnavailable, http.MethodDelete, usersPath+"/"+id, nil)
	}
	held := map[string]string{} // by user
	for _, r := range c.held() {
		held[r.(object)["resource_id"].(string)] = r.(object)["id"].(string)
	}
	other := another(t, c.service, c.world, "other", object{"gate": object{"percent": 0, "min": 0, "hours": 1}})
	other.want(http.StatusServiceUnavailable, http.MethodDelete, usersPath+"/"+other.addUser("theirs", nil), nil)
	theirs := other.held()[0].(object)["id"].(string)
	for _, how := range []string{"/approve", "/reject"} {
		for _, unknown := range []string{"1", theirs} {
			p := c.admin().Post(c.path(how), object{"ids": []string{held[ids[0]], unknown}}).
				Problem(http.StatusBadRequest, "invalid_parameters")
			require.Len(t, p.Errors, 1)
			require.Equal(t, "body.ids[1]", p.Errors[0].Location)
		}
		c.admin().Post(c.path(how), object{"ids": []string{}}).Problem(http.StatusBadRequest, "invalid_parameters")
	}
	require.Len(t, c.held(), 3)
	outcome := c.admin().Post(c.path("/approve"), object{"ids": []string{held[ids[0]]}}).Object()
	require.Equal(t, 1.0, outcome["requests"])
	require.Equal(t, 1.0, outcome["done"], "%v", outcome)
	require.Equal(t, "0", c.world.user("acme", ids[0])["status"])
	require.Equal(t, "held", c.state())
	outcome = c.admin().Post(c.path("/reject"), object{"ids": []string{held[ids[1]]}}).Object()
	require.Equal(t, 1.0, outcome["requests"])
	require.Equal(t, "held", c.state())
	require.Len(t, c.held(), 1)
	c.admin().Post(c.path("/reject"), object{"ids": []string{held[ids[2]]}}).OK(nil)
	require.Equal(t, "active", c.state())
	require.Equal(t, "1", c.world.user("acme", ids[1])["status"])
	require.Len(t, other.held(), 1)
}

// What the client has taken back is skipped: it has said later that the user or the member stays.
func TestAHeldRemovalThatIsTakenBack(t *testing.T) {
	t.Parallel()
	off := patchOf(object{"op": "replace", "path": "active", "value": false})
	for name, back := range map[string]func(c *client, id string){
		"PATCH": func(c *client, id string) {
			c.patch(http.StatusOK, usersPath+"/"+id, object{"op": "Replace", "value": object{"active": "True"}})
		},
		"PUT": func(c *client, id string) {
			c.want(http.StatusOK, http.MethodPut, usersPath+"/"+id, person("user000", object{"active": true}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, object{"gate": object{"percent": 0, "min": 0, "hours": 1}})
			id := c.people(1)[0]
			c.want(http.StatusServiceUnavailable, http.MethodPatch, usersPath+"/"+id, off)
			back(c, id)
			require.Equal(t, true, c.held()[0].(object)["revived"])
			outcome := c.admin().Post(c.path("/approve"), nil).Object()
			require.Contains(t, outcome["skipped"].([]any)[0].(object)["reason"], "revived")
			require.Equal(t, "1", c.world.user("acme", id)["status"])
			require.Empty(t, c.held())
		})
	}
	t.Run("a member", func(t *testing.T) {
		t.Parallel()
		c := connect(t, object{"gate": object{"percent": 0, "min": 0, "hours": 1}})
		ids := c.people(22)
		path := groupsPath + "/" + c.addGroup("Everybody", ids[:21]...)
		c.want(http.StatusServiceUnavailable, http.MethodPut, path, object{"displayName": "Renamed",
			"members": valued(ids[:2])})
		c.patch(http.StatusNoContent, path, object{"op": "add", "path": "members", "value": valued(ids[20:])})
		outcome := c.admin().Post(c.path("/approve"), nil).Object()
		require.Equal(t, 1.0, outcome["done"], "%v", outcome)
		require.Equal(t, []string{ids[0], ids[1], ids[20], ids[21]}, c.members(path[len(groupsPath)+1:]))
		require.Equal(t, "Everybody", c.want(http.StatusOK, http.MethodGet, path, nil)["displayName"],
			"of a group that has changed, only the removal is carried out")
	})
	t.Run("a member of one request", func(t *testing.T) {
		t.Parallel()
		c := connect(t, object{"gate": object{"percent": 0, "min": 0, "hours": 1}})
		ids := c.people(3)
		path := groupsPath + "/" + c.addGroup("Everybody", ids...)
		for _, id := range ids[:2] {
			c.patch(http.StatusServiceUnavailable, path, object{"op": "remove", "path": "members",
				"value": valued([]string{id})})
		}
		c.patch(http.StatusNoContent, path, object{"op": "add", "path": "members", "value": valued(ids[:1])})
		stays := 0
		for _, r := range c.held() {
			if r.(object)["stays"] != nil {
				stays++
			}
		}
		require.Equal(t, 1, stays, "only that of the member")
		c.admin().Post(c.path("/approve"), nil).OK(nil)
		require.Equal(t, []string{ids[0], ids[2]}, c.members(path[len(groupsPath)+1:]))
	})
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

func TestTooManyMembersOfAGroupAreHeld(t *testing.T) {
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
	require.Equal(t, 1.0, outcome["done"], "%v", outcome)
	require.Empty(t, c.members(group), "those who are left of the ones that were to go")

	all := c.addGroup("All", ids...)
	c.want(http.StatusServiceUnavailable, http.MethodDelete, groupsPath+"/"+all, nil)
	require.Len(t, c.members(all), 20, "a deletion takes all members")
	outcome = c.admin().Post(c.path("/approve"), nil).Object()
	require.Equal(t, 1.0, outcome["done"], "%v", outcome)
	c.want(http.StatusNotFound, http.MethodGet, groupsPath+"/"+all, nil)
}

// The gate counts what ends within its hours, as shares of what was there when they began.
func TestTheGateCounts(t *testing.T) {
	t.Parallel()
	remove := func(ids ...string) object { return object{"op": "remove", "path": "members", "value": valued(ids)} }
	off := object{"op": "replace", "path": "active", "value": false}
	// add adds users beside those that the client has.
	add := func(c *client, prefix string, n int) []string {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = c.addUser(fmt.Sprintf("%s%03d", prefix, i), nil)
		}
		return ids
	}
	later := func(c *client) { c.service.Clock.Advance(30 * time.Hour) }
	// passed sends a change to each path until one is held.
	passed := func(c *client, paths []string, change func(i int) object) (n int) {
		for i, path := range paths {
			a := c.Patch(path, patchOf(change(i)))
			if a.Status == http.StatusServiceUnavailable {
				return n
			}
			require.Less(t, a.Status, 300, "%s", a.Body)
			n++
		}
		return n
	}
	members := func(n int) (*client, []string, []string) {
		c := connect(t, nil)
		ids := c.people(n)
		path := groupsPath + "/" + c.addGroup("Everybody", ids...)
		later(c)
		return c, ids, slices.Repeat([]string{path}, n)
	}
	for name, row := range map[string]struct {
		passes int
		send   func() int
	}{
		"members one by one": {10, func() int {
			c, ids, path := members(60)
			return passed(c, path, func(i int) object { return remove(ids[i]) })
		}},
		"some members at a time": {2, func() int {
			c, ids, path := members(60)
			return passed(c, path[:12], func(i int) object { return remove(ids[5*i : 5*i+5]...) })
		}},
		"a share of many members": {4, func() int {
			c, ids, path := members(200)
			return passed(c, path[:40], func(i int) object { return remove(ids[5*i : 5*i+5]...) })
		}},
		"more than a share at once": {0, func() int {
			c, ids, path := members(200)
			return passed(c, path[:1], func(int) object { return remove(ids[:21]...) })
		}},
		"who is no member does not count": {3, func() int {
			c, ids, path := members(20)
			c.patch(http.StatusNoContent, path[0], remove(ids[:10]...))
			return passed(c, path[:3], func(int) object { return remove(append(ids[:10:10], "999")...) })
		}},
		"all of a group": {0, func() int {
			c, _, path := members(19)
			return passed(c, path[:1], func(int) object { return object{"op": "remove", "path": "members"} })
		}},
		"members who were added first": {10, func() int {
			c, ids, path := members(20)
			c.patch(http.StatusNoContent, path[0], object{"op": "add", "path": "members",
				"value": valued(add(c, "dummy", 150))})
			return passed(c, path, func(i int) object { return remove(ids[i]) })
		}},
		"other hours": {10, func() int {
			c, ids, path := members(60)
			c.patch(http.StatusNoContent, path[0], remove(ids[:10]...))
			c.patch(http.StatusServiceUnavailable, path[0], remove(ids[59]))
			later(c)
			c.service.RunTask("forget counts of removals")
			return passed(c, path[:50], func(i int) object { return remove(ids[10+i]) })
		}},
		"users who were made first": {10, func() int {
			c, ids, _ := members(20)
			add(c, "dummy", 150)
			paths := make([]string, len(ids))
			for i, id := range ids {
				paths[i] = usersPath + "/" + id
			}
			return passed(c, paths, func(int) object { return off })
		}},
		"a share of many users": {15, func() int {
			c, ids, _ := members(150)
			paths := make([]string, len(ids))
			for i, id := range ids {
				paths[i] = usersPath + "/" + id
			}
			return passed(c, paths, func(int) object { return off })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.passes, row.send())
		})
	}
}

// What could not be carried out does not count.
func TestARemovalThatIsRefusedDoesNotCount(t *testing.T) {
	t.Parallel()
	c := connect(t, object{"gate": object{"percent": 0, "min": 2, "hours": 24}})
	ids := c.people(3)
	path := groupsPath + "/" + c.addGroup("Everybody", ids...)
	two := object{"op": "remove", "path": "members", "value": valued(ids[:2])}
	c.world.mu.Lock()
	c.world.fail = func(asked string) (error, bool) {
		return apperr.New(apperr.InvalidState, "not now"), asked != "change-members"
	}
	c.world.mu.Unlock()
	c.patch(http.StatusConflict, path, two)
	c.world.mu.Lock()
	c.world.fail = nil
	c.world.mu.Unlock()
	c.patch(http.StatusNoContent, path, two)
	c.patch(http.StatusServiceUnavailable, path, object{"op": "remove", "path": "members"})
	c.want(http.StatusServiceUnavailable, http.MethodDelete, path, nil)
	require.Equal(t, "too many members of the group are removed", c.held()[0].(object)["reason"])
}

// Each member of a gate counts: how many removals pass at once, and how many more two hours later.
func TestTheGateIsThatOfTheConnection(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		gate        object
		first, more int
	}{
		"half of the users":    {object{"percent": 50, "min": 0, "hours": 48}, 6, 0},
		"a quarter of them":    {object{"percent": 25, "min": 0, "hours": 48}, 3, 0},
		"a number":             {object{"percent": 0, "min": 2, "hours": 48}, 2, 0},
		"a number in one hour": {object{"percent": 0, "min": 2, "hours": 1}, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, object{"gate": row.gate})
			ids := c.people(12)
			c.service.Clock.Advance(100 * time.Hour)
			off := patchOf(object{"op": "replace", "path": "active", "value": false})
			disable := func(id string) int { return c.Patch(usersPath+"/"+id, off).Status }
			for i, passes := range []int{row.first, row.more} {
				for n, id := range ids[6*i : 6*i+passes] {
					require.Equal(t, http.StatusOK, disable(id), n)
				}
				require.Equal(t, http.StatusServiceUnavailable, disable(ids[11-i]))
				c.service.Clock.Advance(2 * time.Hour)
			}
		})
	}
}
