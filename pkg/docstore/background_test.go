package docstore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
)

// engineOfNothing runs transactions without a database.
type engineOfNothing struct{ Engine }

func (engineOfNothing) Write(_ context.Context, fn func(EngineTx) error) error { return fn(nil) }

func TestBackground(t *testing.T) {
	t.Parallel()
	store := &Store{engine: engineOfNothing{}, clock: clock.System}
	engineIn := func(ctx context.Context) (engine EngineTx) {
		require.NoError(t, Do(ctx, store, func(tx *Tx) error { engine = tx.engine; return nil }))
		return engine
	}
	ofRequest := request.With(t.Context(), request.Info{Tenant: "acme", Actor: "u1"})
	require.Nil(t, engineIn(ofRequest), "nothing slows down the transaction of a request")
	require.IsType(t, &background{}, engineIn(request.System(ofRequest, "acme")))
}
