package organization_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// costly returns a condition that costs nearly the most that one may; different numbers give different conditions.
func costly(n int) string {
	return fmt.Sprintf(`user.list.all(a, user.list.all(b, a + b - a - b + a + b >= %d))`, n)
}

// A tenant's conditions are bounded together, however they are set, and removed ones make room.
func TestBudgetOfConditions(t *testing.T) {
	t.Parallel()
	_, c, _ := withPeople(t, 0)
	addObject(t, c, "company")
	add := func(i int) object {
		return object{"object_code": "company", "parent_id": "", "name": fmt.Sprint("n", i), "is_dynamic": "1",
			"condition": costly(0)}
	}
	cost := tree.Estimate(costly(0))
	fit := int(tree.MaxConditions / cost)
	require.Greater(t, fit, 2)
	require.Less(t, fit, 50)
	var made []object
	for i := range fit - 1 {
		made = append(made, c.Post(nodesPath, add(i)).Object())
	}
	item := func(i int) object {
		return object{"name": fmt.Sprint("b", i), "is_dynamic": "1", "condition": costly(0)}
	}
	refused := c.Post(nodesBatch, object{"object_code": "company", "items": []object{{"name": "plain"}, item(0),
		item(1)}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.items[2].condition")
	require.Contains(t, refused.Errors[0].Message, "together they may have 1000000")
	made = append(made, c.Post(nodesPath, add(fit)).Object())
	c.Post(nodesPath, add(fit+1)).Problem(http.StatusBadRequest, "invalid_parameters", "body.condition")
	plain := addNode(t, c, "company", "", "plain")
	c.Patch(node(plain), object{"is_dynamic": "1", "condition": costly(0)}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.condition")
	c.Post("/v1/core-objects", object{"code": "second", "name": "s",
		"root": object{"is_dynamic": "1", "condition": costly(0)}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.root.condition")
	c.Patch(node(made[0]), object{"condition": costly(1)}).OK(nil)
	c.Patch(node(made[0]), object{"condition": "true"}).OK(nil)
	c.Patch(node(plain), object{"is_dynamic": "1", "condition": costly(0)}).OK(nil)
	c.Post(nodesPath, add(fit+2)).Problem(http.StatusBadRequest, "invalid_parameters", "body.condition")
	c.Delete(node(made[1])+"?object_code=company", nil).OK(nil)
	last := c.Post(nodesPath, add(fit+3)).Object()
	c.Patch(node(last), object{"is_dynamic": "0"}).OK(nil)
	c.Post(nodesPath, add(fit+4)).OK(nil)
}

// A condition that reads nothing is counted, too.
func TestConditionThatCostsNothing(t *testing.T) {
	t.Parallel()
	g := guide(t, 0)
	addObject(t, g.Client, "company")
	n := g.dynamic("all", "true")
	g.upkeep()
	g.change("created", "1", object{})
	require.Equal(t, []string{"1"}, g.usersOf(n, ""))
}

// A tenant with as many costly conditions as allowed and 60 changes of users does not delay others: its changes wait in
// the store, those of a quiet tenant are handled at once, and another costly tenant's after one turn.
func TestCostlyTenantDelaysNobody(t *testing.T) {
	t.Parallel()
	g := guide(t, 0)
	globex, third := in(g.Service, "globex"), in(g.Service, "third")
	const changes = 60
	list := object{"list": slicesOf(20)}
	fit := int(tree.MaxConditions / tree.Estimate(costly(0)))
	addObject(t, g.Client, "company")
	var last object
	for i := range fit {
		last = g.dynamic(fmt.Sprint(i), costly(0))
	}
	addObject(t, globex, "company")
	calm := addNode(t, globex, "company", "", "all", object{"is_dynamic": "1", "condition": "user.level > 5"})
	addObject(t, third, "company")
	other := addNode(t, third, "company", "", "all", object{"is_dynamic": "1", "condition": costly(0)})
	g.upkeep()
	var events []string
	for i := range changes {
		events = append(events, g.tell("acme", "updated",
			with(object{"id": fmt.Sprint("u", i), "version": 2, "status": "1"}, []object{list})))
	}
	events = append(events, g.tell("globex", "updated", object{"id": "1", "version": 2, "status": "1", "level": 9}),
		g.tell("third", "updated", with(object{"id": "1", "version": 2, "status": "1"}, []object{list})))
	g.hear(events...)
	require.Len(t, storedMembers(t, g.Service, "globex"), 1, "at once")
	require.Empty(t, storedMembers(t, g.Service, "acme"), "no condition was evaluated while events were handled")
	require.EqualValues(t, changes, stored(t, g.Service, "acme", "rechecks"))
	require.NotEmpty(t, id(calm))

	g.Clock.Advance(time.Second)
	left, err := g.tasks["keep memberships"](t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, left, "the costly tenant has more to do")
	require.Len(t, storedMembers(t, g.Service, "third"), 1, "after one turn of each")
	require.NotEmpty(t, id(other))
	done := changes - stored(t, g.Service, "acme", "rechecks")
	require.Positive(t, done)
	require.LessOrEqual(t, done, int64(50), "a turn is bounded")
	g.upkeep()
	require.Zero(t, stored(t, g.Service, "acme", "rechecks"))
	require.Equal(t, changes, g.storedIn(last))
	verify(t, g.Service)
}

// Of several changes of one user the last counts, whatever is waiting, and however many turns the conditions take.
func TestRechecksAreInOrder(t *testing.T) {
	t.Parallel()
	g := guide(t, 0)
	addObject(t, g.Client, "company")
	fit := int(tree.MaxConditions / tree.Estimate(costly(0)))
	var last object
	for i := range fit {
		last = g.dynamic(fmt.Sprint(i), costly(0))
	}
	g.upkeep()
	for level := range 5 {
		g.change("updated", "1", object{"list": []int{level - 4}})
		require.EqualValues(t, 1, stored(t, g.Service, "acme", "rechecks"), "one recheck for all changes")
	}
	var text bytes.Buffer
	require.NoError(t, json.Indent(&text, []byte(testkit.Stored(t, g.Service, "acme", "rechecks")["1"]), "", "  "))
	text.WriteByte('\n')
	basic.Golden(t, "testdata/recheck.json.golden", basic.Since(t, g.Clock.Now(), text.Bytes()))
	g.upkeep()
	require.Equal(t, 1, g.storedIn(last))
	g.change("updated", "1", object{"list": []int{-1}})
	g.change("deleted", "1", object{})
	g.upkeep()
	require.Zero(t, g.storedIn(last))
	require.Zero(t, stored(t, g.Service, "acme", "rechecks"))
	g.resign("3")
	g.change("reinstated", "3", object{"list": []int{1}})
	g.join(addNode(t, g.Client, "company", "", "by hand"), "3")
	g.upkeep()
	require.Equal(t, 1, g.storedIn(last), "the user who returned is a member again")
	g.resign("3")
	g.put("2", object{})
	g.change("updated", "2", object{"list": []int{1}})
	g.hear(g.tell("acme", "updated", object{"id": "2", "version": 1, "status": "1", "list": []int{-1}}))
	g.upkeep()
	require.Equal(t, 1, g.storedIn(last), "a late event changes nothing")
	verify(t, g.Service)
}

// Records with which conditions cost far more than estimated are evaluated in many bounded turns, and completely.
func TestLargeRecords(t *testing.T) {
	t.Parallel()
	g := guide(t, 0)
	addObject(t, g.Client, "company")
	const many, users, entries = 8, 6, 9000
	var nodes []object
	for i := range many {
		nodes = append(nodes, g.dynamic(fmt.Sprint(i), "user.list.all(a, a >= 0)"))
	}
	list := slicesOf(entries)
	for i := range users {
		g.put(fmt.Sprintf("%02d", i), object{"list": list})
	}
	turns := 0
	for left := 1; left > 0; turns++ {
		var err error
		left, err = g.tasks["keep memberships"](t.Context())
		require.NoError(t, err)
	}
	require.Greater(t, turns, many*users*5*entries/10_000_000, "a turn is bounded by what it costs")
	for _, n := range nodes {
		require.Equal(t, users, g.storedIn(n))
	}
	g.change("updated", "00", object{"list": append(slicesOf(entries), -1)})
	require.EqualValues(t, 1, stored(t, g.Service, "acme", "rechecks"),
		"the event's handling left the rest to a recheck")
	g.upkeep()
	for _, n := range nodes {
		require.Equal(t, users-1, g.storedIn(n))
	}
	verify(t, g.Service)
}

func slicesOf(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
