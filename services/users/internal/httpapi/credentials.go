package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/credential"
)

func (a *api) registerCredentials(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-credential", Method: http.MethodPost, Path: "/v1/user-stored-credentials", Scope: auth.UsersWrite,
		Summary: "Bind a social identity to a user",
		Doc:     "Unique: provider_code, idp_config_id and id1 together.",
		Errors:  []apperr.Kind{apperr.AlreadyExists}, Response: exampleCredential,
		Request: map[string]any{"user_id": 1048577, "provider_code": "wechat_scan_qr",
			"id1": "o6_bmjrPTlm6_2sgVt7hMZOPfL2M"},
	}, rest.Create[Credential, CredentialInput](a.credentials.Create))
	rest.Handle(s, rest.Op{
		ID: "list-credentials", Method: http.MethodGet, Path: "/v1/user-stored-credentials", Scope: auth.UsersRead,
		Summary:  "List stored credentials",
		Doc:      "All filters are exact and must all hold.",
		Response: map[string]any{"items": []any{exampleCredential}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listCredentials)
	rest.Handle(s, rest.Op{
		ID: "get-credential", Method: http.MethodGet, Path: "/v1/user-stored-credentials/{id}", Scope: auth.UsersRead,
		Summary:  "Get a stored credential",
		Response: exampleCredential,
	}, rest.One[Credential](a.credentials.Get))
	rest.Handle(s, rest.Op{
		ID: "update-credential", Method: http.MethodPatch, Path: "/v1/user-stored-credentials/{id}",
		Scope: auth.UsersWrite, Summary: "Change a stored credential",
		Doc: "JSON merge patch (RFC 7396). The user can't be changed.", Errors: []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"status": "0"}, Response: exampleCredential,
	}, rest.Update[Credential, CredentialInput](a.credentials.Update))
	rest.Handle(s, rest.Op{
		ID: "delete-credential", Method: http.MethodDelete, Path: "/v1/user-stored-credentials/{id}",
		Scope: auth.UsersWrite, Summary: "Delete a stored credential",
		Response: map[string]any{"id": "1048601"},
	}, rest.Delete(a.credentials.Delete))
}

type listCredentialsInput struct {
	UserID       int64  `query:"user_id" minimum:"1" example:"1048577"`
	ProviderCode string `query:"provider_code" maxLength:"256"`
	IDPConfigID  int64  `query:"idp_config_id" minimum:"-1" default:"-1" doc:"0: those of no connection; -1: all"`
	ID1          string `query:"id1" maxLength:"256"`
	ID2          string `query:"id2" maxLength:"256"`
	Metadata     string `query:"metadata" maxLength:"4096"`
	Status       string `query:"status" enum:"1,0"`
	Username     string `query:"username" maxLength:"256"`
	DisplayName  string `query:"display_name" maxLength:"256"`
	docstore.Paging
}

func (a *api) listCredentials(ctx context.Context, in *listCredentialsInput) (rest.List[Credential], error) {
	filter := credential.Filter{
		UserID: in.UserID, ProviderCode: in.ProviderCode, ID1: in.ID1, ID2: in.ID2,
		Metadata: in.Metadata, Status: in.Status, Username: in.Username, DisplayName: in.DisplayName,
	}
	if in.IDPConfigID >= 0 {
		filter.IDPConfigID = &in.IDPConfigID
	}
	page, err := a.credentials.List(ctx, filter, in.Paging)
	return rest.ListOf[Credential](in.Paging, page, err)
}

var exampleCredential = json.RawMessage(
	`{"id":"1048601","tenant_id":"acme","version":1,"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z",` +
		`"user_id":1048577,"provider_code":"wechat_scan_qr","idp_config_id":0,"id1":"o6_bmjrPTlm6_2sgVt7hMZOPfL2M","id2":"","metadata":"","status":"1","username":"li.wei","display_name":"李伟"}`)
