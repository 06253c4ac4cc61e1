package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkImpact compares decisions in a tenant with the rules of large: of 10,000 people below a node that moves, and
// of 100,000 below a node that is granted something.
func BenchmarkImpact(b *testing.B) {
	t := large(size())
	t.Change(func(c *Change) {
		put := func(id, parent string, people int) {
			c.PutNode(&TreeNode{ID: id, Name: id, ParentID: parent, ObjectCode: "company", Sequence: 1})
			c.PutUnit(&Unit{ID: "unit of " + id, Identity: Identity{Node, id}, Sequence: 1})
			for i := range people {
				who := fmt.Sprint(id, number(i))
				c.PutPerson(&Person{ID: who, Username: who, Sequence: 1})
				c.PutMembership(&Membership{ID: "m" + who, NodeID: id, UserID: who, Sequence: 1})
			}
		}
		put("root", "", 0)
		put("here", "root", 0)
		put("there", "root", 0)
		put("moved", "here", 0)
		for i := range 10 {
			put(fmt.Sprint("team", i), "moved", 1000)
		}
		put("all", "root", 0)
		for i := range 100 {
			put(fmt.Sprint("part", i), "all", 1000)
		}
		for i := range 20 {
			for j, node := range []string{"here", "there"} {
				c.PutRule(&Rule{ID: fmt.Sprint(node, i), UnitID: "unit of " + node, ApplicationID: "9", Type: Data,
					ResourceID: "3" + number(i+10*j), Actions: []string{"read"}, Sequence: 1})
			}
		}
	})
	q := ImpactQuestion{Types: []string{User, Application}, Limit: 100, Now: 1000}
	b.Run("move of 10,000 people", func(b *testing.B) {
		measure(b, t.State(), q, 200_000, func(h *Hypothesis) { require.NoError(b, h.Move("moved", "there")) })
	})
	b.Run("grant to 100,000 people", func(b *testing.B) {
		measure(b, t.State(), q, 100_000, func(h *Hypothesis) {
			h.Grant(Identity{Node, "all"}, "", Rule{ApplicationID: "9", Type: Data, ResourceID: "3" + number(1),
				Actions: []string{"read"}})
		})
	})
}

func measure(b *testing.B, s *State, q ImpactQuestion, changes int, suppose func(*Hypothesis)) {
	b.ReportAllocs()
	for b.Loop() {
		h := s.Suppose()
		suppose(h)
		found, err := h.Impact(b.Context(), q)
		require.NoError(b, err)
		require.True(b, found.Complete)
		require.Equal(b, changes, found.Gained+found.Lost)
	}
}
