package fair_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/fair"
)

// work reports work and returns how long it rests after that.
func work(ctx context.Context, p *fair.Throttle, took time.Duration) time.Duration {
	began := time.Now()
	p.Worked(ctx, took)
	return time.Since(began)
}

// It is not parallel, because requests are noted for the whole process.
func TestThrottleRestsWhereThereAreRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := &fair.Throttle{}
		require.Zero(t, work(t.Context(), pace, time.Second), "it rests though there are no requests")

		fair.Requested(time.Now())
		require.Zero(t, work(t.Context(), pace, 150*time.Microsecond), "it rests after little work")
		require.Equal(t, 2*time.Millisecond, work(t.Context(), pace, 250*time.Microsecond))
		require.Zero(t, work(t.Context(), pace, 150*time.Microsecond), "it rests twice for the same work")

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.Zero(t, work(ended, pace, time.Hour), "it rests after its context has ended")

		require.NotZero(t, work(t.Context(), pace, time.Second), "a request began a moment ago")
		require.Zero(t, work(t.Context(), pace, time.Second), "it rests though requests have ceased")
	})
}

func TestRequestsDoNotRestForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fair.Requested(time.Now())
		pace := &fair.Throttle{Since: time.Now()}
		require.Zero(t, work(t.Context(), pace, time.Millisecond))
		time.Sleep(time.Millisecond)
		fair.Requested(time.Now())
		require.NotZero(t, work(t.Context(), pace, time.Millisecond), "another request has begun since")
	})
}
