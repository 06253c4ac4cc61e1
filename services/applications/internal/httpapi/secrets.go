package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

func (a *api) registerSecrets(s *rest.Server) {
	rest.Named[application.Refreshed](s, "FreshSecret")
	rest.Handle(s, rest.Op{
		ID: "refresh-secrets", Method: http.MethodPost, Path: "/v1/applications/{id}/secrets",
		Scope:      auth.ApplicationsWrite,
		AlsoScopes: []auth.Scope{auth.ApplicationsSecrets}, Summary: "Refresh an application's client secrets",
		Doc: "The new secret is shown only in this answer. Earlier ones stay valid for `grace_seconds`; tokens end " +
			"at once. The caller must have all scopes of the application. Applications of the categories 2 and 3 " +
			"have no secret: 409.",
		Errors: []apperr.Kind{apperr.InvalidState}, RecentSignIn: rest.FreshAlways,
	}, a.refreshSecrets)
}

type refreshSecretsInput struct {
	rest.ByID
	Grace int64 `query:"grace_seconds" minimum:"0" maximum:"7776000" default:"0" doc:"How long the former secrets stay valid; up to 90 days"`
}

func (a *api) refreshSecrets(ctx context.Context, in *refreshSecretsInput) (application.Refreshed, error) {
	return a.apps.RefreshSecrets(ctx, in.ID, time.Duration(in.Grace)*time.Second)
}
