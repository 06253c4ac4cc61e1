package token

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/applications/internal/ended"
)

// Revoke ends a token that was issued to the caller; an administrator of the platform can end every token. An invalid
// token needs no revocation and is no error (RFC 7009 §2.2). The error is apperr.InvalidParameters with the codes
// unsupported_token_type (another issuer's token) and unauthorized_client (another client's) or RateLimited.
func (t *Tokens) Revoke(ctx context.Context, by Caller, text string) error {
	p, err := t.Verifier.Verify(ctx, text)
	if apperr.KindOf(err) == apperr.Unauthenticated {
		return nil
	}
	if err != nil {
		return err
	}
	if p.Issuer != auth.Platform {
		return apperr.OAuth(apperr.InvalidParameters, "unsupported_token_type",
			"the token was issued by another issuer")
	}
	if (by.ClientID == "" || p.ClientID != by.ClientID) && !by.Admin {
		return apperr.OAuth(apperr.InvalidParameters, "unauthorized_client", "the token was issued to another client")
	}
	if wait := t.limits.revocations.Take(by.ClientID); wait > 0 {
		return tooMany("tokens are revoked too often", wait)
	}
	info := request.From(ctx)
	info.Tenant, info.Actor = p.Tenant, by.Actor
	ctx = request.With(ctx, info)
	err = docstore.Do(ctx, t.Store, func(tx *docstore.Tx) error { return ended.Token(ctx, tx, p.TokenID, p.Expires) })
	if err != nil && !ended.Known(err) || docstore.IsDryRun(ctx) {
		return err
	}
	// The event reaches every replica; in this one the token has ended before the answer is sent.
	return t.Verifier.End(auth.Ended{Issuer: auth.Platform, TokenID: p.TokenID, Until: p.Expires})
}

// Introspection is the answer about a token (RFC 7662 §2.2). For an invalid token it has only Active.
type Introspection struct {
	Active    bool   `json:"active" doc:"Whether the token holds now; false: nothing else is said"`
	Scope     string `json:"scope,omitempty" doc:"RFC 7662: its scopes, joined by spaces"`
	ClientID  string `json:"client_id,omitempty" doc:"RFC 7662: whose it is"`
	TokenType string `json:"token_type,omitempty" doc:"Bearer"`
	Expires   int64  `json:"exp,omitempty" doc:"RFC 7519: when it ends, in seconds since 1970"` // seconds since 1970
	IssuedAt  int64  `json:"iat,omitempty" doc:"RFC 7519: when it was issued, in seconds since 1970"`
	Subject   string `json:"sub,omitempty" doc:"RFC 7519: whom it is about"`
	Issuer    string `json:"iss,omitempty" doc:"RFC 7519: who issued it"`
	TokenID   string `json:"jti,omitempty" doc:"RFC 7519: its id"`
	Tenant    string `json:"tenant_id,omitempty" doc:"The tenant that it is of"`
}

// Introspect describes a token of the platform. For callers of another tenant the token is not active.
func (t *Tokens) Introspect(ctx context.Context, by Caller, text string) (Introspection, error) {
	p, err := t.Verifier.Verify(ctx, text)
	if apperr.KindOf(err) == apperr.Unauthenticated {
		return Introspection{}, nil
	}
	if err != nil {
		return Introspection{}, err
	}
	if p.Issuer != auth.Platform || p.Tenant != by.Tenant && !by.Admin {
		return Introspection{}, nil
	}
	return Introspection{
		Active: true, Scope: p.Scopes.String(), ClientID: p.ClientID, TokenType: "Bearer",
		Expires: p.Expires.Millis() / 1000, IssuedAt: p.IssuedAt.Millis() / 1000,
		Subject: p.Subject, Issuer: t.Signer.Issuer(), TokenID: p.TokenID, Tenant: p.Tenant,
	}, nil
}
