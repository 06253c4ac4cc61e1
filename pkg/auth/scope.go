package auth

import (
	"context"
	"math/bits"
	"slices"
	"strings"
)

// Scope is a scope of a credential (RFC 6749 §3.3). The list is closed.
type Scope string

// The scopes.
const (
	UsersRead            Scope = "users:read"
	UsersWrite           Scope = "users:write"
	UsersSecrets         Scope = "users:secrets" // to set passwords
	UsersVerify          Scope = "users:verify"  // to check a login
	ApplicationsRead     Scope = "applications:read"
	ApplicationsWrite    Scope = "applications:write"
	ApplicationsSecrets  Scope = "applications:secrets" // to see new secrets
	PermissionsRead      Scope = "permissions:read"
	PermissionsWrite     Scope = "permissions:write"
	PermissionsCheck     Scope = "permissions:check" // only the check operations
	OrganizationRead     Scope = "organization:read"
	OrganizationWrite    Scope = "organization:write"
	IdentitySourcesRead  Scope = "identity-sources:read"
	IdentitySourcesWrite Scope = "identity-sources:write"
	EventsRead           Scope = "events:read"
	EventsWrite          Scope = "events:write"
	KVRead               Scope = "kv:read"
	KVWrite              Scope = "kv:write"
	JobsRead             Scope = "jobs:read"
	JobsWrite            Scope = "jobs:write"
	FunctionsRead        Scope = "functions:read"
	FunctionsWrite       Scope = "functions:write"
	SignInRead           Scope = "sign-in:read"
	SignInWrite          Scope = "sign-in:write"
	ProvisioningRead     Scope = "provisioning:read"
	ProvisioningWrite    Scope = "provisioning:write"
	SCIM                 Scope = "scim"           // the operations of SCIM, for the client of a connection
	PlatformAdmin        Scope = "platform:admin" // everything, in every tenant
)

// scopes assigns each scope its bit in Scopes. The order is not stored anywhere.
var scopes = []Scope{
	UsersRead, UsersWrite, UsersSecrets, UsersVerify, ApplicationsRead, ApplicationsWrite, ApplicationsSecrets,
	PermissionsRead, PermissionsWrite, PermissionsCheck, OrganizationRead, OrganizationWrite, IdentitySourcesRead,
	IdentitySourcesWrite, EventsRead, EventsWrite, KVRead, KVWrite, JobsRead, JobsWrite, FunctionsRead, FunctionsWrite,
	SignInRead, SignInWrite, ProvisioningRead, ProvisioningWrite, SCIM, PlatformAdmin,
}

// Scopes is a set of scopes. The zero value is the empty set.
type Scopes uint32

// AllScopes has every scope.
var AllScopes = NewScopes(scopes...)

// NewScopes makes a set. It leaves out what is not a scope of the platform.
func NewScopes(list ...Scope) Scopes {
	var s Scopes
	for _, scope := range list {
		s |= bit(scope)
	}
	return s
}

// ParseScopes parses a space-separated list. It also returns the names that are not scopes of the platform.
func ParseScopes(list string) (s Scopes, unknown []string) {
	for name := range strings.FieldsSeq(list) {
		if b := bit(Scope(name)); b != 0 {
			s |= b
		} else {
			unknown = append(unknown, name)
		}
	}
	return s, unknown
}

func bit(scope Scope) Scopes {
	if i := slices.Index(scopes, scope); i >= 0 {
		return 1 << i
	}
	return 0
}

// Has reports whether the set covers scope. PlatformAdmin covers every scope.
func (s Scopes) Has(scope Scope) bool { return s&(bit(scope)|bit(PlatformAdmin)) != 0 }

// Within reports whether granted covers every scope of s.
func (s Scopes) Within(granted Scopes) bool { return granted.Has(PlatformAdmin) || s&^granted == 0 }

// Lacking returns a scope of s that the caller of a request lacks: "" if it has all, and for work without a request.
func (s Scopes) Lacking(ctx context.Context) Scope {
	caller := PrincipalFrom(ctx)
	if caller == nil {
		return ""
	}
	return s.Beyond(caller.Scopes)
}

// Beyond returns a scope of s that held does not cover; "" if it covers all.
func (s Scopes) Beyond(held Scopes) Scope {
	if s.Within(held) {
		return ""
	}
	return (s &^ held).List()[0]
}

// List returns the scopes by name, in a fixed order.
func (s Scopes) List() []Scope {
	list := make([]Scope, 0, bits.OnesCount32(uint32(s)))
	for i, scope := range scopes {
		if s&(1<<i) != 0 {
			list = append(list, scope)
		}
	}
	return list
}

// String returns the form of the scope claim: separated by spaces.
func (s Scopes) String() string {
	var b strings.Builder
	for i, scope := range s.List() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(scope))
	}
	return b.String()
}
