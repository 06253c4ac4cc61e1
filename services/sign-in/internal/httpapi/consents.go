package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
)

// GivenConsent describes consent.Consent for the OpenAPI document.
type GivenConsent struct {
	rest.Meta
	UserID string   `json:"user_id" readOnly:"true" doc:"Who has agreed" example:"1048577"`
	AppID  string   `json:"app_id" readOnly:"true" doc:"The application" example:"1048577"`
	Scopes []string `json:"scopes" readOnly:"true" doc:"What for" example:"[\"profile\"]"`
}

const oneConsent = "/v1/consents/{id}"

func (a *api) registerConsents(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-consents", Method: http.MethodGet, Path: "/v1/consents", Scope: auth.SignInRead,
		Summary:  "List consents",
		Response: map[string]any{"items": []any{exampleConsent}, "total": 1, "page_num": 1, "page_size": 20},
	}, func(ctx context.Context, in *OfUserOrApp) (rest.List[GivenConsent], error) {
		page, err := a.Consents.List(ctx, in.UserID, in.AppID, in.Paging)
		return rest.ListOf[GivenConsent](in.Paging, page, err)
	})
	rest.Handle(s, rest.Op{
		ID: "get-consent", Method: http.MethodGet, Path: oneConsent, Scope: auth.SignInRead, Summary: "Get a consent",
		Response: exampleConsent,
	}, rest.One[GivenConsent](a.Consents.Get))
	rest.Handle(s, rest.Op{
		ID: "delete-consent", Method: http.MethodDelete, Path: oneConsent, Scope: auth.SignInWrite,
		Summary:  "Withdraw a consent",
		Doc:      "The person is asked again, and refresh tokens that the application has end.",
		Response: rest.Deleted{ID: "1048577"},
	}, rest.Delete(func(ctx context.Context, id string) (rest.Deleted, error) {
		return a.Consents.Withdraw(ctx, id, "")
	}))
}

var exampleConsent = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","user_id":"1048577",` +
	`"app_id":"1048577","scopes":["profile"]}`)
