// Package auth says who asks: it mints and verifies the platform's access tokens (JWT, RFC 7519 and RFC 9068), verifies those of
// configured OIDC issuers, and decides for which tenant a request is meant.
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

// Principal is what a verified token says. It is shared between requests: nobody changes it.
type Principal struct {
	Issuer   string // Issuer.Name
	Subject  string // sub
	ClientID string // client_id; empty where the issuer does not say
	// ClientVersion is the version that the client's record had when the platform gave the token; see Ended.
	ClientVersion int64
	Tenant        string // the tenant that the credential belongs to
	TokenID       string // jti; empty where the issuer does not say
	Scopes        Scopes
	IssuedAt      clock.Time // zero where the issuer does not say
	Expires       clock.Time

	caller []string
}

// SetCaller puts request.CallerHeader into an answer: a hash of issuer, tenant and subject, the same for every token of
// one caller.
func (p *Principal) SetCaller(h http.Header) { h[request.CallerHeader] = p.caller }

func callerOf(p *Principal) []string {
	sum := sha256.Sum256([]byte(strings.Join([]string{p.Issuer, p.Tenant, p.Subject}, "\x00")))
	return []string{base64.RawURLEncoding.EncodeToString(sum[:16])}
}

// Has reports whether the principal may do what scope covers.
func (p *Principal) Has(scope Scope) bool { return p.Scopes.Has(scope) }

type principalKey struct{}

// WithPrincipal returns a context that says who asks.
func WithPrincipal(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom returns what WithPrincipal put in; nil where no credential is needed.
func PrincipalFrom(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}

var tenantID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// ValidTenant reports whether id has the form of a tenant's id: 1…63 of a-z, 0-9, _ and -, the first a letter or digit.
func ValidTenant(id string) bool { return tenantID.MatchString(id) }
