package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/identity-sources/internal/connection"
	"github.com/idplatform/idplatform/services/identity-sources/internal/probe"
	"github.com/idplatform/idplatform/services/identity-sources/internal/provider"
	"github.com/idplatform/idplatform/services/questions"
)

const oneConnection = "/v1/idp/connections/{id}"

func (a *api) registerConnections(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-providers", Method: http.MethodGet, Path: "/v1/idp/providers", Scope: auth.IdentitySourcesRead,
		Summary: "List providers", Response: []any{exampleProvider},
		Doc: "The catalogue. `config_schema` is the JSON Schema of `config_fields` of a connection to the provider; " +
			"its `writeOnly` members are secrets. `documentation` is the address of the provider's own " +
			"documentation. `sign_in` says how people sign in; at a provider without it they cannot. " +
			"`callback_url` is the redirect URI to register at the provider, with `{connection_id}` in place of the " +
			"connection's id, and `logout_url` the back-channel logout URI: whoever signs out there is signed out " +
			"here. `logo` is a data URI of the provider's initials: real logos are trademarks.",
	}, a.listProviders)
	rest.DescribedAs[connection.Fields, map[string]any](s)
	connections := rest.Resource[connection.Connection, connection.Draft, docstore.Paging]{
		Server: s, ID: "connection", One: "a connection", Many: "connections", Path: "/v1/idp/connections",
		Read: auth.IdentitySourcesRead, Write: auth.IdentitySourcesWrite,
	}
	rest.Handle(s, rest.Op{
		ID: "list-connections", Method: http.MethodGet, Path: "/v1/idp/connections", Scope: auth.IdentitySourcesRead,
		Summary: "List connections", Doc: "All connections that meet the filters, the oldest first.",
	}, a.listConnections)
	rest.Handle(s, rest.Op{
		ID: "create-connection", Method: http.MethodPost, Path: "/v1/idp/connections", Scope: auth.IdentitySourcesWrite,
		Summary: "Create a connection", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc: "`config_fields` must meet the provider's `config_schema`. Every answer has `******` in place of " +
			"secrets. With `status` 0 the connection is disabled from the start, so that it can be tested before " +
			"anybody signs in through it.",
		Request: exampleConnectionInput,
	}, rest.Create[connection.Connection, NewConnectionInput](a.connections.Create))
	connections.Get(rest.Op{}, a.connections.Get)
	rest.Handle(s, rest.Op{
		ID: "replace-connection", Method: http.MethodPut, Path: oneConnection, Scope: auth.IdentitySourcesWrite,
		Summary: "Change a connection",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InUse, apperr.InvalidState, apperr.Unavailable},
		Doc: "Replaces provider, fields and display name. `******` in place of a secret keeps it, unless a " +
			"member of its `x-route` changes. The provider of a " +
			"connection in use can't be changed. The answer is an array with the connection.",
		Request: exampleConnectionInput,
	}, a.replaceConnection)
	connections.Delete(rest.Op{
		Errors: []apperr.Kind{apperr.InUse, apperr.InvalidState, apperr.Unavailable},
		Doc:    "Refused while stored credentials, applications or authentication methods use it.",
	}, a.connections.Delete)
	connections.Switch(rest.Op{}, a.connections.SetStatus)
	rest.Handle(s, rest.Op{
		ID: "test-connection", Method: http.MethodPost, Path: oneConnection + "/test", Scope: auth.IdentitySourcesWrite,
		Summary: "Test a connection", NoReplay: true, Errors: []apperr.Kind{apperr.Unavailable},
		Doc: "Connects to the provider as a login would, within 14 seconds: OpenID Connect discovery and keys, SAML " +
			"metadata, LDAP bind and search, the SMTP handshake. Keys that only the provider can check are compared " +
			"with their usual form. A dry run makes no requests. Requests to private addresses are refused unless " +
			"the platform is configured for them.",
		Response: exampleResult,
	}, a.testConnection)
}

