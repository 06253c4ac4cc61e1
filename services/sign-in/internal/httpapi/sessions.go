package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// Session describes session.Session for the OpenAPI document.
type Session struct {
	rest.Meta
	UserID              string               `json:"user_id" readOnly:"true" doc:"Who is signed in" example:"1048577"`
	ACR                 string               `json:"acr" readOnly:"true" doc:"The class of the sign-in" example:"urn:idplatform:aal:1"`
	AMR                 []string             `json:"amr" readOnly:"true" doc:"How the person has signed in (RFC 8176)" example:"[\"pwd\"]"`
	Address             string               `json:"address" readOnly:"true" doc:"Of the last sign-in" example:"192.0.2.7"`
	Browser             string               `json:"browser" readOnly:"true" doc:"Its User-Agent" example:"Mozilla/5.0"`
	Applications        []SessionApplication `json:"applications" readOnly:"true" doc:"Those that the session has entered"`
	TimeSignedIn        time.Time            `json:"time_signed_in" readOnly:"true" doc:"The last sign-in"`
	TimeUsed            time.Time            `json:"time_used" readOnly:"true" doc:"The last use, to 5 minutes"`
	TimeExpires         time.Time            `json:"time_expires" readOnly:"true" doc:"When it ends unless it is used"`
	TimeEnds            time.Time            `json:"time_ends" readOnly:"true" doc:"When it ends at the latest"`
	TimePasswordChanged *time.Time           `json:"time_password_changed" readOnly:"true" nullable:"true" doc:"Of the password that was used"`
}

// SessionApplication is an application that a session has entered.
type SessionApplication struct {
	AppID       string    `json:"app_id" doc:"The application" example:"1048577"`
	Protocol    string    `json:"protocol" doc:"oidc, saml or cas" example:"oidc"`
	TimeEntered time.Time `json:"time_entered" doc:"The first time"`
}

// SessionSelection says which sessions end.
type SessionSelection struct {
	UserIDs []string `json:"user_ids,omitempty" maxItems:"1000" doc:"All sessions of these users"`
	AppID   string   `json:"app_id,omitempty" maxLength:"64" doc:"All sessions that have entered this application"`
}

// EndedSessions says how many sessions have ended.
type EndedSessions struct {
	Ended int64 `json:"ended" doc:"How many sessions there were" example:"1"`
}

// OfUserOrApp selects by user and application.
type OfUserOrApp struct {
	docstore.Paging
	UserID string `query:"user_id" maxLength:"64" doc:"Those of this user" example:"1048577"`
	AppID  string `query:"app_id" maxLength:"64" doc:"Those for this application" example:"1048577"`
}

const oneSession = "/v1/sessions/{id}"

func (a *api) registerSessions(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-sessions", Method: http.MethodGet, Path: "/v1/sessions", Scope: auth.SignInRead,
		Summary:  "List sessions",
		Response: map[string]any{"items": []any{exampleSession}, "total": 1, "page_num": 1, "page_size": 20},
	}, func(ctx context.Context, in *OfUserOrApp) (rest.List[Session], error) {
		page, err := a.Sessions.List(ctx, in.UserID, in.AppID, in.Paging)
		return rest.ListOf[Session](in.Paging, page, err)
	})
	rest.Handle(s, rest.Op{
		ID: "get-session", Method: http.MethodGet, Path: oneSession, Scope: auth.SignInRead, Summary: "Get a session",
		Response: exampleSession,
	}, rest.One[Session](a.Sessions.Get))
	rest.Handle(s, rest.Op{
		ID: "delete-session", Method: http.MethodDelete, Path: oneSession, Scope: auth.SignInWrite,
		Summary: "End a session", Response: rest.Deleted{ID: "1048577"},
		Doc: "The person is signed out, and each application that the session has entered is told.",
	}, rest.Delete(func(ctx context.Context, id string) (rest.Deleted, error) {
		return a.Sessions.End(ctx, id, session.ByAPI)
	}))
	rest.Handle(s, rest.Op{
		ID: "end-sessions", Method: http.MethodPost, Path: "/v1/sessions/end", Scope: auth.SignInWrite,
		Summary: "End many sessions", Request: SessionSelection{UserIDs: []string{"1048577"}},
		Response: EndedSessions{1},
		Doc: "All sessions of users, or all that have entered an application. They end one after the other; if the " +
			"request fails, some have ended.",
	}, func(ctx context.Context, in *struct{ Body SessionSelection }) (EndedSessions, error) {
		n, err := a.Sessions.EndAll(ctx, session.Selection{UserIDs: in.Body.UserIDs, AppID: in.Body.AppID},
			session.ByAPI)
		return EndedSessions{n}, err
	})
}

var exampleSession = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","user_id":"1048577",` +
	`"acr":"urn:idplatform:aal:1","amr":["pwd"],"address":"192.0.2.7","browser":"Mozilla/5.0","applications":[` +
	`{"app_id":"1048577","protocol":"oidc","time_entered":"2026-01-31T09:30:00.000Z"}],` +
	`"time_signed_in":"2026-01-31T09:30:00.000Z","time_used":"2026-01-31T09:30:00.000Z",` +
	`"time_expires":"2026-01-31T17:30:00.000Z","time_ends":"2026-02-01T09:30:00.000Z","time_password_changed":null}`)
