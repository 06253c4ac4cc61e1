package flow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// In a tenant with too many failures each network waits for its own failures, and for nobody else's.
func TestTurns(t *testing.T) {
	t.Parallel()
	clock := basic.NewClock()
	f := newFailures(clock.Now)
	limits := &settings.Settings{Profile: settings.Profile{FailuresPerMin: 3, FailuresOfTenant: 10}}
	ctx := request.System(t.Context(), "acme")
	from := func(address string) counted { return keysOf(ctx, Password, Visitor{Address: address}) }
	for i := range 10 {
		require.False(t, f.slow(from("192.0.2.1"), limits))
		f.count(from([]string{"2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:2::1", "198.51.100.1"}[i%4]), limits)
	}
	require.True(t, f.slow(from("192.0.2.1"), limits))
	require.False(t, f.slow(keysOf(ctx, DeviceCode, Visitor{}), limits), "they count apart")
	require.False(t, f.slow(keysOf(request.System(t.Context(), "globex"), Password, Visitor{}), limits))

	wait := func(address string) time.Duration {
		d, ok := f.turn(from(address))
		require.True(t, ok)
		return d
	}
	require.Equal(t, time.Second, wait("192.0.2.1"))
	require.Equal(t, 2*time.Second, wait("192.0.2.1"), "one after the other")
	require.Equal(t, time.Second, wait("192.0.2.2"))
	require.Equal(t, time.Second, wait("2001:db8:1::1"))
	require.Equal(t, 8*time.Second, wait("2001:db8:0:9::1"), "others of its 48 bits have failed")
	_, ok := f.turn(from("2001:db8:0:10::1"))
	require.False(t, ok)
	require.Equal(t, time.Second, wait("2001:db8:2::1"))
	for range 3 {
		require.Equal(t, time.Second, wait("127.0.0.1"), "behind a proxy nobody is told apart")
	}
	clock.Advance(time.Minute)
	require.False(t, f.slow(from("192.0.2.1"), limits))
	require.Equal(t, time.Second, wait("2001:db8:0:9::1"))
}
