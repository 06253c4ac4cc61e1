package organization_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// outcome is the answer to both questions.
type outcome struct {
	Applied     bool
	Memberships []storedMember
}

// ask asks as the users service would.
func (g *guided) ask(tenant, question string, q object) (outcome, error) {
	ctx := request.With(g.t.Context(), request.Info{Tenant: tenant, Actor: "admin"})
	return testkit.Ask[outcome](ctx, g.Deps.Bus, "organization", question, q)
}

func (g *guided) changeMembership(q object) (outcome, error) {
	return g.ask("acme", "change-membership", q)
}

func (g *guided) settleChange(id string) (outcome, error) {
	return g.ask("acme", "settle-change", object{"change_id": id})
}

// places are the nodes of memberships; the node of the primary membership has a star.
func places(o outcome) []string {
	ids := []string{}
	for _, m := range o.Memberships {
		if m.IsPrimary == "1" {
			m.NodeID += "*"
		}
		ids = append(ids, m.NodeID)
	}
	return ids
}

// company is a tree with two nodes, and user 1 in the first of them.
func (g *guided) company() (dev, ops object) {
	g.t.Helper()
	addObject(g.t, g.Client, "company")
	dev, ops = addNode(g.t, g.Client, "company", "", "dev"), addNode(g.t, g.Client, "company", "", "ops")
	g.Post("/v1/tree-users", object{"node_id": dev["id"], "user_id": "1", "title": "架构师", "role": "leader", "seq": 3}).
		OK(nil)
	return dev, ops
}

func TestChangeMembership(t *testing.T) {
	t.Parallel()
	g := guide(t, 2)
	dev, ops := g.company()
	move := object{"change_id": "c1", "user_id": "1", "object_code": "company", "from_node_id": dev["id"],
		"to_node_id": ops["id"]}
	before := g.everything()
	dry, err := g.changeMembership(with(object{"dry_run": true}, []object{move}))
	require.NoError(t, err)
	require.Equal(t, []string{id(ops) + "*"}, places(dry))
	require.Equal(t, before, g.everything(), "a dry run changes nothing, nor is its id taken")

	moved, err := g.changeMembership(move)
	require.NoError(t, err)
	require.Equal(t, []string{id(ops) + "*"}, places(moved))
	var has []object
	g.Get("/v1/tree-users?user_id=1").OK(&has)
	require.Len(t, has, 1)
	for name, want := range map[string]any{"title": "架构师", "role": "leader", "seq": float64(3), "is_primary": "1",
		"node_id": ops["id"], "node_name": "ops"} {
		require.Equal(t, want, has[0][name], name)
	}

	before, events := g.everything(), g.published(-1)
	again, err := g.changeMembership(move)
	require.NoError(t, err)
	require.Equal(t, moved, again, "the same id is the same change")
	settled, err := g.settleChange("c1")
	require.NoError(t, err)
	require.True(t, settled.Applied)
	require.Equal(t, moved.Memberships, settled.Memberships)
	require.Equal(t, before, g.everything())
	require.Equal(t, events, g.published(-1))

	// Without from_node_id the user is added.
	added, err := g.changeMembership(object{"change_id": "c2", "user_id": "1", "object_code": "company",
		"to_node_id": dev["id"]})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{id(ops) + "*", id(dev)}, places(added))
	first, err := g.changeMembership(object{"change_id": "c3", "user_id": "2", "object_code": "company",
		"to_node_id": dev["id"]})
	require.NoError(t, err)
	require.Equal(t, []string{id(dev) + "*"}, places(first))

	// If the user is in the new node already, nothing is added, and a move means to leave the old node.
	for i, q := range []object{{"to_node_id": dev["id"]}, {"from_node_id": dev["id"], "to_node_id": dev["id"]}} {
		same, err := g.changeMembership(with(object{"change_id": fmt.Sprint("same-", i), "user_id": "1",
			"object_code": "company"}, []object{q}))
		require.NoError(t, err)
		require.ElementsMatch(t, []string{id(ops) + "*", id(dev)}, places(same))
	}
	merged, err := g.changeMembership(object{"change_id": "c4", "user_id": "1", "object_code": "company",
		"from_node_id": ops["id"], "to_node_id": dev["id"]})
	require.NoError(t, err)
	require.Equal(t, []string{id(dev) + "*"}, places(merged))
	verify(t, g.Service)
}

