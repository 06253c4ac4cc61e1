// Package request carries what is known about the current request in the context, from the HTTP layer to the store
// and the events. deploy/adr/0022 lists all that travels in a context.
package request

import (
	"context"
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
)

// Info describes the current request: who sent it, for which tenant, and how other systems and the logs identify it.
type Info struct {
	ID            string // X-Request-Id
	Tenant        string // the tenant whose records are addressed; empty only for operations without a credential
	Actor         string // who sent the request, see auth.Principal; "system" for work without a request
	PayloadOrigin string // X-Payload-Origin; opaque
	Operation     string // the operation's id, for logs
}

type key struct{}

// With returns a context that carries info.
func With(ctx context.Context, info Info) context.Context {
	return context.WithValue(ctx, key{}, info)
}

// From returns the Info that With put into ctx, or the zero Info.
func From(ctx context.Context) Info {
	info, _ := ctx.Value(key{}).(Info)
	return info
}

// Tenant is the tenant of the request, From(ctx).Tenant.
func Tenant(ctx context.Context) string { return From(ctx).Tenant }

// Platform is the tenant of records that belong to no tenant. It is not a valid tenant id, so no credential can have
// it.
const Platform = "*platform"

// System is a context for the platform's own work on a tenant's records, such as schedules and cascades.
func System(ctx context.Context, tenant string) context.Context {
	info := From(ctx)
	info.Tenant, info.Actor = tenant, system
	return With(ctx, info)
}

const system = "system"

// CallerHeader is the response header in which a service tells the gateway who sent the request, so that the gateway
// can give each caller a fair share. The gateway removes it from the response.
const CallerHeader = "X-Caller"

type quietKey struct{}

// WithoutQuestions is a context in which no other service is asked. It is for a request that is already refused and
// is checked further only to report all its faults.
func WithoutQuestions(ctx context.Context) context.Context {
	return context.WithValue(ctx, quietKey{}, true)
}

// AsksNothing reports whether ctx comes from WithoutQuestions.
func AsksNothing(ctx context.Context) bool { return ctx.Value(quietKey{}) != nil }

// NewID makes a request id: 26 characters with 128 random bits.
func NewID() string {
	var b [16]byte
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rand.Uint64())
	}
	return encoding.EncodeToString(b[:])
}

var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// IDOf returns the request id that a client sent if it is Sane, otherwise a new one.
func IDOf(sent string) string {
	if Sane(sent) {
		return sent
	}
	return NewID()
}

// Sane reports whether a request id that a client chose may be used in headers, logs and events: 1…128 letters,
// digits and the characters . _ -
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
