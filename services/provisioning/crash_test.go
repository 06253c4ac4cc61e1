package provisioning_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

var errCrash = errors.New("the service crashes")

// A service that dies between the two, or an answer that is lost, leaves no half user: what was made is linked later,
// what was not made never will be.
func TestACrashLeavesNoHalfUser(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		late    bool // the users service has made the change
		settles bool // settle-change is answered at once
		status  int
		made    bool
	}{
		"the answer is lost":                   {true, true, http.StatusCreated, true},
		"the answer is lost, and nobody knows": {true, false, http.StatusBadGateway, true},
		"nothing was done":                     {false, true, http.StatusInternalServerError, false},
		"nothing was done, and nobody knows":   {false, false, http.StatusBadGateway, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, nil)
			c.world.fail = func(question string) (error, bool) {
				if question == "change" || question == "settle" && !row.settles {
					return errCrash, row.late && question == "change"
				}
				return nil, row.late
			}
			a := c.Post(usersPath, person("li.wei", nil))
			require.Equal(t, row.status, a.Status, "%s", a.Body)
			c.world.mu.Lock()
			c.world.fail = nil
			c.world.mu.Unlock()
			c.service.Clock.Advance(60e9)
			c.service.RunTask("finish users")
			found := c.want(http.StatusOK, http.MethodGet, usersPath, nil)["totalResults"]
			if row.made {
				require.Equal(t, 1.0, found)
				require.Equal(t, 1, c.world.usersOf("acme"))
				c.fault(http.StatusConflict, "uniqueness", http.MethodPost, usersPath, person("li.wei", nil))
			} else {
				require.Equal(t, 0.0, found)
				require.Equal(t, 0, c.world.usersOf("acme"))
				c.addUser("li.wei", nil)
			}
		})
	}
}

// A group whose members need several changes gets all of them, whatever fails in between.
func TestACrashLeavesNoHalfGroup(t *testing.T) {
	t.Parallel()
	for _, question := range []string{"change-node", "change-members"} {
		for _, late := range []bool{false, true} {
			c := connect(t, nil)
			ids := []string{c.addUser("a", nil), c.addUser("b", nil)}
			c.world.fail = func(asked string) (error, bool) {
				if asked == question || asked == "settle" {
					return errCrash, late && asked == question
				}
				return nil, late
			}
			a := c.Post(groupsPath, object{"displayName": "Platform", "members": valued(ids)})
			require.Equal(t, http.StatusBadGateway, a.Status, "%s", a.Body)
			c.world.mu.Lock()
			c.world.fail = nil
			c.world.mu.Unlock()
			c.service.Clock.Advance(120e9)
			c.service.RunTask("finish groups")
			list := c.want(http.StatusOK, http.MethodGet, groupsPath, nil)["Resources"].([]any)
			if question == "change-node" && !late {
				require.Empty(t, list)
				c.addGroup("Platform", ids...)
				continue
			}
			require.Len(t, list, 1)
			id := list[0].(object)["id"].(string)
			require.Equal(t, ids, c.members(id))
			require.Equal(t, ids, c.world.membersOf("acme", id))
		}
	}
}

// What a failure has interrupted is finished before the next change, and does not undo it later.
func TestAnInterruptedChangeUndoesNoLaterOne(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	a, b := c.addUser("a", nil), c.addUser("b", nil)
	id := c.addGroup("Platform", a)
	c.world.fail = func(asked string) (error, bool) {
		if asked == "change-members" || asked == "settle" {
			return errCrash, false
		}
		return nil, false
	}
	path := groupsPath + "/" + id
	c.want(http.StatusBadGateway, http.MethodPut, path,
		object{"displayName": "Platforms", "members": valued([]string{a, b})})
	remove := object{"op": "remove", "path": `members[value eq "` + b + `"]`}
	c.patch(http.StatusServiceUnavailable, path, remove)
	c.world.mu.Lock()
	c.world.fail = nil
	c.world.mu.Unlock()
	c.patch(http.StatusNoContent, path, remove)
	c.service.Clock.Advance(120e9)
	c.service.RunTask("finish groups")
	require.Equal(t, []string{a}, c.members(id))
	require.Equal(t, []string{a}, c.world.membersOf("acme", id))
}

// While an interrupted change is being finished, no other change of the group begins.
func TestNoChangeBesideOneThatIsBeingFinished(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	a := c.addUser("a", nil)
	path := groupsPath + "/" + c.addGroup("Platform", a)
	fail := func(as func(asked string) (error, bool)) {
		c.world.mu.Lock()
		defer c.world.mu.Unlock()
		c.world.fail = as
	}
	fail(func(asked string) (error, bool) {
		if asked == "change-members" || asked == "settle" {
			return errCrash, false
		}
		return nil, false
	})
	c.want(http.StatusBadGateway, http.MethodPut, path, object{"displayName": "Platforms"})
	reached, goOn := make(chan struct{}), make(chan struct{})
	fail(func(asked string) (error, bool) {
		if asked == "change-members" {
			close(reached)
			<-goOn
		}
		return nil, false
	})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		c.service.RunTask("finish groups")
	}()
	<-reached
	add := object{"op": "add", "path": "members", "value": valued([]string{a})}
	c.patch(http.StatusServiceUnavailable, path, add)
	c.world.fail = nil // the world is locked until goOn
	close(goOn)
	<-finished
	c.patch(http.StatusNoContent, path, add)
	require.Equal(t, []string{a}, c.members(path[len(groupsPath)+1:]))
}

// A tree that was taken for a connection that was not stored is free again.
func TestACrashLeavesNoOwnedTree(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := newWorld(t, s)
	c := &client{t: t, service: s, world: w}
	w.fail = func(string) (error, bool) { return errCrash, false }
	require.Equal(t, http.StatusInternalServerError,
		c.admin().Post(connectionsPath, object{"name": "Okta", "object_code": "okta"}).Status)
	w.mu.Lock()
	w.fail = nil
	w.mu.Unlock()
	s.Clock.Advance(60e9)
	s.RunTask("free trees")
	require.Empty(t, w.of("acme").owners)
	c.admin().Post(connectionsPath, object{"name": "Okta", "object_code": "okta"}).OK(nil)
}
