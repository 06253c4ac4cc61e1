package testkit

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ProcessorTime is the processor time that this process has used so far. On a busy machine a benchmark learns more from
// it than from the time that has passed.
func ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
