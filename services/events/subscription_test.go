package events_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
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
