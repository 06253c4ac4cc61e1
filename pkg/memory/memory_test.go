package memory

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLimit(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	fails := func(err error) memlimit.Provider { return func() (uint64, error) { return 0, err } }
	const MiB, unlimited = 1 << 20, math.MaxInt64
	for _, test := range []struct {
		name      string
		container memlimit.Provider
		native    int64
		limit     int64
		warns     bool
	}{
		{"nothing native", memlimit.Limit(1000 * MiB), 0, 900 * MiB, false},
		{"some native", memlimit.Limit(1000 * MiB), 200 * MiB, 720 * MiB, false},
		{"nearly all native", memlimit.Limit(300 * MiB), 290 * MiB, 100 * MiB, false},
		{"more native than there is", memlimit.Limit(300 * MiB), 1000 * MiB, 100 * MiB, false},
		{"no limit", fails(memlimit.ErrNoLimit), 0, unlimited, false},
		{"no container", fails(memlimit.ErrNoCgroup), 0, unlimited, false},
		{"another system", fails(memlimit.ErrCgroupsNotSupported), 0, unlimited, false},
		{"not readable", fails(errors.New("permission denied")), 0, unlimited, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			debug.SetMemoryLimit(unlimited)
			var logs strings.Builder
			limit(test.container, test.native, slog.New(slog.NewTextHandler(&logs, nil)))
			assert.InDelta(t, test.limit, debug.SetMemoryLimit(-1), 10)
			assert.Equal(t, test.warns, strings.Contains(logs.String(), "permission denied"), logs.String())
		})
	}
}

func TestGOMEMLIMITIsObeyed(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "1GiB")
	before := debug.SetMemoryLimit(-1)
	limit(memlimit.Limit(1<<30), 0, slog.New(slog.DiscardHandler))
	assert.Equal(t, before, debug.SetMemoryLimit(-1))
}
