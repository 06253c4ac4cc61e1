package organization_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/organization/internal/member"
)

// grove is a naive model of the tree "company" and its memberships, which random changes keep.
type grove struct {
	*guided
	r       *rand.Rand
	nodes   []string
	parent  map[string]string
	members map[string]map[string]string // node → user → membership
	users   int
}

// plantGrove makes a tree of n nodes with one dynamic node.
func plantGrove(t *testing.T, r *rand.Rand, n, users int) *grove {
	t.Helper()
	f := &grove{guided: guide(t, users), r: r, parent: map[string]string{}, members: map[string]map[string]string{},
		users: users}
	addObject(t, f.Client, "company")
	dynamic := addNode(t, f.Client, "company", "", "dynamic", object{"is_dynamic": "1",
		"condition": "user.id.endsWith('7')"})
	f.upkeep()
	f.nodes = []string{dynamic["parent_id"].(string)}
	for range n {
		parent := f.nodes[r.IntN(len(f.nodes))]
		node := id(addNode(t, f.Client, "company", parent, "node"))
		f.nodes, f.parent[node] = append(f.nodes, node), parent
	}
	f.parent[id(dynamic)] = f.nodes[0]
	f.members[id(dynamic)] = map[string]string{}
	for user := 7; user <= users; user += 10 {
		f.members[id(dynamic)][fmt.Sprint(user)] = ""
	}
	return f
}

// below reports whether a node is another one, or below it.
func (f *grove) below(node, top string) bool {
	for ; node != ""; node = f.parent[node] {
		if node == top {
			return true
		}
	}
	return false
}

// change makes a random change: a membership begins, ends or becomes the primary one, or a node moves.
func (f *grove) change(t *testing.T) {
	t.Helper()
	node, user := f.nodes[f.r.IntN(len(f.nodes))], fmt.Sprint(1+f.r.IntN(f.users))
	there, is := f.members[node][user]
	switch to := f.nodes[f.r.IntN(len(f.nodes))]; {
	case f.r.IntN(10) == 0 && node != f.nodes[0] && !f.below(to, node):
		f.Patch(nodesPath+"/"+node, object{"parent_id": to}).OK(nil)
		f.parent[node] = to
	case !is:
		if f.members[node] == nil {
			f.members[node] = map[string]string{}
		}
		f.members[node][user] = f.Post(membersPath, object{"node_id": node, "user_id": user}).ID()
	case f.r.IntN(2) == 0:
		f.Delete(membersPath+"/"+there, nil).OK(nil)
		delete(f.members[node], user)
	default:
		f.Patch(membersPath+"/"+there, object{"is_primary": "1"}).OK(nil)
	}
}

// TestTotalsOfUsers: the total of the users of a node and all below is the number of different users, after any
// changes, whether few or most of them have several memberships.
func TestTotalsOfUsers(t *testing.T) {
	t.Parallel()
	for name, users := range map[string]int{"one membership for most": 400, "several for most": 15} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := plantGrove(t, rand.New(rand.NewPCG(31, uint64(users))), 40, users)
			for range 12 {
				for range 20 {
					f.change(t)
				}
				for _, top := range f.nodes {
					want := map[string]bool{}
					for node, users := range f.members {
						if f.below(node, top) {
							for user := range users {
								want[user] = true
							}
						}
					}
					path := nodesPath + "/" + top + "/users?recursive=true&page_size=200"
					require.EqualValues(t, len(want), f.Get(path).Object()["total"], path)
					got := []string{}
					for _, user := range f.Items(path, "user_id") {
						got = append(got, user.(string))
					}
					if len(want) <= 200 {
						require.ElementsMatch(t, slices.Collect(maps.Keys(want)), got)
					}
				}
			}
		})
	}
}

// TestTotalOfManyUsers: a total is exact up to member.MaxCounted users, whatever the number of their memberships.
func TestTotalOfManyUsers(t *testing.T) {
	t.Parallel()
	_, c, p := withPeople(t, 0)
	for i := range member.MaxCounted + 1 {
		p.put(fmt.Sprint(i), object{})
	}
	addObject(t, c, "company")
	top := addNode(t, c, "company", "", "top")
	team, other := addNode(t, c, "company", id(top), "team"), addNode(t, c, "company", id(top), "other")
	addMany(t, c, membersBatch, member.MaxCounted, func(i int) object {
		return object{"node_id": id(team), "user_id": fmt.Sprint(i)}
	})
	addMany(t, c, membersBatch, 200, func(i int) object { // few, and then many users have two memberships
		return object{"node_id": id(other), "user_id": fmt.Sprint(i)}
	})
	total := func(relation any) {
		t.Helper()
		page := c.Get(node(top, "users?recursive=true")).Object()
		require.EqualValues(t, member.MaxCounted, page["total"])
		require.Equal(t, relation, page["total_relation"])
	}
	total(nil)
	addMany(t, c, membersBatch, 4000, func(i int) object {
		return object{"node_id": id(other), "user_id": fmt.Sprint(200 + i)}
	})
	total(nil)
	require.Equal(t, http.StatusOK, c.Post(membersPath, object{"node_id": id(other),
		"user_id": fmt.Sprint(member.MaxCounted)}).Status)
	total("gte")
}
