// Package token is the token service for machine clients: it authenticates applications (RFC 6749 §2.3, RFC 7523),
// issues access tokens (RFC 6749 §4.4, RFC 9068), revokes tokens (RFC 7009) and introspects them (RFC 7662).
//
// Tokens are not stored. Package ended stores which of them have ended before they expire; package signing stores the
// keys.
package token

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clientauth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

// Deps are what Tokens need. All are required.
type Deps struct {
	Store    *docstore.Store
	Clients  Clients
	Signer   *auth.Signer
	Verifier *auth.Verifier
	// Assertions checks those of clients.
	Assertions *clientauth.Assertions
	Limits     Limits
	TTL        time.Duration // of a token, at most auth.MaxTokenTTL
	// Chosen reports whether people chose the secret of a client, so that guesses of it are limited.
	Chosen func(clientID string) bool
}

// Clients finds clients.
type Clients interface {
	// Client finds an application by its client id, in all tenants. The error is apperr.NotFound.
	Client(ctx context.Context, clientID string) (application.Client, error)
}

// Tokens are the use cases.
type Tokens struct {
	Deps
	limits  limits
	callers callers
}

// New makes the use cases.
func New(d Deps) *Tokens { return &Tokens{d, newLimits(d.Limits), newCallers()} }

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return append(clientauth.Collections(), failures.Def()) }

// GrantType is the only supported grant type (RFC 6749 §4.4).
const GrantType = "client_credentials"

// Request asks for a token.
type Request struct {
	GrantType string
	Scope     string // empty: all scopes of the client
	Tenant    string // empty: the client's; an administrator of the platform may name another one
}

// Token is the answer (RFC 6749 §5.1).
type Token struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"` // seconds
	Scope       string `json:"scope"`
}

// Issue issues a token to an authenticated client. The error is apperr.InvalidParameters with the codes
// unsupported_grant_type, unauthorized_client and invalid_scope, Forbidden for another tenant or RateLimited.
func (t *Tokens) Issue(ctx context.Context, c application.Client, r Request) (Token, error) {
	if wait := t.limits.tokens.Take(c.ClientID); wait > 0 {
		return Token{}, tooMany("too many token requests", wait)
	}
	switch {
	case r.GrantType == "":
		return Token{}, apperr.Invalid("grant_type", "is missing")
	case r.GrantType != GrantType:
		return Token{}, apperr.OAuth(apperr.InvalidParameters, "unsupported_grant_type",
			"grant_type must be %s", GrantType)
	}
	return t.issue(ctx, c, r)
}

func (t *Tokens) issue(ctx context.Context, c application.Client, r Request) (Token, error) {
	if c.Category != application.BackendService {
		return Token{}, apperr.OAuth(apperr.InvalidParameters, "unauthorized_client",
			"only applications of category %s get tokens", application.BackendService)
	}
	granted := grantedTo(c)
	scopes := granted
	if r.Scope != "" {
		var unknown []string
		if scopes, unknown = auth.ParseScopes(r.Scope); len(unknown) > 0 || !scopes.Within(granted) {
			return Token{}, apperr.OAuth(apperr.InvalidParameters, "invalid_scope",
				"the client may have the scopes: %s", granted)
		}
	}
	tenant := c.Tenant
	if r.Tenant != "" && r.Tenant != tenant {
		if !granted.Has(auth.PlatformAdmin) {
			return Token{}, apperr.New(apperr.Forbidden, "the client belongs to another tenant")
		}
		if tenant = r.Tenant; !auth.ValidTenant(tenant) {
			return Token{}, apperr.Invalid("header."+auth.TenantHeader,
				"must be 1…63 of a-z, 0-9, _ and -, the first a letter or digit")
		}
	}
	text := "******" // a dry run issues no token
	if !docstore.IsDryRun(ctx) {
		var err error
		if text, err = t.Signer.Mint(auth.Claims{
			Subject: c.ClientID, ClientID: c.ClientID, ClientVersion: c.Version, ApplicationID: c.AppID,
			Tenant: tenant, Scopes: scopes, TTL: t.TTL,
		}); err != nil {
			return Token{}, err
		}
	}
	return Token{text, "Bearer", int64(t.TTL / time.Second), scopes.String()}, nil
}

func grantedTo(c application.Client) auth.Scopes {
	var list []auth.Scope
	for _, name := range c.Scopes {
		list = append(list, auth.Scope(name))
	}
	return auth.NewScopes(list...)
}

func tooMany(what string, wait time.Duration) error {
	e := apperr.New(apperr.RateLimited, "%s", what)
	e.RetryAfter = max(wait, time.Second)
	return e
}
