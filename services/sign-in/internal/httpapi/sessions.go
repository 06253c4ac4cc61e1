package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// SessionSelection says which sessions end.
type SessionSelection struct {
	UserIDs []string `json:"user_ids,omitempty" maxItems:"1000" doc:"All sessions of these users"`
	AppID   string   `json:"app_id,omitempty" maxLength:"64" doc:"All sessions that have entered this application"`
	// ConnectionID is of the identity-sources service.
	ConnectionID string `json:"connection_id,omitempty" maxLength:"64" doc:"All sessions that began through this one"`
	Grants       bool   `json:"grants,omitempty" doc:"End the grants of the same selection, too"`
}

// EndedSessions says how many sessions have ended.
type EndedSessions struct {
	Ended  int64 `json:"ended" doc:"How many sessions there were" example:"1"`
	Grants int64 `json:"grants,omitempty" doc:"How many grants there were, if they were to end" example:"1"`
}

func (a *api) registerSessions(s *rest.Server) {
	rest.Named[session.Application](s, "SessionApplication")
	rest.Named[proof.Proof](s, "SessionProof")
	sessions := rest.Resource[session.Session, session.Session, session.Filter]{
		Server: s, ID: "session", One: "a session", Many: "sessions", Path: "/v1/sessions",
		Read: auth.SignInRead, Write: auth.SignInWrite,
	}
	sessions.List(rest.Op{}, a.Sessions.List)
	sessions.Get(rest.Op{}, a.Sessions.Get)
	sessions.Delete(rest.Op{
		Summary: "End a session",
		Doc:     "The person is signed out, and each application that the session has entered is told.",
	}, func(ctx context.Context, id string) (rest.Deleted, error) {
		return a.Sessions.End(ctx, id, session.ByAPI)
	})
	rest.Handle(s, rest.Op{
		ID: "end-sessions", Method: http.MethodPost, Path: "/v1/sessions/end", Scope: auth.SignInWrite,
		Summary: "End many sessions", Request: SessionSelection{UserIDs: []string{"1048577"}},
		Response: EndedSessions{Ended: 1},
		Doc: "All sessions of users, all that have entered an application, or all of people who have signed in " +
			"through a connection. They end one after the other; if the request fails, some have ended. Access that " +
			"goes on after a session ends with `grants` alone.",
	}, func(ctx context.Context, in *struct{ Body SessionSelection }) (EndedSessions, error) {
		which := session.Selection{
			UserIDs: in.Body.UserIDs, AppID: in.Body.AppID, ConnectionID: in.Body.ConnectionID,
		}
		n, err := a.Sessions.EndAll(ctx, which, session.ByAPI)
		if err != nil || !in.Body.Grants {
			return EndedSessions{Ended: n}, err
		}
		var grants int64
		if which.ConnectionID != "" {
			grants, err = oidc.EndGrantsThrough(ctx, a.OIDC.Store, which.ConnectionID)
		} else {
			grants, err = a.OIDC.EndGrants(ctx, which.UserIDs, which.AppID)
		}
		return EndedSessions{Ended: n, Grants: grants}, err
	})
}