// Several users move together, with their profiles, or none of them does.
func TestChangeMemberships(t *testing.T) {
	t.Parallel()
	g := guide(t, 4)
	dev, ops := g.company()
	g.join(dev, "2")
	g.join(ops, "2")
	g.join(dev, "3")
	move := object{"change_id": "c1", "user_ids": []string{"1", "2", "3"}, "object_code": "company",
		"from_node_id": dev["id"], "to_node_id": ops["id"]}
	ask := func(more ...object) error {
		_, err := g.ask("acme", "change-memberships", with(maps.Clone(move), more))
		return err
	}
	before := g.everything()
	require.NoError(t, ask(object{"dry_run": true}))
	for location, more := range map[string]object{
		"ids[1]": {"user_ids": []string{"1", "7"}}, "object_code": {"object_code": "nobody"},
		"to_node_id": {"to_node_id": "1"}, "from_node_id": {"from_node_id": "1"},
	} {
		err := ask(more)
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err), "%v", err)
		e, _ := errors.AsType[*apperr.Error](err)
		require.Equal(t, location, e.Faults[0].Location)
	}
	require.Equal(t, before, g.everything(), "a dry run or a refusal changes nothing, nor is the id taken")

	require.NoError(t, ask())
	for _, user := range []string{"1", "2", "3"} {
		require.Equal(t, []string{id(ops) + "*"}, g.nodesOf(user), user)
	}
	var has []object
	g.Get("/v1/tree-users?user_id=1").OK(&has)
	require.Equal(t, "leader", has[0]["role"])
	before, events := g.everything(), g.published(-1)
	require.NoError(t, ask(), "the same id is the same change")
	settled, err := g.settleChange("c1")
	require.NoError(t, err)
	require.True(t, settled.Applied)
	require.Equal(t, before, g.everything())
	require.Equal(t, events, g.published(-1))

	added := object{"change_id": "c2", "from_node_id": nil, "to_node_id": dev["id"], "user_ids": []string{"1", "4"}}
	require.NoError(t, ask(added))
	require.Equal(t, []string{id(dev) + "*"}, g.nodesOf("4"))
	require.ElementsMatch(t, []string{id(ops) + "*", id(dev)}, g.nodesOf("1"))

	given, err := g.settleChange("c3")
	require.NoError(t, err)
	require.False(t, given.Applied)
	require.Equal(t, apperr.InvalidState, apperr.KindOf(ask(object{"change_id": "c3"})))
	verify(t, g.Service)
}

// A primary membership stays primary when it moves.
func TestChangePrimaryMembership(t *testing.T) {
	t.Parallel()
	g := guide(t, 1)
	dev, ops := g.company()
	third := addNode(t, g.Client, "company", "", "third")
	g.join(third, "1")
	moved, err := g.changeMembership(object{"change_id": "c", "user_id": "1", "object_code": "company",
		"from_node_id": dev["id"], "to_node_id": ops["id"]})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{id(third), id(ops) + "*"}, places(moved))
	verify(t, g.Service)
}

// A change is never made after the answer that it was not made.
func TestSettledChangeIsNeverMade(t *testing.T) {
	t.Parallel()
	g := guide(t, 1)
	dev, ops := g.company()
	settled, err := g.settleChange("c")
	require.NoError(t, err)
	require.False(t, settled.Applied)
	move := object{"change_id": "c", "user_id": "1", "object_code": "company", "from_node_id": dev["id"],
		"to_node_id": ops["id"]}
	_, err = g.changeMembership(move)
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err))
	_, err = g.changeMembership(with(object{"dry_run": true}, []object{move}))
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err))
	settled, err = g.settleChange("c")
	require.NoError(t, err)
	require.False(t, settled.Applied)
	require.Equal(t, []string{id(dev) + "*"}, g.nodesOf("1"))

	// Another tenant may use the same id.
	other, err := g.ask("globex", "settle-change", object{"change_id": "d"})
	require.NoError(t, err)
	require.False(t, other.Applied)
	_, err = g.changeMembership(with(object{"change_id": "d"},
		[]object{{"user_id": "1", "object_code": "company", "to_node_id": ops["id"]}}))
	require.NoError(t, err)
	verify(t, g.Service)
}

