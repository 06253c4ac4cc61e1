package ended

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

func TestMain(m *testing.M) { basic.Main(m) }

// A key that ended before a snapshot has no event after it, so the snapshot itself reports the key.
func TestSnapshotReportsEndedKeys(t *testing.T) {
	t.Parallel()
	clk := basic.NewClock()
	store := basic.Store(t, clk, Collections()...)
	v, err := auth.New(auth.Config{Clock: clk, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	calls := 0
	follower := Follower(v, store, func(context.Context) error { calls++; return nil })
	ctx := request.System(t.Context(), "acme")
	require.NoError(t, docstore.Do(ctx, store, func(tx *docstore.Tx) error {
		return Token(ctx, tx, "token-1", tx.Now.Add(time.Hour))
	}))
	require.NoError(t, follower.Snapshot(ctx))
	require.Zero(t, calls, "a token ended, but no key")
	require.NoError(t, docstore.Do(ctx, store, func(tx *docstore.Tx) error { return Key(ctx, tx, "key-1") }))
	require.NoError(t, follower.Snapshot(ctx))
	require.Equal(t, 1, calls)
}
