package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
)

func (a *api) registerSources(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "attach-source", Method: http.MethodPost, Path: "/v1/applications/{id}/idp", Scope: auth.ApplicationsWrite,
		Summary: "Attach authentication sources", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "One connection as `config_id`, or several as `config_ids`. Those that are attached already are " +
			"ignored.",
		Request: map[string]any{"config_id": "31"},
	}, a.attachSource)
	rest.Handle(s, rest.Op{
		ID: "detach-source", Method: http.MethodDelete, Path: "/v1/applications/{app_id}/idp/{config_id}",
		IfMatchParam: "app_id", Scope: auth.ApplicationsWrite,
		Summary: "Detach an authentication source",
	}, a.detachSource)
}

type attachSourceInput struct {
	rest.ByID
	Body struct {
		ConfigID  string   `json:"config_id,omitempty" minLength:"1" maxLength:"64" doc:"A connection's id" example:"31"`
		ConfigIDs []string `json:"config_ids,omitempty" minItems:"1" maxItems:"100" doc:"Instead of config_id: several connections' ids"`
	}
}

func (a *api) attachSource(ctx context.Context, in *attachSourceInput) (rest.Empty, error) {
	ids, at := in.Body.ConfigIDs, func(i int) string { return apperr.Item("config_ids", i) }
	switch {
	case (in.Body.ConfigID != "") == (len(ids) > 0):
		return rest.Empty{}, apperr.Invalid("", "must have either config_id or config_ids")
	case in.Body.ConfigID != "":
		ids, at = []string{in.Body.ConfigID}, func(int) string { return "config_id" }
	}
	return rest.Empty{}, a.apps.Attach(ctx, in.ID, ids, at)
}

type detachSourceInput struct {
	AppID    string `path:"app_id" maxLength:"64" doc:"The application's id" example:"1048577"`
	ConfigID string `path:"config_id" maxLength:"64" doc:"The connection's id" example:"31"`
}

func (a *api) detachSource(ctx context.Context, in *detachSourceInput) (rest.Empty, error) {
	return rest.Empty{}, a.apps.Detach(ctx, in.AppID, in.ConfigID)
}
