// Package auth identifies callers. It makes and verifies the platform's access tokens (JWT, RFC 7519 and RFC 9068),
// verifies those of configured OIDC issuers, and decides which tenant a request is for.
package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
)

// Principal is the content of a verified token. Requests share it: it must not be changed.
type Principal struct {
	Issuer   string // Issuer.Name
	Subject  string // sub
	ClientID string // client_id; empty if the issuer does not give it
	// ClientVersion is the version of the client's record when the platform issued the token; see Ended.
	ClientVersion int64
	ApplicationID string // the application that the client belongs to; empty if the token does not name one
	Tenant        string // the tenant that the credential belongs to
	TokenID       string // jti; empty if the issuer does not give it
	Scopes        Scopes
	IssuedAt      clock.Time // zero if the issuer does not give it
	Expires       clock.Time

	keyID  string // of the key that signed the token
	caller []string
	actor  string
}

// SetCaller sets request.CallerHeader in a response: a hash of issuer, tenant and subject, the same for every token of
// a caller.
func (p *Principal) SetCaller(h http.Header) { h[request.CallerHeader] = p.caller }

func callerOf(p *Principal) []string {
	sum := sha256.Sum256([]byte(strings.Join([]string{p.Issuer, p.Tenant, p.Subject}, "\x00")))
	return []string{base64.RawURLEncoding.EncodeToString(sum[:16])}
}

// Actor names the caller in events and logs by kind and name: client:<client id> for a machine, user:<user id> for a
// person with a token of the platform, <issuer>#<sub> for everyone else. So two issuers' subjects are never one actor,
// and no caller is "system": an issuer has no #, and is a URL.
func (p *Principal) Actor() string { return p.actor }

func actorOf(p *Principal) string {
	switch {
	case p.Issuer != Platform:
		return p.Issuer + "#" + p.Subject
	case p.Subject == p.ClientID:
		return ClientActor(p.ClientID)
	}
	return "user:" + p.Subject
}

// ClientActor is the actor of a machine client.
func ClientActor(clientID string) string { return "client:" + clientID }

// Has reports whether the principal has the scope.
func (p *Principal) Has(scope Scope) bool { return p.Scopes.Has(scope) }

type principalKey struct{}

// WithPrincipal returns a context with the caller.
func WithPrincipal(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom returns the principal that WithPrincipal put in; nil for an operation without a credential.
func PrincipalFrom(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}

var tenantID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// ValidTenant reports whether id has the form of a tenant's id: 1…63 of a-z, 0-9, _ and -, the first a letter or digit.
func ValidTenant(id string) bool { return tenantID.MatchString(id) }
