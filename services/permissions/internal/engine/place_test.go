package engine

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

// TestPlaces changes nodes and memberships in random order, children before their parents too, and compares what is
// above each user with a naive model. Places of nodes that nothing refers to any more are used again.
func TestPlaces(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	const ids = 12
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		tenant := NewTenant()
		parents, belongs := map[string]string{}, map[string]string{} // of nodes; of users, by membership
		for sequence := range int64(300) {
			id, other := strconv.Itoa(random.IntN(ids)), strconv.Itoa(random.IntN(ids))
			before, was := tenant.State(), answers(tenant.State(), ids)
			tenant.Change(func(c *Change) {
				switch random.IntN(4) {
				case 0:
					if other >= id {
						other = ""
					}
					parents[id] = other
					c.PutNode(&TreeNode{ID: id, ParentID: other, ObjectCode: "tree", Sequence: sequence + 1})
				case 1:
					delete(parents, id)
					c.DropNode(id)
				case 2:
					c.PutPerson(&Person{ID: id, Username: id, Sequence: 1})
					if old, ok := belongs[id]; ok {
						c.DropMembership(id, old)
					}
					belongs[id] = other
					c.PutMembership(&Membership{ID: id, NodeID: other, UserID: id, Sequence: sequence + 1})
				default:
					c.DropMembership(id, belongs[id])
					delete(belongs, id)
				}
			})
			state := tenant.State()
			for user, node := range belongs {
				var above []string
				for parent, known := parents[node]; known; parent, known = parents[node] {
					above = append(above, node)
					node = parent
				}
				require.Equal(t, above, nodesAbove(state, user), "seed %d, change %d, user %s", seed, sequence, user)
			}
			require.Equal(t, was, answers(before, ids), "a state that is read has changed")
			require.LessOrEqual(t, state.places.at.Len(), int32(2*ids))
		}
		tenant.Change(func(c *Change) { c.SweepPeople(func(string, string) bool { return false }) })
		require.Zero(t, tenant.State().places.numbers.Len())
	}
}

// nodesAbove are the nodes that a user belongs to, from the nearest on.
func nodesAbove(s *State, user string) (ids []string) {
	r := &reach{}
	s.reach(r, Identity{User, user})
	for i := range r.steps {
		if who := r.steps[i].party().Identity; who.Type == Node {
			ids = append(ids, who.ID)
		}
	}
	return ids
}

func answers(s *State, users int) (all [][]string) {
	for user := range users {
		all = append(all, nodesAbove(s, strconv.Itoa(user)))
	}
	return all
}
