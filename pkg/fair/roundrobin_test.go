package fair_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

type chore struct {
	docstore.Meta
	Next clock.Time `json:"next"`
}

var chores = docstore.Define(docstore.Schema[chore]{
	Name: "chores", Noun: "chore", NoIfMatch: true,
	Indexes: []docstore.Index[chore]{
		docstore.ByNumber("next", func(c *chore) docstore.Value { return docstore.Moment(c.Next) }),
	},
	Due: func(c *chore) clock.Time { return c.Next },
})

// Two tenants have all documents that a list shows, and more. Those of others are listed nevertheless, before the
// second group of any tenant; all tenants have been looked at after a few lists.
func TestRoundRobin(t *testing.T) {
	t.Parallel()
	clk := basic.NewClock()
	store := basic.Store(t, clk, chores.Def())
	add := func(tenant string, n int, next clock.Time) {
		ctx := request.System(t.Context(), tenant)
		require.NoError(t, docstore.Do(ctx, store, func(tx *docstore.Tx) error {
			for i := range n {
				c := &chore{Meta: docstore.Meta{ID: fmt.Sprintf("%s%03d", tenant, i)}, Next: next}
				if _, err := chores.Insert(ctx, tx, c); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	now := clk.Now()
	add("big", 50, now)
	add("large", 50, now)
	clk.Advance(time.Millisecond)
	for i := range 6 {
		add(fmt.Sprint("small", i), 3, clk.Now())
	}
	add("later", 3, clk.Now().Add(time.Millisecond))

	const lists = 6
	turns := fair.RoundRobin[chore]{Of: chores, By: "next", Group: 2, Others: 2}
	seen := map[string]bool{}
	for range lists {
		groups, err := turns.List(t.Context(), store, 60)
		require.NoError(t, err)
		listed, inFirstTurn := map[string]int{}, 0 // groups by tenant
		for i, group := range groups {
			tenant := group[0].Tenant
			if i < 2 {
				require.Contains(t, []string{"big", "large"}, tenant, "they have been due for longest")
			}
			for _, ref := range group {
				require.Equal(t, tenant, ref.Tenant)
			}
			require.LessOrEqual(t, len(group), 2)
			seen[tenant] = true
			listed[tenant]++
			if listed[tenant] > 1 && inFirstTurn == 0 {
				inFirstTurn = i
			}
		}
		require.Len(t, listed, inFirstTurn, "a tenant has its second turn after the first of all others")
	}
	require.Len(t, seen, 8)
	require.False(t, seen["later"])
}

// Tenants that have runs in progress come after those that have none, however much of theirs is fair.
func TestRoundRobinOfTenantsInFlight(t *testing.T) {
	t.Parallel()
	clk := basic.NewClock()
	store := basic.Store(t, clk, chores.Def())
	for _, tenant := range []string{"big", "large", "small"} {
		ctx := request.System(t.Context(), tenant)
		require.NoError(t, docstore.Do(ctx, store, func(tx *docstore.Tx) error {
			for i := range 4 {
				c := &chore{Meta: docstore.Meta{ID: fmt.Sprint(tenant, i)}, Next: clk.Now()}
				if _, err := chores.Insert(ctx, tx, c); err != nil {
					return err
				}
			}
			return nil
		}))
		clk.Advance(time.Millisecond)
	}
	calls := fair.NewInFlight(fair.Limits{Most: 5, OfTenant: 3}, fair.Limits{Most: 5, OfTenant: 3})
	for _, ref := range []docstore.Ref{
		{Tenant: "big", ID: "a"}, {Tenant: "big", ID: "b"}, {Tenant: "big", ID: "c"}, {Tenant: "large", ID: "a"},
	} {
		require.True(t, calls.Add(ref, func() {}))
	}
	turns := fair.RoundRobin[chore]{Of: chores, By: "next", Group: 2, Others: 2, InFlight: calls}
	groups, err := turns.List(t.Context(), store, 100)
	require.NoError(t, err)
	var order []string
	for _, group := range groups {
		order = append(order, group[0].Tenant)
	}
	require.Equal(t, []string{"large", "small", "big", "large", "small", "big"}, order)
}

func TestInFlight(t *testing.T) {
	t.Parallel()
	calls := fair.NewInFlight(fair.Limits{Most: 3, OfTenant: 2}, fair.Limits{Most: 5, OfTenant: 3})
	ref := func(tenant, id string) docstore.Ref { return docstore.Ref{Tenant: tenant, ID: id} }
	contexts := map[docstore.Ref]context.Context{}
	add := func(r docstore.Ref) bool {
		ctx, cancel := context.WithCancel(t.Context())
		if !calls.Add(r, cancel) {
			cancel()
			return false
		}
		contexts[r] = ctx
		return true
	}
	require.True(t, add(ref("a", "1")))
	require.False(t, add(ref("a", "1")), "it is there already")
	require.True(t, add(ref("a", "2")))
	require.False(t, add(ref("a", "3")), "the tenant has two")
	require.True(t, add(ref("b", "1")))
	require.False(t, add(ref("c", "1")), "there are three")
	require.Equal(t, 3, calls.Count())
	require.True(t, calls.Full())

	calls.BreakOff(ref("c", "1")) // none of this replica
	calls.BreakOff(ref("a", "1"))
	require.Error(t, contexts[ref("a", "1")].Err())
	require.NoError(t, contexts[ref("a", "2")].Err())
	require.Equal(t, 3, calls.Count(), "a call that is broken off has not ended yet")
	calls.End(ref("a", "1"))
	calls.End(ref("a", "2"))
	require.False(t, calls.Full())
	<-calls.Ended
	require.Error(t, contexts[ref("a", "2")].Err(), "its context is released")
	require.True(t, add(ref("a", "3")))
	calls.Remove(ref("a", "3"))
	require.Empty(t, calls.Ended)
	require.Equal(t, 1, calls.Count())
}

// A run that only waits keeps no other from beginning, until its tenant has too many of them.
func TestWaitingInFlight(t *testing.T) {
	t.Parallel()
	calls := fair.NewInFlight(fair.Limits{Most: 3, OfTenant: 2}, fair.Limits{Most: 5, OfTenant: 3})
	n := 0
	add := func(tenant string) bool {
		n++
		return calls.Add(docstore.Ref{Tenant: tenant, ID: fmt.Sprint(n)}, func() {})
	}
	require.True(t, add("a"))
	require.True(t, add("a"))
	require.False(t, add("a"))
	calls.Wait(docstore.Ref{Tenant: "a", ID: "1"})
	calls.Wait(docstore.Ref{Tenant: "a", ID: "1"})
	<-calls.Ended
	require.True(t, add("a"))
	calls.Wait(docstore.Ref{Tenant: "a", ID: "2"})
	require.False(t, add("a"), "the tenant has three")
	require.True(t, add("b"))
	require.True(t, add("b"))
	require.False(t, add("c"), "there are three with a slot, and five in all")
	calls.End(docstore.Ref{Tenant: "a", ID: "1"})
	require.False(t, add("c"), "its slot was free before")
	calls.Wait(docstore.Ref{Tenant: "a", ID: "4"})
	require.True(t, add("c"))
	require.Equal(t, 5, calls.Count())
}
