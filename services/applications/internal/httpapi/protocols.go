package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/application"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
)

func (a *api) registerProtocols(s *rest.Server) {
	const one = "/v1/applications/{app_id}/protocols/{protocol_type}"
	rest.Handle(s, rest.Op{
		ID: "list-protocols", Method: http.MethodGet, Path: "/v1/applications/{id}/protocols",
		Scope:   auth.ApplicationsRead,
		Summary: "List an application's protocols",
	}, a.listProtocols)
	rest.Handle(s, rest.Op{
		ID: "get-protocol", Method: http.MethodGet, Path: one, IfMatchParam: "protocol_type",
		Scope:   auth.ApplicationsRead,
		Summary: "Get a protocol", Doc: "404 if it was never set up.",
	}, a.getProtocol)
	rest.Handle(s, rest.Op{
		ID: "put-protocol", Method: http.MethodPut, Path: one, IfMatchParam: "protocol_type",
		Scope:   auth.ApplicationsWrite,
		Summary: "Set up a protocol",
		Doc: "Replaces its settings, or creates it, disabled. The settings of the application's own `protocol_type` " +
			"are also its `protocol_prop`.",
		Request: map[string]any{"protocol_prop": map[string]any{
			"acs_url": "https://expenses.acme.test/saml/acs", "sp_entity": "https://expenses.acme.test",
		}},
	}, a.putProtocol)
	rest.Handle(s, rest.Op{
		ID: "enable-protocol", Method: http.MethodPost, Path: one + "/enable", IfMatchParam: "protocol_type",
		Scope:   auth.ApplicationsWrite,
		Summary: "Enable a protocol",
		Doc: "saml needs acs_url and sp_entity; cas and oidc need the application's redirect_url. sxp is kept, " +
			"and nothing speaks it.",
	}, a.enableProtocol)
	rest.Handle(s, rest.Op{
		ID: "disable-protocol", Method: http.MethodPost, Path: one + "/disable", IfMatchParam: "protocol_type",
		Scope:   auth.ApplicationsWrite,
		Summary: "Disable a protocol",
	}, a.disableProtocol)
	rest.Handle(s, rest.Op{
		ID: "reset-protocol-secret", Method: http.MethodPost, Path: one + "/secret", IfMatchParam: "protocol_type",
		Scope:      auth.ApplicationsWrite,
		AlsoScopes: []auth.Scope{auth.ApplicationsSecrets}, Summary: "Reset a protocol's secret",
		Doc: "The new secret is shown only in this answer; the old one ends. The caller must have all scopes of the " +
			"application.",
		RecentSignIn: rest.FreshAlways,
		Response:     map[string]any{"app_id": "1048577", "protocol_type": "oidc", "secret": "…", "secret_hint": "…a3f9"},
	}, a.resetProtocolSecret)
}

type listProtocolsInput struct {
	rest.ByID
	Status string `query:"status" enum:"1,0" doc:"1 enabled, 0 disabled"`
}

func (a *api) listProtocols(ctx context.Context, in *listProtocolsInput) ([]rest.Raw[protocol.Protocol], error) {
	docs, err := a.apps.Protocols(ctx, in.ID, in.Status)
	return rest.RawOf[protocol.Protocol](docs, err)
}

// ProtocolPath is the path of one protocol.
type ProtocolPath struct {
	AppID string `path:"app_id" maxLength:"64" doc:"The application's id" example:"1048577"`
	Type  string `path:"protocol_type" enum:"cas,oauth2,saml,oidc,sxp" example:"saml"`
}

func (a *api) getProtocol(ctx context.Context, in *ProtocolPath) (rest.Record[protocol.Protocol], error) {
	return rest.RecordOf[protocol.Protocol](a.apps.Protocol(ctx, in.AppID, in.Type))
}

type putProtocolInput struct {
	ProtocolPath
	Body rest.JSON[ProtocolInput]
}

func (a *api) putProtocol(ctx context.Context, in *putProtocolInput) (rest.Empty, error) {
	var body struct {
		Prop protocol.Prop `json:"protocol_prop"`
	}
	if err := in.Body.Into(&body); err != nil {
		return rest.Empty{}, err
	}
	return rest.Empty{}, a.apps.SetProtocol(ctx, in.AppID, in.Type, body.Prop)
}

func (a *api) enableProtocol(ctx context.Context, in *ProtocolPath) (rest.Record[protocol.Protocol], error) {
	return rest.RecordOf[protocol.Protocol](a.apps.EnableProtocol(ctx, in.AppID, in.Type))
}

func (a *api) disableProtocol(ctx context.Context, in *ProtocolPath) (rest.Empty, error) {
	return rest.Empty{}, a.apps.DisableProtocol(ctx, in.AppID, in.Type)
}

func (a *api) resetProtocolSecret(ctx context.Context, in *ProtocolPath) (application.ProtocolSecret, error) {
	return a.apps.ResetProtocolSecret(ctx, in.AppID, in.Type)
}
