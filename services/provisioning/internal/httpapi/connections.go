package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/journal"
)

const (
	allConnections = "/v1/provisioning/connections"
	oneConnection  = allConnections + "/{id}"
)

// mayLet tells which scopes the caller needs because the connection can do what they allow; see Connection.mayLet.
const mayLet = "The caller needs the scopes for what the connection can do: `organization:write` if it takes a tree " +
	"that exists, `users:secrets` if it adopts users or accepts passwords, and all that `scopes` lists."

// letsActOnUsers are needed to let a client make, change and remove users.
var letsActOnUsers = []auth.Scope{auth.UsersWrite}

func (a *api) registerConnections(s *rest.Server) {
	rest.Named[connection.Connection](s, "ScimConnection")
	rest.Named[connection.Gate](s, "ScimGate")
	rest.Named[connection.Counters](s, "ScimCounters")
	rest.Named[journal.Entry](s, "ScimRequest")
	rest.DescribedAs[connection.LoginLink, rest.OrNull[connection.LoginLink]](s)
	connections := rest.Resource[connection.Connection, connection.Profile, docstore.Paging]{
		Server: s, ID: "scim-connection", One: "a connection", Many: "connections", Path: allConnections,
		Read: auth.ProvisioningRead, Write: auth.ProvisioningWrite,
	}
	taken := []apperr.Kind{apperr.AlreadyExists}
	connections.Create(rest.Op{
		Doc: "The tree `object_code` is made with it unless it exists; without one the connection has no groups. A " +
			"`client_id` and a tree belong to one connection. " + mayLet,
		AlsoScopes: letsActOnUsers, Errors: taken,
		Request: map[string]any{"name": "Okta", "object_code": "okta", "adopt": "username"},
	}, a.Connections.Create)
	connections.List(rest.Op{}, a.Connections.List)
	connections.Get(rest.Op{}, a.Connections.Get)
	connections.Update(rest.Op{
		Doc: "JSON merge patch (RFC 7396). `object_code` cannot change. Users follow a change of `owns` in the " +
			"background. " + mayLet,
		AlsoScopes: letsActOnUsers, Errors: taken, Request: map[string]any{"on_delete": "resign"},
	}, a.Connections.Update)
	connections.Delete(rest.Op{
		Doc: "Its tokens end. Its users and its tree stay as they are, and belong to nobody any more.",
	}, a.Connections.Delete)
	connections.Action("enable", rest.Op{Doc: mayLet, AlsoScopes: letsActOnUsers}, a.Connections.Enable)
	connections.Action("disable", rest.Op{}, a.Connections.Disable)
	a.registerTokens(s)
	rest.Handle(s, rest.Op{
		ID: "list-scim-requests", Method: http.MethodGet, Path: oneConnection + "/log", Scope: auth.ProvisioningRead,
		Summary: "List the requests of a connection",
		Doc: "The latest first, for 30 days. Of successful reads it has 50 a second; the rest is in " +
			"`counters.unlogged`. What requests have changed is in the audit log, by the actor `scim:<id>`.",
	}, func(ctx context.Context, in *connectionPage) (rest.List[journal.Entry], error) {
		page, err := a.Journal.List(ctx, in.ID, in.Paging)
		return rest.ListOf[journal.Entry](in.Paging, page, err)
	})
}

type connectionPage struct {
	rest.ByID
	docstore.Paging
}

func (a *api) registerTokens(s *rest.Server) {
	const all = oneConnection + "/tokens"
	rest.Handle(s, rest.Op{
		ID: "create-scim-token", Method: http.MethodPost, Path: all, Scope: auth.ProvisioningWrite,
		RecentSignIn: rest.FreshAlways, Summary: "Make a token", Errors: []apperr.Kind{apperr.InvalidState},
		AlsoScopes: letsActOnUsers, Doc: "It is shown once. A connection has at most five that are alive. " + mayLet,
		Request: map[string]any{"name": "Okta"},
	}, func(ctx context.Context, in *newTokenInput) (connection.NewScimToken, error) {
		var faults apperr.Faults
		expires := rest.ReadTime(&faults, "time_expires", in.Body.TimeExpires)
		if err := faults.Err(); err != nil {
			return connection.NewScimToken{}, err
		}
		return a.Connections.AddToken(ctx, in.ID, in.Body.Name, expires)
	})
	rest.Handle(s, rest.Op{
		ID: "list-scim-tokens", Method: http.MethodGet, Path: all, Scope: auth.ProvisioningRead,
		Summary: "List tokens",
	}, func(ctx context.Context, in *rest.ByID) ([]connection.ScimToken, error) {
		return a.Connections.Tokens(ctx, in.ID)
	})
	rest.Handle(s, rest.Op{
		ID: "delete-scim-token", Method: http.MethodDelete, Path: all + "/{tid}", Scope: auth.ProvisioningWrite,
		IfMatchParam: "id", Summary: "End a token",
		Doc: "It is refused everywhere within 30 seconds.",
	}, func(ctx context.Context, in *tokenInput) (rest.Deleted, error) {
		return a.Connections.EndToken(ctx, in.ID, in.TokenID)
	})
}

type newTokenInput struct {
	rest.ByID
	Body struct {
		Name        string `json:"name" doc:"1…128 characters" example:"Okta"`
		TimeExpires string `json:"time_expires,omitempty" maxLength:"64" doc:"RFC 3339; absent: it does not end by itself"`
	}
}

type tokenInput struct {
	rest.ByID
	TokenID string `path:"tid" maxLength:"64" doc:"The token's id" example:"7"`
}
