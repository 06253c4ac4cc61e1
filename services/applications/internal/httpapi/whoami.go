package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// Whoami is what the platform reads from the caller's token.
type Whoami struct {
	Actor           string       `json:"actor" doc:"How events and audit entries name the caller: client:<client id>, user:<user id>, or <issuer>#<sub>"`
	ClientID        string       `json:"client_id" doc:"Empty if the issuer does not give it"`
	TenantID        string       `json:"tenant_id" doc:"The credential's own tenant, whichever X-Tenant-Id names"`
	Scopes          []auth.Scope `json:"scopes" nullable:"false" doc:"Those of the platform's scopes that the token has; platform:admin covers all"`
	TimeExpires     clock.Time   `json:"time_expires" doc:"When the token ends"`
	PlatformVersion string       `json:"platform_version" doc:"The version of the program that answers; (devel) for an untagged build"`
}

// registerWhoami adds the operation by which a caller learns what its token is good for, whoever issued it.
func registerWhoami(s *rest.Server) {
	version := telemetry.ReadBuild().Version
	rest.Handle(s, rest.Op{
		ID: "who-am-i", Method: http.MethodGet, Path: "/v1/oauth2/whoami", AnyToken: true,
		Summary: "Get the caller's identity",
		Doc:     "For every valid token, also of other issuers; no scope is needed.",
		Response: Whoami{
			Actor: "client:c1", ClientID: "c1", TenantID: "acme", Scopes: []auth.Scope{auth.UsersRead},
			TimeExpires: clock.FromMillis(1767175200000), PlatformVersion: "v1.4.0",
		},
	}, func(ctx context.Context, _ *struct{}) (Whoami, error) {
		p := auth.PrincipalFrom(ctx)
		return Whoami{p.Actor(), p.ClientID, p.Tenant, p.Scopes.List(), p.Expires, version}, nil
	})
}
