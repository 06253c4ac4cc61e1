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

const oneTemplate = "/v1/auth-templates/{id}"

func (a *api) registerTemplates(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-auth-template", Method: http.MethodPost, Path: "/v1/auth-templates",
		Scope:   auth.IdentitySourcesWrite,
		Summary: "Create an authentication template", Errors: []apperr.Kind{apperr.AlreadyExists},
		Request: exampleTemplateInput, Response: exampleTemplate,
	}, rest.Create[AuthTemplate, AuthTemplateInput](a.templates.Create))
	rest.Handle(s, rest.Op{
		ID: "list-auth-templates", Method: http.MethodGet, Path: "/v1/auth-templates", Scope: auth.IdentitySourcesRead,
		Summary:  "List authentication templates",
		Response: map[string]any{"items": []any{exampleTemplate}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listTemplates)
	rest.Handle(s, rest.Op{
		ID: "get-auth-template", Method: http.MethodGet, Path: oneTemplate, Scope: auth.IdentitySourcesRead,
		Summary: "Get an authentication template", Response: exampleTemplate,
	}, rest.One[AuthTemplate](a.templates.Get))
	rest.Handle(s, rest.Op{
		ID: "update-auth-template", Method: http.MethodPatch, Path: oneTemplate, Scope: auth.IdentitySourcesWrite,
		Summary: "Change an authentication template", Errors: []apperr.Kind{apperr.AlreadyExists},
		Doc:     "JSON merge patch (RFC 7396). `steps` is replaced as a whole.",
		Request: map[string]any{"name": "Staff"}, Response: exampleTemplate,
	}, rest.Update[AuthTemplate, AuthTemplateInput](a.templates.Update))
	rest.Handle(s, rest.Op{
		ID: "delete-auth-template", Method: http.MethodDelete, Path: oneTemplate, Scope: auth.IdentitySourcesWrite,
		Summary: "Delete an authentication template", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "The default template can't be deleted.", Response: map[string]any{"id": "1048577"},
	}, rest.Delete(a.templates.Delete))
	rest.Handle(s, rest.Op{
		ID: "set-default-auth-template", Method: http.MethodPost, Path: oneTemplate + "/default",
		Scope:   auth.IdentitySourcesWrite,
		Summary: "Make an authentication template the default", Errors: []apperr.Kind{apperr.AlreadyExists},
		Doc: "The previous default is no longer one.", Response: exampleTemplate,
	}, rest.One[AuthTemplate](a.templates.MakeDefault))
}

type listTemplatesInput struct {
	Code string `query:"code" maxLength:"64"`
	textindex.Search
	docstore.Paging
}

func (a *api) listTemplates(ctx context.Context, in *listTemplatesInput) (rest.List[AuthTemplate], error) {
	page, err := a.templates.List(ctx, method.TemplateFilter{Code: in.Code, Keyword: in.Keyword}, in.Paging)
	return rest.ListOf[AuthTemplate](in.Paging, page, err)
}

// AuthTemplate describes method.Template for the OpenAPI document.
type AuthTemplate struct {
	rest.Meta
	Code      string     `json:"code" doc:"1…64 letters, digits or . _ -; unique" example:"staff"`
	Name      string     `json:"name" doc:"1…128 characters" example:"Staff"`
	Steps     []AuthStep `json:"steps" doc:"1…10 steps, at least one of them required"`
	IsDefault string     `json:"is_default" readOnly:"true" enum:"1,0" doc:"1 for exactly one of the tenant"`
}

// AuthStep is one step of a login.
type AuthStep struct {
	Methods  []string `json:"methods" doc:"1…20 codes of authentication methods; any one passes the step"`
	Required bool     `json:"required,omitempty" doc:"Whether the step cannot be skipped"`
}

// AuthTemplateInput is an authentication template to be created, or the members of one to be changed.
type AuthTemplateInput struct {
	rest.MembersOf[AuthTemplate]
	Code  string     `json:"code"`
	Name  string     `json:"name"`
	Steps []AuthStep `json:"steps"`
}

var exampleTemplateInput = map[string]any{
	"code": "staff", "name": "Staff", "steps": []any{map[string]any{"methods": []string{"pwd"}, "required": true}},
}

var exampleTemplate = json.RawMessage(`{"id":"1048579","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","code":"staff","name":"Staff",` +
	`"steps":[{"methods":["pwd"],"required":true}],"is_default":"0"}`)
