package oidc

import (
	"context"
	"slices"

	"github.com/golang-jwt/jwt/v5"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/dnsname"
	"github.com/idplatform/idplatform/services/questions"
)

// MayRead reports whether pages of an origin may read the answers to an application's requests in a browser: if one of
// its redirect URIs has that origin. A request that names no application of the tenant, such as a preflight, is for any
// of them. The error is apperr.Unavailable.
func (p *Provider) MayRead(ctx context.Context, origin, clientID string) (bool, error) {
	origin, ok := dnsname.Origin(origin)
	if !ok {
		return false, nil
	}
	if clientID != "" {
		client, err := p.Clients.Of(ctx, questions.ClientName{ClientID: clientID})
		if !apperr.IsNotFound(err) {
			return slices.ContainsFunc(client.RedirectURLs, func(uri string) bool {
				own, ok := dnsname.Origin(uri)
				return ok && own == origin
			}), err
		}
	}
	_, err := p.Clients.Of(ctx, questions.ClientName{Origin: origin})
	return err == nil, apperr.Ignore(err, apperr.NotFound)
}

// ClientOf returns the client id that a token claims, without checking the token; "" for none.
func ClientOf(token string) string {
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, claims); err != nil {
		return ""
	}
	id, _ := claims["client_id"].(string)
	return id
}
