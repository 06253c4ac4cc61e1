package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/identity-sources/internal/method"
)

const oneMethod = "/v1/auth-methods/{id}"

func (a *api) registerMethods(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-auth-method", Method: http.MethodPost, Path: "/v1/auth-methods", Scope: auth.IdentitySourcesWrite,
		Summary: "Create an authentication method", Errors: []apperr.Kind{apperr.AlreadyExists},
		Request: exampleMethodInput, Response: exampleMethod,
	}, rest.Create[AuthMethod, AuthMethodInput](a.methods.Create))
	rest.Handle(s, rest.Op{
		ID: "list-auth-methods", Method: http.MethodGet, Path: "/v1/auth-methods", Scope: auth.IdentitySourcesRead,
		Summary:  "List authentication methods",
		Response: map[string]any{"items": []any{exampleMethod}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listMethods)
	rest.Handle(s, rest.Op{
		ID: "get-auth-method", Method: http.MethodGet, Path: oneMethod, Scope: auth.IdentitySourcesRead,
		Summary: "Get an authentication method", Response: exampleMethod,
	}, rest.One[AuthMethod](a.methods.Get))
	rest.Handle(s, rest.Op{
		ID: "update-auth-method", Method: http.MethodPatch, Path: oneMethod, Scope: auth.IdentitySourcesWrite,
		Summary: "Change an authentication method", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InUse},
		Doc:     "JSON merge patch (RFC 7396). The code can't be changed while templates name the method.",
		Request: map[string]any{"policy": map[string]any{"max_age_seconds": 300}}, Response: exampleMethod,
	}, rest.Update[AuthMethod, AuthMethodInput](a.methods.Update))
	rest.Handle(s, rest.Op{
		ID: "delete-auth-method", Method: http.MethodDelete, Path: oneMethod, Scope: auth.IdentitySourcesWrite,
		Summary: "Delete an authentication method", Errors: []apperr.Kind{apperr.InUse},
		Doc: "Refused while templates name the method.", Response: map[string]any{"id": "1048577"},
	}, rest.Delete(a.methods.Delete))
	rest.Handle(s, rest.Op{
		ID: "enable-auth-method", Method: http.MethodPost, Path: oneMethod + "/enable",
		Scope:   auth.IdentitySourcesWrite,
		Summary: "Enable an authentication method", Response: exampleMethod,
	}, a.setMethodStatus(method.On))
	rest.Handle(s, rest.Op{
		ID: "disable-auth-method", Method: http.MethodPost, Path: oneMethod + "/disable",
		Scope:   auth.IdentitySourcesWrite,
		Summary: "Disable an authentication method", Response: exampleMethod,
	}, a.setMethodStatus(method.Off))
}

type listMethodsInput struct {
	Code   string `query:"code" maxLength:"64"`
	Type   string `query:"type" enum:"password,sms,mail,otp,webauthn,social,enterprise"`
	Status string `query:"status" enum:"1,0"`
	textindex.Search
	docstore.Paging
}

func (a *api) listMethods(ctx context.Context, in *listMethodsInput) (rest.List[AuthMethod], error) {
	filter := method.Filter{Code: in.Code, Type: in.Type, Status: in.Status, Keyword: in.Keyword}
	page, err := a.methods.List(ctx, filter, in.Paging)
	return rest.ListOf[AuthMethod](in.Paging, page, err)
}

func (a *api) setMethodStatus(status string) func(context.Context, *rest.ByID) (rest.Record[AuthMethod], error) {
	return rest.One[AuthMethod](func(ctx context.Context, id string) (method.Doc, error) {
		return a.methods.SetStatus(ctx, id, status)
	})
}

// AuthMethod describes method.Method for the OpenAPI document.
type AuthMethod struct {
	rest.Meta
	Code          string         `json:"code" doc:"1…64 letters, digits or . _ -; unique" example:"pwd"`
	Name          string         `json:"name" doc:"1…128 characters" example:"Password"`
	Type          string         `json:"type" enum:"password,sms,mail,otp,webauthn,social,enterprise" doc:"What people do"`
	ConnectionIDs []string       `json:"connection_ids" doc:"The connections that it uses"`
	Factor        string         `json:"factor" enum:"1,2" doc:"1: may begin a login, 2: a second factor"`
	Status        string         `json:"status" readOnly:"true" enum:"1,0" doc:"Changed by enable and disable"`
	Policy        map[string]any `json:"policy" doc:"Any JSON object up to 16 KiB"`
}

// AuthMethodInput is an authentication method to be created, or the members of one to be changed.
type AuthMethodInput struct {
	rest.MembersOf[AuthMethod]
	Code string `json:"code"`
	Name string `json:"name"`
	Type string `json:"type" enum:"password,sms,mail,otp,webauthn,social,enterprise"`
}

var exampleMethodInput = map[string]any{"code": "pwd", "name": "Password", "type": "password"}

var exampleMethod = json.RawMessage(`{"id":"1048578","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","code":"pwd","name":"Password",` +
	`"type":"password","connection_ids":[],"factor":"1","policy":{},"status":"1"}`)