func (a *api) listProviders(ctx context.Context, _ *struct{}) ([]provider.Provider, error) {
	all := make([]provider.Provider, 0, len(provider.Builtin().List()))
	for _, p := range provider.Builtin().List() {
		one := *p
		switch {
		case !slices.Contains(questions.SignInProviders, p.ProviderCode):
		case p.Check == provider.LDAPCheck:
			one.SignIn = provider.ByPassword
		default:
			one.SignIn = provider.ByRedirect
			one.CallbackURL = a.publicURL + "/sign-in/" + request.Tenant(ctx) + "/callback/{connection_id}"
		}
		if p.ProviderCode == "oidc" {
			one.LogoutURL = a.publicURL + "/sign-in/" + request.Tenant(ctx) + "/backchannel/{connection_id}"
		}
		all = append(all, one)
	}
	return all, nil
}

func (a *api) listConnections(
	ctx context.Context, in *connection.Filter,
) (rest.Pieces[[]connection.Connection], error) {
	first, err := a.connections.List(ctx, *in, "")
	return rest.ArrayOf[connection.Connection](first, err, connection.MaxListPage,
		func(ctx context.Context, after string) (docstore.Page[connection.Connection], error) {
			return a.connections.List(ctx, *in, after)
		})
}

func (a *api) replaceConnection(
	ctx context.Context, in *rest.Replacement[ConnectionInput],
) ([]rest.Raw[connection.Connection], error) {
	var draft connection.Draft
	if err := in.Body.Into(&draft); err != nil {
		return nil, err
	}
	doc, err := a.connections.Replace(ctx, in.ID, draft)
	return rest.RawOf[connection.Connection]([]connection.Doc{doc}, err)
}

func (a *api) testConnection(ctx context.Context, in *rest.ByID) (probe.Result, error) {
	of, settings, err := a.connections.Settings(ctx, in.ID)
	if err != nil {
		return probe.Result{}, err
	}
	result, err := a.prober.Test(ctx, of, settings, docstore.IsDryRun(ctx))
	if err != nil || docstore.IsDryRun(ctx) {
		return result, err
	}
	return result, a.connections.Tested(ctx, in.ID, result.OK)
}

// ConnectionMembers are what a connection is created or replaced with. Read-only members may be sent back and are
// ignored.
type ConnectionMembers struct {
	rest.MembersOf[connection.Connection]
	ProviderCode string         `json:"provider_code"`
	DisplayName  string         `json:"display_name,omitempty" doc:"Up to 128 characters; displayName of config_fields if absent"`
	ConfigFields map[string]any `json:"config_fields" doc:"As the provider's config_schema says; ****** keeps a secret"`
}

// NewConnectionInput is a connection to be created.
type NewConnectionInput struct {
	ConnectionMembers
	Status string `json:"status,omitempty" enum:"1,0" doc:"0: disabled from the start; 1 if absent"`
}

// ConnectionInput is what a connection is replaced with.
type ConnectionInput struct {
	ConnectionMembers
	Status string `json:"status,omitempty" readOnly:"true" doc:"Changed by enable and disable"`
}

var exampleProvider = json.RawMessage(`{"provider_id":"1","provider_code":"wechat_scan_qr","name":"WeChat","type":"social",` +
	`"logo":"data:image/svg+xml,%3Csvg…","documentation":"https://developers.weixin.qq.com/doc/","config_schema":{"type":"object","properties":{` +
	`"AppId":{"type":"string","title":"AppID"},"AppSecret":{"type":"string","title":"AppSecret","writeOnly":true}},` +
	`"required":["AppId","AppSecret"],"additionalProperties":false}}`)

var exampleConnectionInput = map[string]any{
	"provider_code": "wechat_scan_qr",
	"config_fields": map[string]any{
		"AppId": "wx8f3a2b1c0d9e7f65", "AppSecret": "0123456789abcdef0123456789abcdef", "displayName": "微信",
	},
}

var exampleResult = probe.Result{OK: false, Steps: []probe.Step{
	{Name: "discovery", OK: true, Message: "the issuer is https://login.acme.test", DurationMS: 84},
	{Name: "keys", OK: false, Message: "the key set at jwks_uri has no key that could verify a signature",
		DurationMS: 31},
}}
