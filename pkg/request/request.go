// Package request carries what is known of the request being served, from the edge to the store and the
// events, in one context value.
package request

import "context"

// Info says who asks, for which tenant, and under which names the request is known elsewhere.
type Info struct {
	ID            string // X-Request-Id
	Tenant        string // the tenant whose records are meant; empty only where no credential is needed
	Actor         string // the token's subject; "system" for work that no request asked for
	PayloadOrigin string // X-Payload-Origin, opaque
}

type key struct{}

// With returns a context that carries info.
func With(ctx context.Context, info Info) context.Context {
	return context.WithValue(ctx, key{}, info)
}

// From returns what With put in, or the zero Info.
func From(ctx context.Context) Info {
	info, _ := ctx.Value(key{}).(Info)
	return info
}

// Tenant is From(ctx).Tenant.
func Tenant(ctx context.Context) string { return From(ctx).Tenant }

// System is a context for work of the platform's own on one tenant's records: schedules, cascades.
func System(ctx context.Context, tenant string) context.Context {
	info := From(ctx)
	info.Tenant, info.Actor = tenant, "system"
	return With(ctx, info)
}
