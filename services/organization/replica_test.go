package organization_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/organization"
)

func TestReplicasRaceOfEverything(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 12)
	other := s.Replica(organization.Spec())
	m := newRandomLoad(c, 14)
	m.run(t, 120, c, in(other, "acme"), c, in(other, "acme"), c, in(other, "acme"), c, in(other, "acme"))
	require.Equal(t, verify(t, s), verify(t, other))
}

// Two replicas do upkeep for the same nodes and read the same stream: everything is done once.
func TestReplicasDoWorkOnce(t *testing.T) {
	t.Parallel()
	const users = 1100
	g := guide(t, users)
	mine := g.tasks["keep memberships"]
	g.Service.Replica(g.spec()) // g.tasks are the replica's from here on
	theirs := g.tasks["keep memberships"]
	addObject(t, g.Client, "company")
	n := g.dynamic("all", "user.id != '1'")
	both := func() {
		var all sync.WaitGroup
		for _, work := range []func(context.Context) (int, error){mine, theirs, mine, theirs} {
			all.Go(func() {
				for range 12 { // more rounds than there is work for
					if _, err := work(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	both()
	require.Len(t, g.usersOf(n, ""), users-1)
	require.Len(t, g.ofType("membership.created "), users-1)
	verify(t, g.Service)

	for i := range 10 {
		g.expel(fmt.Sprint(2 + i))
	}
	require.Len(t, g.ofType("membership.deleted "), 10)

	g.Delete(node(n)+"?object_code=company", nil).OK(nil)
	both()
	require.Len(t, g.ofType("membership.deleted "), 10+2, "a batch of 1000 and the rest")
	verify(t, g.Service)
}

// ofType are the published events of a type.
func (g *guided) ofType(beginning string) (told []string) {
	g.t.Helper()
	for _, event := range g.published(-1) {
		if strings.HasPrefix(event, beginning) {
			told = append(told, event)
		}
	}
	return told
}

// If a replica dies in the middle of a node's users, another one continues.
func TestReplicaTakesOver(t *testing.T) {
	t.Parallel()
	g := guide(t, 1100)
	addObject(t, g.Client, "company")
	n, dev := g.dynamic("all", "true"), addNode(t, g.Client, "company", "", "dev")
	work := g.tasks["keep memberships"]
	_, err := work(t.Context()) // one page, and then the replica is dead
	require.NoError(t, err)
	g.join(dev, "1", "2")
	g.Service.Replica(g.spec())
	g.upkeep()
	require.Len(t, g.usersOf(n, ""), 1100)
	require.Len(t, g.ofType("membership.created "), 1100+2)

	verify(t, g.Service)
}
