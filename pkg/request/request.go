// Package request carries what is known of the request being served, from the edge to the store and the
// events, in one context value.
package request

import (
	"context"
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
)

// Info says who asks, for which tenant, and under which names the request is known elsewhere.
type Info struct {
	ID            string // X-Request-Id
	Tenant        string // the tenant whose records are meant; empty only where no credential is needed
	Actor         string // the token's subject; "system" for work that no request asked for
	PayloadOrigin string // X-Payload-Origin, opaque
	Operation     string // the operation's id, for logs
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

// Platform is the tenant of what belongs to no tenant. It is no valid tenant id, so no credential can have it.
const Platform = "*platform"

// System is a context for work of the platform's own on one tenant's records: schedules, cascades.
func System(ctx context.Context, tenant string) context.Context {
	info := From(ctx)
	info.Tenant, info.Actor = tenant, "system"
	return With(ctx, info)
}

// CallerHeader is the answer's header by which a service tells the gateway whose request it was, so that the gateway
// gives each caller a fair share. The gateway takes it out of the answer.
const CallerHeader = "X-Caller"

type quietKey struct{}

// WithoutQuestions is a context in which no other service is asked: for a request that is refused already, and goes on
// only so that all its faults can be told.
func WithoutQuestions(ctx context.Context) context.Context {
	return context.WithValue(ctx, quietKey{}, true)
}

// AsksNothing reports whether the context is one of WithoutQuestions.
func AsksNothing(ctx context.Context) bool { return ctx.Value(quietKey{}) != nil }

// NewID makes a request id: 26 characters, 128 random bits.
func NewID() string {
	var b [16]byte
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rand.Uint64())
	}
	return encoding.EncodeToString(b[:])
}

var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// Sane reports whether a request id of a client's making may go into headers, logs and events: 1…128 of letters, digits and ._-
func Sane(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
