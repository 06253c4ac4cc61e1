package oidc

import (
	"context"
	"errors"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
)

// errToken is the error for bad bearer tokens (RFC 6750 §3.1).
var errToken = apperr.OAuth(apperr.Unauthenticated, "invalid_token", "the access token is not valid, or not any more")

// readAccess reads an access token of the issuer that is still valid, with its family. The error is errToken, or the
// store's.
func (p *Provider) readAccess(ctx context.Context, issuer, text string) (accessClaims, *family, error) {
	var claims accessClaims
	err := p.Keys.Read(ctx, text, accessType, &claims)
	if errors.Is(err, keys.ErrToken) {
		return claims, nil, errToken
	}
	if err != nil {
		return claims, nil, err
	}
	if claims.Issuer != issuer || claims.Expires <= seconds(p.Store.Now()) {
		return claims, nil, errToken
	}
	f, err := p.family(ctx, claims.Family)
	if err == nil && (f == nil || f.UserID != claims.Subject) {
		err = errToken
	}
	return claims, f, err
}

// UserInfo answers who an access token is about (OpenID Connect Core §5.3). A token for another API is refused: that
// API would learn here what only the application may know (RFC 9068 §4). It asks other services for groups, and for the
// application unless it is known.
// The error is apperr.Unauthenticated (invalid_token), Forbidden (insufficient_scope) or Unavailable.
func (p *Provider) UserInfo(ctx context.Context, issuer, token string) (map[string]any, error) {
	access, f, err := p.readAccess(ctx, issuer, token)
	if err != nil {
		return nil, err
	}
	if access.Audience != access.ClientID && access.Audience != issuer {
		return nil, errToken
	}
	scope := words(access.Scope)
	if !slices.Contains(scope, openID) {
		return nil, apperr.OAuth(apperr.Forbidden, "insufficient_scope", "the access token lacks the scope openid")
	}
	person, err := p.Person(ctx, f.UserID, f.session())
	if kind := apperr.KindOf(err); kind == apperr.NotFound || kind == apperr.Forbidden {
		return nil, errToken.Because(err)
	}
	if err != nil {
		return nil, err
	}
	f.Scope = scope // a token may have less than was granted
	client, err := p.Clients.Of(ctx, questions.ClientName{AppID: f.AppID})
	if err != nil && !apperr.IsNotFound(err) { // the tokens of one that is gone end in a moment
		return nil, err
	}
	answer, err := p.about(ctx, client, &f.Granted, person, f.ofUserInfo())
	if err != nil {
		return nil, err
	}
	answer["sub"] = f.UserID
	return answer, nil
}
