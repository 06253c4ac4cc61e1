package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
)

// Opaque verifies tokens that only the service that has issued them can look up. They begin with a prefix, so that
// nobody takes one for a JWT.
type Opaque struct {
	prefix string
	find   func(ctx context.Context, hash string) (*Principal, error)
	clock  clock.Clock
	cache  *cache.Cache[string, found]
}

type found struct {
	principal *Principal
	until     clock.Time
}

// opaqueTTL is how long a token that was found is not looked up again. Within 30 s a token that has ended must be
// refused by every replica.
const opaqueTTL = 10 * time.Second

// NewOpaque makes the verifier. find gets the token's SHA-256 (HashOpaque) and returns apperr.NotFound for an unknown
// one; it needs no tenant in its context.
func NewOpaque(prefix string, c clock.Clock, find func(ctx context.Context, hash string) (*Principal, error)) *Opaque {
	return &Opaque{prefix, find, c, cache.New[string, found](10_000)}
}

// HashOpaque is the form in which a token is stored: it has 256 random bits, so a plain hash cannot be guessed back.
func HashOpaque(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Is reports whether a token is one of these. A nil Opaque has none.
func (o *Opaque) Is(token string) bool { return o != nil && strings.HasPrefix(token, o.prefix) }

// Verify returns whom a token identifies. The error is apperr.Unauthenticated, or that of the store.
func (o *Opaque) Verify(ctx context.Context, token string) (*Principal, error) {
	if len(token) > MaxTokenSize {
		return nil, refused(nil)
	}
	hash, now := HashOpaque(token), o.clock.Now()
	if hit, ok := o.cache.Get(hash); ok && now.Before(hit.until) {
		return hit.principal, nil
	}
	p, err := o.find(ctx, hash)
	if apperr.IsNotFound(err) {
		return nil, refused(err)
	}
	if err != nil {
		return nil, err
	}
	until := now.Add(opaqueTTL)
	if !p.Expires.IsZero() && p.Expires.Before(until) {
		until = p.Expires
	}
	if !now.Before(until) {
		return nil, refused(nil)
	}
	o.cache.Set(hash, found{p, until})
	return p, nil
}

// Forget makes the next request with any of the tokens look it up again.
func (o *Opaque) Forget() { o.cache.Clear() }

// Holder is the principal of an opaque token: whom it stands for as an actor (kind:name), in which tenant, and until
// when; a zero time means without end.
func Holder(tenant, actor string, scopes Scopes, expires clock.Time) *Principal {
	p := &Principal{Issuer: Platform, Subject: actor, Tenant: tenant, Scopes: scopes, Expires: expires, actor: actor}
	p.caller = callerOf(p)
	return p
}
