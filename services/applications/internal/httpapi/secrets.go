package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
)

func (a *api) registerSecrets(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "refresh-secrets", Method: http.MethodPost, Path: "/v1/applications/{id}/secrets",
		Scope:      auth.ApplicationsWrite,
		AlsoScopes: []auth.Scope{auth.ApplicationsSecrets}, Summary: "Refresh an application's client secrets",
		Doc: "The new secret is shown only in this answer. Earlier ones stay valid for `grace_seconds`; tokens end " +
			"at once. The caller must have all scopes of the application.",
		Errors: []apperr.Kind{apperr.InvalidState}, Fresh: rest.FreshAlways,
		Response: map[string]any{
			"client_id": "4mrhvkqtwz5c2d7ba3gxyun6ep", "client_secret": "…",
			"time_expires_old": "2026-01-31T09:30:00.000Z",
		},
	}, a.refreshSecrets)
}

type refreshSecretsInput struct {
	rest.ByID
	Grace int64 `query:"grace_seconds" minimum:"0" maximum:"7776000" default:"0" doc:"How long the former secrets stay valid; up to 90 days"`
}

// FreshSecret is a new client secret.
type FreshSecret struct {
	ClientID       string    `json:"client_id" doc:"Whose it is" example:"4mrhvkqtwz5c2d7ba3gxyun6ep"`
	ClientSecret   string    `json:"client_secret" format:"password" doc:"The new secret; shown once" example:"…"`
	TimeExpiresOld time.Time `json:"time_expires_old" doc:"When the former secrets expire"`
}

func (a *api) refreshSecrets(ctx context.Context, in *refreshSecretsInput) (rest.Raw[FreshSecret], error) {
	fresh, err := a.apps.RefreshSecrets(ctx, in.ID, time.Duration(in.Grace)*time.Second)
	if err != nil {
		return rest.Raw[FreshSecret]{}, err
	}
	body, err := json.Marshal(fresh)
	return rest.Raw[FreshSecret]{JSON: body}, err
}
