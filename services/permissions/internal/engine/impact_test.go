package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/enginetest"
)

// suppose makes random changes in a copy of the world and in a hypothesis.
func (s *simulation) suppose(t *testing.T) (*enginetest.World, *engine.Hypothesis) {
	after, h := *s.world, s.tenant.State().Suppose()
	after.Units, after.Rules, after.Nodes = maps.Clone(after.Units), maps.Clone(after.Rules), maps.Clone(after.Nodes)
	for range s.IntN(3) {
		who, rule := s.identity(), s.anyRule()
		h.Grant(who, "New", *rule)
		s.ids++
		rule.ID = fmt.Sprint("n", s.ids)
		for _, u := range after.Units {
			if u.Identity == who {
				rule.UnitID = u.ID
			}
		}
		if rule.UnitID == "" {
			rule.UnitID = "u" + rule.ID
			after.Units[rule.UnitID] = &engine.Unit{ID: rule.UnitID, Identity: who}
		}
		after.Rules[rule.ID] = rule
	}
	for range s.IntN(3) {
		id := pick(s, s.world.Rules)
		require.Equal(t, s.world.Rules[id] != nil, h.Revoke(id))
		delete(after.Rules, id)
	}
	for range s.IntN(3) {
		id, parent := pick(s, s.world.Nodes), pick(s, s.world.Nodes)
		err := h.Move(id, parent)
		require.Equal(t, whyNot(after.Nodes, id, parent), err)
		if err == nil && id != parent {
			moved := *after.Nodes[id]
			moved.ParentID = parent
			after.Nodes[id] = &moved
		}
	}
	for range s.IntN(3) {
		id, disabled := pick(s, s.world.Nodes), s.IntN(2) == 0
		require.Equal(t, after.Nodes[id] != nil, h.Switch(id, disabled))
		if after.Nodes[id] != nil {
			switched := *after.Nodes[id]
			switched.Disabled = disabled
			after.Nodes[id] = &switched
		}
	}
	return &after, h
}

// whyNot is the error of a move.
func whyNot(nodes map[string]*engine.TreeNode, id, parent string) error {
	root := func(n *engine.TreeNode) *engine.TreeNode {
		for nodes[n.ParentID] != nil {
			n = nodes[n.ParentID]
		}
		return n
	}
	switch {
	case nodes[id] == nil:
		return engine.ErrNoNode
	case nodes[id].ParentID == parent:
		return nil
	case nodes[parent] == nil:
		return engine.ErrOtherTree
	}
	for at := nodes[parent]; at != nil; at = nodes[at.ParentID] {
		if at.ID == id {
			return engine.ErrBelow
		}
	}
	if root(nodes[id]) != root(nodes[parent]) {
		return engine.ErrOtherTree
	}
	return nil
}

// everybody is every identity that a world may know.
func everybody(w *enginetest.World) (all []engine.Identity) {
	for id := range w.People {
		all = append(all, engine.Identity{engine.User, id})
	}
	for id := range w.Nodes {
		all = append(all, engine.Identity{engine.Node, id})
	}
	for id := range w.Trees {
		all = append(all, engine.Identity{engine.CoreObject, id})
	}
	return append(all, engine.Identity{engine.Group, "g1"}, engine.Identity{engine.Group, "g2"},
		engine.Identity{engine.Application, "7001"}, engine.Identity{engine.Application, "7002"},
		engine.Identity{engine.Everyone, engine.Any})
}

// everything is every question that can be asked about an identity at a moment.
func everything(w *enginetest.World, now int64) (all []*engine.Question) {
	for _, r := range w.Resources {
		for _, action := range r.Actions {
			all = append(all, &engine.Question{ApplicationID: r.ApplicationID, ObjectType: r.Type, ObjectCode: r.Code,
				Action: action, Now: now})
		}
	}
	for _, app := range apps {
		all = append(all, &engine.Question{ApplicationID: app, ObjectType: engine.App, Now: now})
	}
	return all
}

// itemOf is the text of an item.
func itemOf(q *engine.Question, gained bool) string {
	return fmt.Sprint(q.Identity, q.ApplicationID, q.ObjectType, q.ObjectCode, q.Action, gained)
}

// differ compares two worlds: the decisions that change without a context, those of them that change with every
// context, and how many others change with one.
func differ(before, after *enginetest.World, now int64) (items map[string]bool, sure map[string]bool, open int) {
	items, sure = map[string]bool{}, map[string]bool{}
	for _, who := range everybody(after) {
		for _, q := range everything(after, now) {
			q.Identity, q.Context = who, nil
			was, is := before.Check(q), after.Check(q)
			always, sometimes := true, false
			for _, level := range []int{0, 3, 6} {
				q.Context = fmt.Appendf(nil, `{"level":%d}`, level)
				before, after := before.Check(q), after.Check(q)
				always = always && before == was && after == is
				sometimes = sometimes || before != after
			}
			switch {
			case was != is:
				items[itemOf(q, is)], sure[itemOf(q, is)] = true, always
			case sometimes:
				open++
			}
		}
	}
	return items, sure, open
}

