// Package memory keeps a program within the memory of its container.
package memory

import (
	"errors"
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Limit lets garbage be collected more often as the process comes near the memory limit of its container (cgroup v1 or
// v2), so that it is not killed. Native are the bytes that the process may use outside of the Go heap. The Go heap gets
// nine tenths of the rest, and at least a third of the limit: with less, the process would do little but collect.
//
// Without a container, or with GOMEMLIMIT, nothing changes.
func Limit(native int64, log *slog.Logger) { limit(memlimit.FromCgroup, native, log) }

func limit(container memlimit.Provider, native int64, log *slog.Logger) {
	_, err := memlimit.Set(memlimit.WithRatio(1), memlimit.WithProvider(func() (uint64, error) {
		limit, err := container()
		return max(limit/3, (limit-min(limit, uint64(native)))/10*9), err
	}))
	none := errors.Is(err, memlimit.ErrNoCgroup) || errors.Is(err, memlimit.ErrCgroupsNotSupported)
	if err != nil && !none {
		log.Warn("the memory limit of the container is not known", "error", err)
	}
}
