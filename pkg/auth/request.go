package auth

import (
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// TenantHeader names the tenant that a request is for.
const TenantHeader = "X-Tenant-Id"

// BearerToken returns the token in the request's Authorization header (RFC 6750 §2.1), the only place where a token is
// accepted. The error is apperr.Unauthenticated unless there is exactly one.
func BearerToken(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", apperr.New(apperr.Unauthenticated, "a bearer token is needed")
	}
	if len(values) > 1 {
		return "", apperr.New(apperr.Unauthenticated, "there must be one Authorization header")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t,") {
		return "", apperr.New(apperr.Unauthenticated, "the Authorization header must be: Bearer, a space, the token")
	}
	return token, nil
}

// SelectTenant returns the tenant that a request of p is for: the one in the header X-Tenant-Id, otherwise p's own. The
// error is apperr.Forbidden for another tenant without PlatformAdmin, and apperr.InvalidParameters for a value that is
// not a tenant's id.
func SelectTenant(r *http.Request, p *Principal) (string, error) {
	values := r.Header.Values(TenantHeader)
	if len(values) == 0 {
		return p.Tenant, nil
	}
	if len(values) > 1 {
		return "", apperr.Invalid("header."+TenantHeader, "must be sent once")
	}
	tenant := values[0]
	if !ValidTenant(tenant) {
		return "", apperr.Invalid("header."+TenantHeader,
			"must be 1…63 of a-z, 0-9, _ and -, the first a letter or digit")
	}
	if tenant != p.Tenant && !p.Has(PlatformAdmin) {
		return "", apperr.New(apperr.Forbidden, "the credential belongs to another tenant")
	}
	return tenant, nil
}