func questionOf(item engine.ImpactItem) *engine.Question {
	q := &engine.Question{Identity: item.Identity, ApplicationID: item.ApplicationID, ObjectType: engine.App,
		Action: item.Action}
	if item.Resource != nil {
		q.ObjectType, q.ObjectCode = item.Resource.Type, item.Resource.Code
	}
	return q
}

// An impact is what a comparison of all decisions finds.
func TestImpactIsThatOfTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	changed, conditional, opened := 0, 0, 0
	for seed := range uint64(10) {
		s := newSimulation(1000 + seed)
		for range 250 {
			s.step()
		}
		for range 6 {
			for range 10 {
				s.step()
			}
			after, h := s.suppose(t)
			now := int64(s.IntN(120))
			q := engine.ImpactQuestion{Types: engine.IdentityTypes, Limit: 1 << 20, Now: now}
			got, err := h.Impact(t.Context(), q)
			require.NoError(t, err)
			items, sure, open := differ(s.world, after, now)
			listed, gaining, losing := map[string]bool{}, map[engine.Identity]bool{}, map[engine.Identity]bool{}
			for _, item := range got.Items {
				text := itemOf(questionOf(item), item.Gained)
				listed[text] = true
				require.True(t, item.Conditional || sure[text], "%s depends on a context", text)
				if conditional += map[bool]int{true: 1}[item.Conditional]; item.Gained {
					gaining[item.Identity] = true
				} else {
					losing[item.Identity] = true
				}
			}
			require.Equal(t, slices.Sorted(maps.Keys(items)), slices.Sorted(maps.Keys(listed)))
			require.Len(t, got.Items, got.Gained+got.Lost)
			require.Equal(t, []int{len(gaining), len(losing)}, []int{got.Gaining, got.Losing})
			byType := map[string]engine.Reached{}
			for _, kind := range q.Types {
				of := func(all map[engine.Identity]bool) (n int) {
					for who := range all {
						n += map[bool]int{true: 1}[who.Type == kind]
					}
					return n
				}
				byType[kind] = engine.Reached{Gaining: of(gaining), Losing: of(losing)}
			}
			require.Equal(t, byType, got.ByType)
			require.GreaterOrEqual(t, got.Open, open)
			require.True(t, got.Complete)
			require.True(t, slices.IsSortedFunc(got.Items, compareItems))
			changed, opened = changed+len(items), opened+open
			q.Limit = 3
			few, err := h.Impact(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, got.Items[:min(3, len(got.Items))], few.Items[:len(few.Items):len(few.Items)])
			require.Equal(t, []int{got.Gained, got.Lost}, []int{few.Gained, few.Lost})
		}
	}
	require.Greater(t, changed, 200)
	require.Greater(t, conditional, 10)
	require.Greater(t, opened, 3)
}

func compareItems(a, b engine.ImpactItem) int {
	place := func(i engine.ImpactItem) int { return slices.Index(engine.IdentityTypes, i.Type) }
	x, y := questionOf(a), questionOf(b)
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID),
		strings.Compare(x.ApplicationID, y.ApplicationID), strings.Compare(x.ObjectType, y.ObjectType),
		strings.Compare(x.ObjectCode, y.ObjectCode), strings.Compare(x.Action, y.Action))
}

// What lies beyond a bound is left out, always the same, and the answer says so.
func TestImpactIsBounded(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	tenant := engine.NewTenant()
	const people, resources = 2_000, 600
	tenant.Change(func(c *engine.Change) {
		for i := range people {
			id := fmt.Sprint(100_000 + i)
			c.PutPerson(&engine.Person{ID: id, Username: id, Sequence: 1})
		}
		for i := range resources {
			code := fmt.Sprint("r", i)
			c.PutResource(&engine.Resource{ID: code, ApplicationID: "9", Type: engine.Data, Code: code,
				Actions: []string{"read"}, Sequence: 1})
		}
		for i := range engine.MaxReach { // with itself and everyone it is too much
			id := fmt.Sprint(200_000 + i)
			c.PutNode(&engine.TreeNode{ID: id, ObjectCode: "tree", Sequence: 1})
			c.PutMembership(&engine.Membership{ID: id, NodeID: id, UserID: "100001", Sequence: 1})
		}
	})
	everyone := engine.Identity{Type: engine.Everyone, ID: engine.Any}
	q := engine.ImpactQuestion{Types: []string{engine.User}, Limit: 700}
	all := engine.Rule{ApplicationID: "9", Type: engine.Wildcard, Actions: []string{engine.Any}}
	ask := func(rule engine.Rule) engine.Impact {
		h := tenant.State().Suppose()
		h.Grant(everyone, "", rule)
		found, err := h.Impact(t.Context(), q)
		require.NoError(t, err)
		return found
	}
	found := ask(all)
	require.False(t, found.Complete)
	require.Equal(t, engine.MaxCompared, found.Gained)
	require.Equal(t, engine.MaxCompared/resources+1, found.Gaining, "the last one in part")
	require.Equal(t, found, ask(all))
	require.Equal(t, "100002", found.Items[resources].ID, "100001 belongs to too much")
	found = ask(engine.Rule{ApplicationID: "9", Type: engine.Data, ResourceID: "r7", Actions: []string{engine.Any}})
	require.False(t, found.Complete)
	require.Equal(t, people-1, found.Gained)
}