func TestChangeMembershipRefusals(t *testing.T) {
	t.Parallel()
	g := guide(t, 2)
	dev, ops := g.company()
	addObject(t, g.Client, "projects")
	foreign := addNode(t, g.Client, "projects", "", "foreign")
	all := g.dynamic("all", "user.id == '1'")
	g.upkeep()
	g.expel("2")
	before := g.everything()
	for name, c := range map[string]struct {
		change    object
		kind      apperr.Kind
		locations string
	}{
		"no id":              {object{"change_id": ""}, apperr.InvalidParameters, "change_id"},
		"no tree":            {object{"object_code": "other"}, apperr.InvalidParameters, "object_code"},
		"no node to go to":   {object{"to_node_id": "1"}, apperr.InvalidParameters, "to_node_id"},
		"of another tree":    {object{"to_node_id": foreign["id"]}, apperr.InvalidParameters, "to_node_id"},
		"no node to go from": {object{"from_node_id": "1"}, apperr.InvalidParameters, "from_node_id"},
		"neither": {object{"from_node_id": "1", "to_node_id": "2"}, apperr.InvalidParameters,
			"to_node_id from_node_id"},
		"belongs not there": {object{"from_node_id": ops["id"], "to_node_id": dev["id"]}, apperr.InvalidParameters,
			"from_node_id"},
		"to a dynamic node":   {object{"to_node_id": all["id"]}, apperr.InvalidState, ""},
		"from a dynamic node": {object{"from_node_id": all["id"]}, apperr.InvalidState, ""},
		"nobody":              {object{"user_id": "2", "from_node_id": ""}, apperr.InvalidParameters, "user_id"},
	} {
		change := with(object{"change_id": "c", "user_id": "1", "object_code": "company", "from_node_id": dev["id"],
			"to_node_id": ops["id"]}, []object{c.change})
		for _, dry := range []bool{false, true} {
			change["dry_run"] = dry
			_, err := g.changeMembership(change)
			require.Equal(t, c.kind, apperr.KindOf(err), "%s: %v", name, err)
			var refusal *apperr.Error
			require.ErrorAs(t, err, &refusal)
			var locations []string
			for _, fault := range refusal.Faults {
				locations = append(locations, fault.Location)
			}
			require.Equal(t, c.locations, strings.Join(locations, " "), name)
		}
	}
	_, err := g.ask("globex", "change-membership", object{"change_id": "c", "user_id": "1", "object_code": "company",
		"to_node_id": ops["id"]})
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err), "another tenant's")
	require.Equal(t, before, g.everything())
	settled, err := g.settleChange("c")
	require.NoError(t, err)
	require.False(t, settled.Applied, "what was refused was not made")
}

// A change that is asked for many times at the same time is made once. If it is settled at the same time, all askers
// get the same outcome.
func TestRaceOfChangeAndSettlement(t *testing.T) {
	t.Parallel()
	g := guide(t, 1)
	dev, ops := g.company()
	from, to := dev, ops
	for round := range 25 {
		change := object{"change_id": fmt.Sprint("c", round), "user_id": "1", "object_code": "company",
			"from_node_id": from["id"], "to_node_id": to["id"]}
		var made, settled [4]outcome
		var errs [8]error
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() { made[i], errs[i] = g.changeMembership(change) })
			if round%2 == 0 {
				all.Go(func() { settled[i], errs[4+i] = g.settleChange(change["change_id"].(string)) })
			}
		}
		all.Wait()
		applied := g.nodesOf("1")[0] == id(to)+"*"
		for i := range 4 {
			require.NoError(t, errs[4+i])
			if round%2 == 0 {
				require.Equal(t, applied, settled[i].Applied)
			}
			if applied {
				require.NoError(t, errs[i])
				require.Equal(t, []string{id(to) + "*"}, places(made[i]))
			} else {
				require.Equal(t, apperr.InvalidState, apperr.KindOf(errs[i]))
			}
		}
		require.True(t, applied || round%2 == 0)
		if applied {
			from, to = to, from
		}
	}
	verify(t, g.Service)
}

// Outcomes are deleted only when nobody asks for them any longer.
func TestChangesAreForgotten(t *testing.T) {
	t.Parallel()
	g := guide(t, 1)
	dev, ops := g.company()
	_, err := g.changeMembership(object{"change_id": "c", "user_id": "1", "object_code": "company",
		"from_node_id": dev["id"], "to_node_id": ops["id"]})
	require.NoError(t, err)
	forget := g.tasks["forget membership changes"]
	g.Clock.Advance(23 * time.Hour)
	n, err := forget(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	g.Clock.Advance(time.Hour)
	n, err = forget(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Zero(t, stored(t, g.Service, "acme", "membership_changes"))
}
