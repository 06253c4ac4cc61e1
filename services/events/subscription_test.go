package events_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

// The filters of a tenant have a common budget, for creates and updates alike.
func TestFiltersOfATenantHaveABudget(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	const costly = "event.data.list.all(a, event.data.list.all(b, a != b))"
	draft := func(n int, filter string) object {
		return hook(fmt.Sprint("s", n), "https://hr.acme.test", object{"status": "0", "filter": filter})
	}
	made := 0
	for c.Post(subscriptionsPath, draft(made, costly)).Status == http.StatusOK {
		require.Less(t, made, 200, "the budget is not bounded")
		made++
	}
	require.Greater(t, made, 2)
	c.Post(subscriptionsPath, draft(made, costly)).Problem(http.StatusConflict, "invalid_state")

	cheap := c.Post(subscriptionsPath, draft(made, `event.actor == "ann"`)).Object()
	c.Patch(one(cheap), object{"filter": costly}).Problem(http.StatusConflict, "invalid_state")
	in(s, "globex").Post(subscriptionsPath, draft(0, costly)).OK(nil)

	first := c.Items(subscriptionsPath+"?name=s0", "id")[0].(string)
	c.Patch(subscriptionsPath+"/"+first, object{"filter": ""}).OK(nil)
	c.Patch(one(cheap), object{"filter": costly}).OK(nil)
}

func TestSubscriptionsOfATenantAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	for n := range 200 {
		c.Post(subscriptionsPath, hook(fmt.Sprint("s", n), "https://hr.acme.test", object{"status": "0"})).OK(nil)
	}
	c.Post(subscriptionsPath, hook("another", "https://hr.acme.test")).Problem(http.StatusConflict, "invalid_state")
	in(s, "globex").Post(subscriptionsPath, hook("one", "https://hr.globex.test")).OK(nil)
}

// A subscription that can never get an event is a mistake, and the answer says which entry it is.
func TestEventTypesExist(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	of := func(types ...any) object { return object{"event_types": types} }
	for name, types := range map[string][]any{
		"types": {"user.created", "node.moved"}, "an entity": {"kv_object.*"}, "an action": {"*.deleted"},
		"all": {"*.*", "*"},
	} {
		c.Post(subscriptionsPath, hook(name, "https://hr.acme.test", of(types...))).OK(nil)
	}
	path := one(c.Post(subscriptionsPath, hook("one", "https://hr.acme.test")).Object())
	wrong := of("user.*", "usr.*", "user.creatd", "*.creatd", "user")
	for _, answer := range []*testkit.Answer{
		c.Post(subscriptionsPath, hook("wrong", "https://hr.acme.test", wrong)), c.Patch(path, wrong),
		c.Do(http.MethodPut, path, hook("one", "https://hr.acme.test", wrong)),
	} {
		answer.Problem(http.StatusBadRequest, "invalid_parameters", "body.event_types[1]", "body.event_types[2]",
			"body.event_types[3]", "body.event_types[4]")
	}
}
