package oidc

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/questions"
)

// Introspection is the answer about a token (RFC 7662 §2.2). For one that is not valid it has only Active.
type Introspection struct {
	Active    bool   `json:"active" doc:"Whether the token holds now; false: nothing else is said"`
	Scope     string `json:"scope,omitempty" doc:"RFC 7662: its scopes, joined by spaces"`
	ClientID  string `json:"client_id,omitempty" doc:"RFC 7662: whose it is"`
	Username  string `json:"username,omitempty" doc:"RFC 7662: the person's name"`
	TokenType string `json:"token_type,omitempty" doc:"Bearer; refresh_token for a refresh token"`
	Expires   int64  `json:"exp,omitempty" doc:"RFC 7519: when it ends, in seconds since 1970"`
	IssuedAt  int64  `json:"iat,omitempty" doc:"RFC 7519: when it was issued, in seconds since 1970"`
	Subject   string `json:"sub,omitempty" doc:"RFC 7519: the user"`
	Audience  string `json:"aud,omitempty" doc:"RFC 7519: what it is for"`
	Issuer    string `json:"iss,omitempty" doc:"RFC 7519: who issued it"`
	TokenID   string `json:"jti,omitempty" doc:"RFC 7519: its id"`
	SessionID string `json:"sid,omitempty" doc:"The session that it was issued in"`
	ACR       string `json:"acr,omitempty" doc:"RFC 9470: the class of the sign-in"`
	AuthTime  int64  `json:"auth_time,omitempty" doc:"RFC 9470: when the person signed in, in seconds since 1970"`
}

// Introspect describes a token to the application that it was issued to, which must have a secret or keys. For all
// others it is not active. It asks no other service about the token. Errors are those of Token.
func (p *Provider) Introspect(ctx context.Context, issuer string, r TokenRequest) (Introspection, error) {
	client, err := p.sender(ctx, issuer, r, "/introspect")
	if err != nil {
		return Introspection{}, err
	}
	if client.Category != questions.StandardWeb {
		return Introspection{}, apperr.OAuth(apperr.InvalidParameters, "unauthorized_client",
			"only applications that authenticate may ask about tokens")
	}
	token := r.Form.Get("token")
	if token == "" {
		return Introspection{}, apperr.Invalid("token", "is missing")
	}
	if id, generation, ok := p.readRefreshToken(ctx, token); ok {
		return p.introspectRefresh(ctx, issuer, client, id, generation)
	}
	access, f, err := p.readAccess(ctx, issuer, token)
	if apperr.KindOf(err) == apperr.Unauthenticated {
		return Introspection{}, nil
	}
	if err != nil || access.ClientID != client.ClientID {
		return Introspection{}, err
	}
	if alive, err := p.alive(ctx, f); !alive {
		return Introspection{}, err
	}
	return Introspection{
		Active: true, Scope: access.Scope, ClientID: access.ClientID, TokenType: "Bearer", Expires: access.Expires,
		IssuedAt: access.IssuedAt, Subject: access.Subject, Audience: access.Audience, Issuer: issuer,
		TokenID: access.ID, SessionID: access.SessionID, ACR: access.ACR, AuthTime: access.AuthTime,
	}, nil
}

// alive reports whether the person may still sign in, and the session still lives.
func (p *Provider) alive(ctx context.Context, f *family) (bool, error) {
	_, err := p.Person(ctx, f.UserID, f.session())
	if kind := apperr.KindOf(err); kind == apperr.NotFound || kind == apperr.Forbidden {
		return false, nil
	}
	return err == nil, err
}

func (p *Provider) introspectRefresh(
	ctx context.Context, issuer string, client questions.Client, id string, generation int64,
) (Introspection, error) {
	f, err := p.family(ctx, id)
	if err != nil || f == nil || f.ClientID != client.ClientID || f.Generation != generation {
		return Introspection{}, err
	}
	if alive, err := p.alive(ctx, f); !alive {
		return Introspection{}, err
	}
	return Introspection{
		Active: true, Scope: joined(f.Scope), ClientID: f.ClientID, TokenType: "refresh_token", Issuer: issuer,
		Subject: f.UserID, Expires: seconds(f.due()), SessionID: f.SessionID,
	}, nil
}

// Revoke ends a token of the application that sends it, and all that the same grant has given (RFC 7009 §2). A token
// that is not valid, or another application's, is no error: nobody learns anything about it.
func (p *Provider) Revoke(ctx context.Context, issuer string, r TokenRequest) error {
	client, err := p.sender(ctx, issuer, r, "/revoke")
	if err != nil {
		return err
	}
	token := r.Form.Get("token")
	if token == "" {
		return apperr.Invalid("token", "is missing")
	}
	id, _, ok := p.readRefreshToken(ctx, token)
	if !ok {
		access, f, err := p.readAccess(ctx, issuer, token)
		if apperr.KindOf(err) == apperr.Unauthenticated || err == nil && access.ClientID != client.ClientID {
			return nil
		}
		if err != nil {
			return err
		}
		return p.revokeFamily(ctx, f.ID)
	}
	f, err := p.family(ctx, id)
	if err != nil || f == nil || f.ClientID != client.ClientID {
		return err
	}
	return p.revokeFamily(ctx, id)
}
