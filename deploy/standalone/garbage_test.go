package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func TestPercentFor(t *testing.T) {
	t.Parallel()
	for inUse, want := range map[uint64]int{
		0: mostPercent, 32 << 20: mostPercent, 48 << 20: 290, 96 << 20: 90, 121 << 20: 60, 192 << 20: 60, 1 << 40: 60,
	} {
		require.Equal(t, want, percentFor(inUse, time.Second), "%d bytes", inUse)
		require.Equal(t, garbagePercent, percentFor(inUse, time.Minute), "%d bytes", inUse)
	}
}

// It is not parallel, because the percentage is that of the whole process.
func TestCollectorAdapts(t *testing.T) {
	now := func() uint64 {
		percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(percent)
		return percent[0].Value.Uint64()
	}
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	startCollector()
	require.EqualValues(t, garbagePercent, now())
	adaptCollector()
	wait.Until(t, func() bool { runtime.GC(); return now() > garbagePercent })
}
