// Package wait waits in tests for what happens at some time. It imports nothing of the platform, so every package's
// tests can use it.
package wait

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Long is how long tests wait for what takes milliseconds on an idle machine. Only a test that fails waits so long.
const Long = 2 * time.Minute

const (
	firstPause = time.Millisecond
	lastPause  = 32 * time.Millisecond
)

// Until waits until a condition holds. It is asked in the test's goroutine, so it may end the test.
func Until(t testing.TB, holds func() bool, messageAndArgs ...any) {
	t.Helper()
	deadline := time.Now().Add(Long)
	for pause := firstPause; !holds(); pause = min(2*pause, lastPause) {
		if time.Now().After(deadline) {
			require.FailNow(t, "the condition does not hold after "+Long.String(), messageAndArgs...)
		}
		time.Sleep(pause)
	}
}

// Reach waits until a count is n or more. It waits as long as the count grows: much work takes long on a busy machine.
func Reach(t testing.TB, n int, count func() int, messageAndArgs ...any) {
	t.Helper()
	for had := count(); had < n; {
		now := had
		Until(t, func() bool { now = count(); return now > had }, messageAndArgs...)
		had = now
	}
}

// Receive waits for a value from a channel, or for its end.
func Receive[T any](t testing.TB, ch <-chan T, messageAndArgs ...any) T {
	t.Helper()
	late := time.NewTimer(Long)
	defer late.Stop()
	select {
	case v := <-ch:
		return v
	case <-late.C:
		require.FailNow(t, "nothing came in "+Long.String(), messageAndArgs...)
		panic("unreachable")
	}
}
