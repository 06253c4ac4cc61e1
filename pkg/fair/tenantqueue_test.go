package fair_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

type job struct{ docstore.Meta }

// office is a store with jobs. A turn does one job.
type office struct {
	*testing.T
	store *docstore.Store
	clock *basic.Clock
	rota  *fair.TenantQueue
	jobs  *docstore.Collection[job]
	done  []string // tenants, in the order of their turns
	fails map[string]bool
}

func open(t *testing.T) *office {
	o := &office{T: t, clock: basic.NewClock(), rota: fair.NewTenantQueue("turns"), fails: map[string]bool{},
		jobs: docstore.Define(docstore.Schema[job]{Name: "jobs", Noun: "job"})}
	o.store = basic.Store(t, o.clock, o.rota.Def(), o.jobs.Def())
	return o
}

func (o *office) add(tenant string, n int) {
	o.Helper()
	ctx := request.System(o.Context(), tenant)
	ids, err := o.store.NewIDs(ctx, n)
	require.NoError(o, err)
	err = docstore.Do(ctx, o.store, func(tx *docstore.Tx) error {
		for _, id := range ids {
			if _, err := o.jobs.Insert(ctx, tx, &job{docstore.Meta{ID: id}}); err != nil {
				return err
			}
		}
		return o.rota.Ask(ctx, tx)
	})
	require.NoError(o, err)
}

func (o *office) work() fair.Work {
	return fair.Work{
		Do: func(ctx context.Context) error {
			o.done = append(o.done, request.Tenant(ctx))
			o.clock.Advance(time.Millisecond)
			if o.fails[request.Tenant(ctx)] {
				return errors.New("no")
			}
			return docstore.Do(ctx, o.store, func(tx *docstore.Tx) error {
				first, err := o.jobs.LoadWhere(ctx, tx, docstore.Filter{}, "", 1)
				if err != nil || len(first) == 0 {
					return err
				}
				_, err = o.jobs.Delete(ctx, tx, first[0])
				return err
			})
		},
		Left: func(ctx context.Context, tx *docstore.Tx) (bool, error) {
			first, err := o.jobs.LoadWhere(ctx, tx, docstore.Filter{}, "", 1)
			return len(first) > 0, err
		},
	}
}

func (o *office) run() (left int, err error) {
	return o.rota.Run(o.Context(), o.store, o.work())
}

func (o *office) count() int64 {
	o.Helper()
	n := int64(0)
	for i := range 100 {
		held, err := o.rota.Turns().Count(request.System(o.Context(), fmt.Sprint("t", i)), o.store, docstore.Filter{})
		require.NoError(o, err)
		n += held
	}
	return n
}

// A tenant with a hundred jobs does not delay a tenant that has a single job and asks later.
func TestTenantQueueGivesTurns(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.add("t0", 100)
	o.add("t1", 3)
	for range 2 {
		left, err := o.run()
		require.NoError(t, err)
		require.Equal(t, 2, left)
	}
	o.add("t2", 1)
	_, err := o.run()
	require.NoError(t, err)
	require.Equal(t, []string{"t0", "t1", "t0", "t1"}, o.done[:4])
	require.ElementsMatch(t, []string{"t0", "t1", "t2"}, o.done[4:])
	for left := 1; left > 0; {
		left, err = o.run()
		require.NoError(t, err)
	}
	require.Len(t, o.done, 104)

	require.EqualValues(t, 3, o.count(), "idle tenants are checked once more")
	o.clock.Advance(fair.LookAgain)
	_, err = o.run()
	require.NoError(t, err)
	require.Zero(t, o.count())
	o.add("t1", 1) // an idle tenant can start again
	_, err = o.run()
	require.NoError(t, err)
	require.Equal(t, "t1", o.done[len(o.done)-1])
}

// There are more tenants than one call serves, and each always has more to do: all get the same number of turns.
func TestTenantQueueOfManyTenants(t *testing.T) {
	t.Parallel()
	o := open(t)
	const many = 100
	for i := range many {
		o.add(fmt.Sprint("t", i), 5)
		o.clock.Advance(time.Millisecond)
	}
	for len(o.done) < 3*many {
		_, err := o.run()
		require.NoError(t, err)
	}
	turns := map[string]int{}
	for _, tenant := range o.done[:3*many] {
		turns[tenant]++
	}
	for tenant, n := range turns {
		require.InDelta(t, 3, n, 1, tenant)
	}
}

// An idle tenant that asks for work gets its turn at once. The failure of one tenant does not affect others.
func TestTenantQueueOfIdleAndFailing(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.add("t0", 1)
	left, err := o.run()
	require.NoError(t, err)
	require.Zero(t, left)
	o.add("t0", 1)
	_, err = o.run()
	require.NoError(t, err)
	require.Equal(t, []string{"t0", "t0"}, o.done)

	o.fails["t0"] = true
	o.add("t0", 1)
	o.add("t1", 1)
	_, err = o.run()
	require.ErrorContains(t, err, "tenant t0: no")
	require.Len(t, o.done, 4)
	delete(o.fails, "t0")
	_, err = o.run()
	require.NoError(t, err)
	require.Len(t, o.done, 4, "a failed turn is not repeated at once")
	o.clock.Advance(fair.RetryAfter)
	_, err = o.run()
	require.NoError(t, err)
	require.Len(t, o.done, 5)
}
