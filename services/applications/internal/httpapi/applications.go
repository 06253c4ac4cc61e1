package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/application"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
)

func (a *api) registerApplications(s *rest.Server) {
	rest.DescribedAs[application.ConfigProp, ConfigProp](s)
	rest.Named[application.Secret](s, "ClientSecret")
	rest.Named[protocol.Prop](s, "ProtocolProp")
	rest.Named[protocol.Attribute](s, "ResponseAttribute")
	rest.Handle(s, rest.Op{
		ID: "create-application", Method: http.MethodPost, Path: "/v1/applications", Scope: auth.ApplicationsWrite,
		Summary: "Create an application",
		Doc: "Its protocol is enabled. Its client secret is shown only in this answer, to callers with the scope " +
			"`applications:secrets`. With `template_id`, members that are not given come from the template. The " +
			"caller must have all scopes that it gives.",
		Errors: []apperr.Kind{apperr.AlreadyExists}, RecentSignIn: rest.FreshAlways,
		Request: exampleNewApplication,
	}, a.createApplication)
	rest.Handle(s, rest.Op{
		ID: "find-application", Method: http.MethodGet, Path: "/v1/application", Scope: auth.ApplicationsRead,
		Summary: "Find an application by its domain",
		Doc: "`domain` is the host of its login_url, `domain_sn` the member of that name; if both are given, both " +
			"must match. Of several with the same host it is the oldest.",
		Errors: []apperr.Kind{apperr.NotFound},
	}, a.findApplication)
	rest.Handle(s, rest.Op{
		ID: "update-application", Method: http.MethodPatch, Path: "/v1/applications/{id}",
		Scope: auth.ApplicationsWrite, Summary: "Change an application",
		Doc: "JSON merge patch (RFC 7396). `sso_enabled` and `mfa_enabled` stand in `config_prop`, too. A change in " +
			"one place changes both. A change of `template_params.params` updates the members that the template " +
			"filled in, except those changed since. To change scopes or keys, the caller must have all scopes of " +
			"the application.",
		Errors: []apperr.Kind{apperr.AlreadyExists}, Request: map[string]any{"descr": "Claims and receipts"},
	}, rest.Update[application.Application, ApplicationInput](a.apps.Update))
	applications := rest.Resource[application.Application, application.Application, application.Filter]{
		Server: s, ID: "application", One: "an application", Many: "applications", Path: "/v1/applications",
		Read: auth.ApplicationsRead, Write: auth.ApplicationsWrite,
	}
	applications.List(rest.Op{}, a.apps.List)
	applications.Get(rest.Op{}, a.apps.Get)
	applications.Delete(rest.Op{
		Doc: "Deletes its protocols, sub-accounts and secrets, too, and ends its tokens. The event " +
			"`application.deleted` makes the permissions service delete its resources, sets and rules. Refused while " +
			"other applications' rules grant its global resources or sets.",
		Errors: []apperr.Kind{apperr.InUse}, RecentSignIn: rest.FreshAlways,
	}, a.apps.Delete)
	applications.Action("enable", rest.Op{}, a.apps.Enable)
	applications.Action("disable", rest.Op{Doc: "Its tokens end."}, a.apps.Disable)
}

func (a *api) createApplication(
	ctx context.Context, in *rest.Creation[ApplicationInput],
) (rest.Record[NewApplication], error) {
	created, err := a.apps.Create(ctx, seesSecrets(ctx),
		func(app *application.Application) error { return in.Body.Into(app) })
	if err != nil {
		return rest.Record[NewApplication]{}, err
	}
	body, tag, err := created.Stored()
	return rest.Record[NewApplication]{JSON: body, Tag: tag}, err
}

// seesSecrets reports whether the caller may see new secrets.
func seesSecrets(ctx context.Context) application.Shown {
	return application.Shown(auth.PrincipalFrom(ctx).Has(auth.ApplicationsSecrets))
}

type findApplicationInput struct {
	Domain   string `query:"domain" maxLength:"260" doc:"Host of the login_url" example:"expenses.acme.test"`
	DomainSN string `query:"domain_sn" maxLength:"253" example:"expenses"`
}

func (a *api) findApplication(
	ctx context.Context, in *findApplicationInput,
) (rest.Record[application.Application], error) {
	return rest.RecordOf[application.Application](a.apps.ByDomain(ctx, in.Domain, in.DomainSN))
}

func (a *api) registerBatch(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-applications", Method: http.MethodPost, Path: "/v1/batch/applications",
		Scope: auth.ApplicationsWrite, Summary: "Create applications",
		Doc:    "All or nothing. Each item is handled as by `create-application`.",
		Errors: []apperr.Kind{apperr.AlreadyExists}, RecentSignIn: rest.FreshAlways,
		Request: map[string]any{"items": []any{exampleNewApplication}},
	}, a.createApplications)
}

type createApplicationsInput struct {
	Body struct {
		Items []rest.JSON[ApplicationInput] `json:"items" minItems:"1" maxItems:"1000" nullable:"false" doc:"1…1000 applications; all or none"`
	}
}

func (a *api) createApplications(
	ctx context.Context, in *createApplicationsInput,
) (rest.BatchOf[NewApplication], error) {
	edits := make([]application.Edit, len(in.Body.Items))
	for i, item := range in.Body.Items {
		edits[i] = func(app *application.Application) error { return item.Into(app) }
	}
	return rest.BatchFrom[NewApplication](a.apps.CreateMany(ctx, seesSecrets(ctx), edits))
}

var exampleNewApplication = map[string]any{
	"name": "Expenses", "category": "1", "login_url": "https://expenses.acme.test/login",
	"redirect_url": "https://expenses.acme.test/callback",
}
