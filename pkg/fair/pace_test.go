package fair_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/fair"
)

func TestPaceRestsTwiceAsLongAsItWorked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, pace := time.Now(), fair.Pace{}
		pace.Worked(t.Context(), 400*time.Microsecond)
		require.Zero(t, time.Since(began), "it rests after little work")
		pace.Worked(t.Context(), 300*time.Microsecond)
		require.Equal(t, 1400*time.Microsecond, time.Since(began))
		pace.Worked(t.Context(), 400*time.Microsecond)
		require.Equal(t, 1400*time.Microsecond, time.Since(began), "it rests twice for the same work")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		pace.Worked(ctx, time.Hour)
		require.Equal(t, 1400*time.Microsecond, time.Since(began), "it rests after its context has ended")
	})
}
