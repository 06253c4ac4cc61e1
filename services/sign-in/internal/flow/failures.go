package flow

import (
	"context"
	"net/netip"
	"time"

	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// failures counts wrong passwords for their address and their tenant, by the minute, in the memory of a replica. The
// users service counts them for each user, in its store.
type failures struct {
	now   func() clock.Time
	since *cache.Cache[string, minute]
}

// minute is a count that begins at a time.
type minute struct {
	begun clock.Time
	n     int
}

// maxCounts bounds the memory. The least used are forgotten first.
const maxCounts = 100_000

func newFailures(now func() clock.Time) *failures {
	return &failures{now, cache.New[string, minute](maxCounts)}
}

// keysOf are what a visitor's failures count for. An IPv6 network counts as one address, because one machine has many.
// Loopback addresses count for the tenant alone: they are a proxy on the same machine, or its owner.
func keysOf(ctx context.Context, v Visitor) (tenant, address string) {
	tenant = request.Tenant(ctx)
	addr, err := netip.ParseAddr(v.Address)
	if err != nil || addr.IsLoopback() {
		return tenant, ""
	}
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return tenant, tenant + " " + network.String()
		}
	}
	return tenant, tenant + " " + addr.String()
}

// full reports whether there were as many failures as the settings bear.
func (f *failures) full(ctx context.Context, v Visitor, limits *settings.Settings) bool {
	tenant, address := keysOf(ctx, v)
	return f.number(tenant) >= limits.FailuresOfTenant || address != "" && f.number(address) >= limits.FailuresPerMin
}

func (f *failures) number(key string) int {
	m, ok := f.since.Get(key)
	if !ok || f.now().Sub(m.begun) >= time.Minute {
		return 0
	}
	return m.n
}

// count counts a failure. It reports whether there were as many before: then nobody learns that it was one, because
// attempts that run at the same time have all found room.
func (f *failures) count(ctx context.Context, v Visitor, limits *settings.Settings) (over bool) {
	tenant, address := keysOf(ctx, v)
	now := f.now()
	for _, key := range []string{tenant, address} {
		if key == "" {
			continue
		}
		f.since.Change(key, func(old minute, found bool) minute {
			if !found || now.Sub(old.begun) >= time.Minute {
				old = minute{begun: now}
			}
			old.n++
			return old
		})
	}
	return f.number(tenant) > limits.FailuresOfTenant || address != "" && f.number(address) > limits.FailuresPerMin
}

// Full reports whether there were as many failures as the tenant bears, so that nothing more is tried.
func (e *Engine) Full(ctx context.Context, v Visitor) (bool, error) {
	limits, err := e.Settings.Of(ctx)
	return err == nil && e.failures.full(ctx, v, limits), err
}

// Failed counts a wrong guess. It reports whether there were as many before as the tenant bears: the answer is then
// that of Full, and not that the guess was wrong.
func (e *Engine) Failed(ctx context.Context, v Visitor) (over bool, err error) {
	limits, err := e.Settings.Of(ctx)
	return err == nil && e.failures.count(ctx, v, limits), err
}
