package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

func (a *api) registerApplications(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-application", Method: http.MethodPost, Path: "/v1/applications", Scope: auth.ApplicationsWrite, Summary: "Create an application",
		Errors: []apperr.Kind{apperr.AlreadyExists}, Request: exampleNewApplication, Response: exampleApplication,
	}, a.createApplication)
	rest.Handle(s, rest.Op{
		ID: "list-applications", Method: http.MethodGet, Path: "/v1/applications", Scope: auth.ApplicationsRead, Summary: "List applications",
		Response: map[string]any{"items": []any{exampleApplication}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listApplications)
	rest.Handle(s, rest.Op{
		ID: "get-application", Method: http.MethodGet, Path: "/v1/applications/{id}", Scope: auth.ApplicationsRead, Summary: "Get an application",
		Response: exampleApplication,
	}, a.getApplication)
	rest.Handle(s, rest.Op{
		ID: "update-application", Method: http.MethodPatch, Path: "/v1/applications/{id}", Scope: auth.ApplicationsWrite, Summary: "Change an application",
		Doc: "JSON merge patch (RFC 7396).", Errors: []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"descr": "Claims and receipts"}, Response: exampleApplication,
	}, a.updateApplication)
	rest.Handle(s, rest.Op{
		ID: "delete-application", Method: http.MethodDelete, Path: "/v1/applications/{id}", Scope: auth.ApplicationsWrite, Summary: "Delete an application",
		Response: map[string]any{"id": "1048577"},
	}, a.deleteApplication)
}

type createApplicationInput struct {
	Body rest.JSON[ApplicationInput]
}

func (a *api) createApplication(ctx context.Context, in *createApplicationInput) (rest.Record[Application], error) {
	var draft application.Application
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[Application]{}, rest.WrongType(err)
	}
	doc, err := a.apps.Create(ctx, draft)
	return rest.RecordOf[Application](doc, err)
}

type listApplicationsInput struct {
	rest.Paging
}

func (a *api) listApplications(ctx context.Context, in *listApplicationsInput) (rest.List[Application], error) {
	page, err := a.apps.List(ctx, in.Page())
	return rest.ListOf[Application](in.Paging, page, err)
}

func (a *api) getApplication(ctx context.Context, in *rest.ByID) (rest.Record[Application], error) {
	doc, err := a.apps.Get(ctx, in.ID)
	return rest.RecordOf[Application](doc, err)
}

type updateApplicationInput struct {
	rest.ByID
	Body rest.MergePatch[ApplicationInput]
}

func (a *api) updateApplication(ctx context.Context, in *updateApplicationInput) (rest.Record[Application], error) {
	doc, err := a.apps.Update(ctx, in.ID, func(app *application.Application) error {
		if err := rest.Apply(in.Body, app); err != nil {
			return rest.WrongType(err)
		}
		return nil
	})
	return rest.RecordOf[Application](doc, err)
}

func (a *api) deleteApplication(ctx context.Context, in *rest.ByID) (rest.Deleted, error) {
	return a.apps.Delete(ctx, in.ID)
}

var exampleNewApplication = map[string]any{
	"name": "Expenses", "category": "1", "login_url": "https://expenses.acme.test/login",
	"redirect_url": "https://expenses.acme.test/callback",
}

var exampleApplication = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z",` +
	`"name":"Expenses","type":"1","domain_sn":"","template_id":"","category":"1","descr":"","logo":"","login_url":"https://expenses.acme.test/login",` +
	`"redirect_url":"https://expenses.acme.test/callback","logout_url":"","sub_account_policy":"0","protocol_type":"oidc",` +
	`"config_prop":{"mfa_enabled":"0","sso_enabled":"1"},"scopes":[],"sys_ext_props":{},"free_ext_props":{},"client_id":"4mrhvkqtwz5c2d7ba3gxyun6ep","status":"1",` +
	`"sso_enabled":"1","mfa_enabled":"0","multi_account_enabled":"0","secrets":[],"idps":[]}`)
