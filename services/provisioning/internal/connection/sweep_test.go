package connection

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// A change while a sweep runs begins another one, which works on all users: the first one does not say how far it has
// come in its place.
func TestASweepBeginsAgainAfterAnotherChange(t *testing.T) {
	t.Parallel()
	clock := basic.NewClock()
	s := New(Deps{Store: basic.Store(t, clock, Collections()...)})
	ctx := request.System(t.Context(), "acme")
	c := &Connection{Meta: docstore.Meta{ID: "7"}}
	change := func() error {
		return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error { return startSweep(ctx, tx, c, false) })
	}
	require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		_, err := connections.Insert(ctx, tx, &Connection{Meta: docstore.Meta{ID: "7"}})
		return err
	}))
	require.NoError(t, change())
	sweep := func(users func(after string) (string, error)) error {
		return s.Sweep(ctx, "7", func(_ context.Context, _ *Connection, after string) (string, error) {
			return users(after)
		}, nil)
	}
	require.Equal(t, apperr.VersionMismatch, apperr.KindOf(sweep(func(string) (string, error) {
		clock.Advance(time.Second)
		return "20", change()
	})))
	var began []string
	require.NoError(t, sweep(func(after string) (string, error) {
		if began = append(began, after); after == "" {
			return "20", nil
		}
		return "", nil
	}))
	require.Equal(t, []string{"", "20"}, began)
	require.True(t, apperr.IsNotFound(sweep(nil)), "it has ended")
}

// A request that was under way when its connection was deleted can make another link: a second sweep frees it, and does
// not touch the tree again.
func TestADeletionIsSweptTwice(t *testing.T) {
	t.Parallel()
	clock := basic.NewClock()
	s := New(Deps{Store: basic.Store(t, clock, Collections()...)})
	ctx := request.System(t.Context(), "acme")
	begin := func() {
		require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
			return startSweep(ctx, tx, &Connection{Meta: docstore.Meta{ID: "7"}}, true)
		}))
	}
	swept := 0
	sweepDue := func() {
		due, err := DueSweeps(t.Context(), s.Store, 10)
		require.NoError(t, err)
		for _, ref := range due {
			users := func(_ context.Context, _ *Connection, after string) (string, error) {
				require.Empty(t, after)
				swept++
				return "", nil
			}
			require.NoError(t, s.Sweep(ctx, ref.ID, users, func(context.Context, string) error { return nil }))
		}
	}
	begin()
	sweepDue()
	sweepDue()
	require.Equal(t, 1, swept)
	clock.Advance(requestsTake)
	sweepDue()
	require.Equal(t, 2, swept)
	clock.Advance(requestsTake)
	sweepDue()
	require.Equal(t, 2, swept)

	require.NoError(t, FreeLate(ctx, s.Store, "7"), "a change that was left open has made a link")
	sweepDue()
	require.Equal(t, 3, swept)
	require.NoError(t, FreeLate(ctx, s.Store, "7"))
	clock.Advance(requestsTake)
	sweepDue()
	require.Equal(t, 4, swept)
}
