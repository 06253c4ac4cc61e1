package token

import (
	"context"
	"crypto/sha256"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
)

// Caller is who asks about a token: a client, or the holder of a valid bearer token.
type Caller struct {
	ClientID string
	Tenant   string
	Admin    bool   // of the platform
	Actor    string // see auth.Principal
}

// Caller returns who asks about a token. The error is one of Authenticate's, or apperr.Unauthenticated with the code
// invalid_token for an invalid bearer token.
func (t *Tokens) Caller(ctx context.Context, c Credentials) (Caller, error) {
	bearer, ok := c.bearer()
	if !ok {
		return t.callers.get(c, t.Store.Now(), t.Verifier, func() (found, error) { return t.authenticated(ctx, c) })
	}
	p, err := t.Verifier.Verify(ctx, bearer)
	if apperr.KindOf(err) == apperr.Unauthenticated {
		return Caller{}, apperr.OAuth(apperr.Unauthenticated, "invalid_token", "the bearer token is not valid").
			Because(err)
	}
	if err != nil {
		return Caller{}, err
	}
	return Caller{p.ClientID, p.Tenant, p.Has(auth.PlatformAdmin), p.Actor()}, nil
}

func (t *Tokens) authenticated(ctx context.Context, c Credentials) (found, error) {
	client, err := t.Authenticate(ctx, c)
	if err != nil {
		return found{}, err
	}
	until := t.Store.Now().Add(auth.MaxCacheTTL)
	for _, s := range client.Secrets {
		if !s.Expires.IsZero() && s.Expires.Before(until) {
			until = s.Expires
		}
	}
	by := Caller{
		client.ClientID, client.Tenant, grantedTo(client).Has(auth.PlatformAdmin), auth.ClientActor(client.ClientID),
	}
	return found{by, client.Version, until}, nil
}

// found is a caller that has authenticated with its secret.
type found struct {
	Caller
	version int64 // of the client's record
	until   clock.Time
}

// callers caches clients that have authenticated by client_secret_basic. An entry is valid for as long as the verifier
// caches a token, but only until a change of the client ends its tokens.
type callers struct {
	cache *cache.Cache[[sha256.Size]byte, found]
}

const maxCallers = 10_000

func newCallers() callers {
	return callers{cache.New[[sha256.Size]byte, found](maxCallers)}
}

func (r callers) get(
	c Credentials, now clock.Time, v *auth.Verifier, authenticate func() (found, error),
) (Caller, error) {
	if len(c.Authorization) != 1 || c.ClientID+c.ClientSecret+c.AssertionType+c.Assertion != "" {
		known, err := authenticate()
		return known.Caller, err
	}
	key := sha256.Sum256([]byte(c.Authorization[0]))
	known, ok := r.cache.Get(key)
	if ok && now.Before(known.until) && !v.HasEnded(auth.Platform, known.ClientID, known.version) {
		return known.Caller, nil
	}
	known, err := authenticate()
	if err == nil {
		r.cache.Set(key, known)
	}
	return known.Caller, err
}
