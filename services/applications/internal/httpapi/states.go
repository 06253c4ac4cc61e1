package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

func (a *api) registerStates(s *rest.Server) {
	for _, op := range []struct {
		id, path, summary, doc string
		do                     func(context.Context, string) error
		errors                 []apperr.Kind
	}{
		{"enable-sso", "sso/enable", "Enable single sign-on", "Changes `config_prop`, too.", a.sso(true), nil},
		{"disable-sso", "sso/disable", "Disable single sign-on", "Changes `config_prop`, too.", a.sso(false), nil},
		{"enable-mfa", "mfa/enable", "Enable the second factor", "Changes `config_prop`, too.", a.mfa(true), nil},
		{"disable-mfa", "mfa/disable", "Disable the second factor", "Changes `config_prop`, too.", a.mfa(false), nil},
		{"enable-multi-accounts", "multi-accounts/enable", "Allow a user several sub-accounts", "",
			a.apps.AllowMultiAccounts, nil},
		{"disable-multi-accounts", "multi-accounts/disable", "Allow a user one sub-account",
			"Refused while a user has several.",
			a.apps.ForbidMultiAccounts, []apperr.Kind{apperr.InUse}},
	} {
		rest.Handle(s, rest.Op{
			ID: op.id, Method: http.MethodPost, Path: "/v1/applications/{id}/" + op.path, Scope: auth.ApplicationsWrite,
			Summary: op.summary, Doc: op.doc, Errors: op.errors,
		}, func(ctx context.Context, in *rest.ByID) (rest.Empty, error) { return rest.Empty{}, op.do(ctx, in.ID) })
	}
}

func (a *api) sso(on bool) func(context.Context, string) error {
	return func(ctx context.Context, id string) error { return a.apps.SetSSO(ctx, id, on) }
}

func (a *api) mfa(on bool) func(context.Context, string) error {
	return func(ctx context.Context, id string) error { return a.apps.SetMFA(ctx, id, on) }
}

func (a *api) registerConfigs(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "get-application-configuration", Method: http.MethodGet, Path: "/v1/applications/{id}/configs",
		Scope:   auth.ApplicationsRead,
		Summary: "Get an application's configuration", Doc: "`config_prop` alone, with the application's ETag.",
	}, a.getConfig)
	rest.Handle(s, rest.Op{
		ID: "update-application-configuration", Method: http.MethodPatch, Path: "/v1/applications/{id}/configs",
		Scope:   auth.ApplicationsWrite,
		Summary: "Change an application's configuration", Doc: "JSON merge patch (RFC 7396) of `config_prop`.",
		Request: map[string]any{"default_login_method": "pwd"},
	}, a.updateConfig)
}

func (a *api) getConfig(ctx context.Context, in *rest.ByID) (rest.Record[ConfigProp], error) {
	return configOf(a.apps.Get(ctx, in.ID))
}

type updateConfigInput struct {
	rest.ByID
	Body rest.MergePatch[ConfigProp]
}

func (a *api) updateConfig(ctx context.Context, in *updateConfigInput) (rest.Record[ConfigProp], error) {
	return configOf(a.apps.UpdateConfig(ctx, in.ID, func(c *application.ConfigProp) error { return in.Body.Into(c) }))
}

// configOf is an application's configuration with the application's tag.
func configOf(doc application.Doc, err error) (rest.Record[ConfigProp], error) {
	if err != nil {
		return rest.Record[ConfigProp]{}, err
	}
	app, err := doc.Value()
	if err != nil {
		return rest.Record[ConfigProp]{}, err
	}
	return rest.PartOf[ConfigProp](app.ConfigProp, doc.Tag())
}
