package wait_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// stopped is a test that remembers that it was ended.
type stopped struct {
	testing.TB
	failed bool
}

func (s *stopped) Helper()               {}
func (s *stopped) Errorf(string, ...any) { s.failed = true }
func (s *stopped) FailNow()              { panic(s) }

func TestWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		wait.Until(t, func() bool { return time.Since(begin) > time.Minute })
		ch := make(chan int)
		go func() { time.Sleep(time.Minute); ch <- 7 }()
		require.Equal(t, 7, wait.Receive(t, ch))

		for _, endless := range []func(testing.TB){
			func(t testing.TB) { wait.Until(t, func() bool { return false }) },
			func(t testing.TB) { wait.Receive(t, ch) },
		} {
			s := &stopped{TB: t}
			require.PanicsWithValue(t, s, func() { endless(s) })
			require.True(t, s.failed)
		}
	})
}
