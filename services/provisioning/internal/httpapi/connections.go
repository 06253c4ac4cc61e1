package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
)

const (
	allConnections = "/v1/provisioning/connections"
	oneConnection  = allConnections + "/{id}"
)

func (a *api) registerConnections(s *rest.Server) {
	taken := []apperr.Kind{apperr.AlreadyExists}
	rest.Handle(s, rest.Op{
		ID: "create-scim-connection", Method: http.MethodPost, Path: allConnections, Scope: auth.ProvisioningWrite,
		Summary: "Create a connection",
		Doc: "The tree `object_code` is made with it unless it exists; without one the connection has no groups. A " +
			"`client_id` and a tree belong to one connection.",
		Errors: taken, Request: exampleInput, Response: exampleConnection,
	}, rest.Create[ScimConnection, ScimConnectionInput](a.Connections.Create))
	rest.Handle(s, rest.Op{
		ID: "list-scim-connections", Method: http.MethodGet, Path: allConnections, Scope: auth.ProvisioningRead,
		Summary:  "List connections",
		Response: map[string]any{"items": []any{exampleConnection}, "total": 1, "page_num": 1, "page_size": 20},
	}, func(ctx context.Context, in *struct{ docstore.Paging }) (rest.List[ScimConnection], error) {
		page, err := a.Connections.List(ctx, in.Paging)
		return rest.ListOf[ScimConnection](in.Paging, page, err)
	})
	rest.Handle(s, rest.Op{
		ID: "get-scim-connection", Method: http.MethodGet, Path: oneConnection, Scope: auth.ProvisioningRead,
		Summary: "Get a connection", Response: exampleConnection,
	}, rest.One[ScimConnection](a.Connections.Get))
	rest.Handle(s, rest.Op{
		ID: "update-scim-connection", Method: http.MethodPatch, Path: oneConnection, Scope: auth.ProvisioningWrite,
		Summary: "Change a connection", Errors: taken,
		Doc: "JSON merge patch (RFC 7396). `object_code` cannot change. Users follow a change of `owns` in the " +
			"background.",
		Request: map[string]any{"on_delete": "resign"}, Response: exampleConnection,
	}, rest.Update[ScimConnection, ScimConnectionInput](a.Connections.Update))
	rest.Handle(s, rest.Op{
		ID: "delete-scim-connection", Method: http.MethodDelete, Path: oneConnection, Scope: auth.ProvisioningWrite,
		Summary: "Delete a connection", Response: rest.Deleted{ID: "1048577"},
		Doc: "Its tokens end. Its users and its tree stay as they are, and belong to nobody any more.",
	}, rest.Delete(a.Connections.Delete))
	for status, action := range map[string]string{"1": "enable", "0": "disable"} {
		summary := map[string]string{"1": "Enable a connection", "0": "Disable a connection"}[status]
		rest.Handle(s, rest.Op{
			ID: action + "-scim-connection", Method: http.MethodPost, Path: oneConnection + "/" + action,
			Scope: auth.ProvisioningWrite, Summary: summary, Response: exampleConnection,
		}, rest.One[ScimConnection](func(ctx context.Context, id string) (connection.Doc, error) {
			return a.Connections.SetStatus(ctx, id, status)
		}))
	}
	a.registerTokens(s)
	rest.Handle(s, rest.Op{
		ID: "list-scim-requests", Method: http.MethodGet, Path: oneConnection + "/log", Scope: auth.ProvisioningRead,
		Summary: "List the requests of a connection",
		Doc: "The latest first, for 30 days. Of successful reads it has 50 a second; the rest is in " +
			"`counters.unlogged`. What requests have changed is in the audit log, by the actor `scim:<id>`.",
		Response: map[string]any{"items": []any{exampleEntry}, "total": 1, "page_num": 1, "page_size": 20},
	}, func(ctx context.Context, in *connectionPage) (rest.List[ScimRequest], error) {
		page, err := a.Journal.List(ctx, in.ID, in.Paging)
		return rest.ListOf[ScimRequest](in.Paging, page, err)
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
		Fresh: rest.FreshAlways, Summary: "Make a token", Errors: []apperr.Kind{apperr.InvalidState},
		Doc:      "It is shown once. A connection has at most five that are alive.",
		Request:  map[string]any{"name": "Okta"},
		Response: exampleNewToken,
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
		Summary: "List tokens", Response: exampleTokens,
	}, func(ctx context.Context, in *rest.ByID) ([]connection.ScimToken, error) {
		return a.Connections.Tokens(ctx, in.ID)
	})
	rest.Handle(s, rest.Op{
		ID: "delete-scim-token", Method: http.MethodDelete, Path: all + "/{tid}", Scope: auth.ProvisioningWrite,
		Record: "id", Summary: "End a token", Response: rest.Deleted{ID: "7"},
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

// ScimConnection describes connection.Connection for the OpenAPI document.
type ScimConnection struct {
	rest.Meta
	Name            string                     `json:"name" doc:"1…128 characters" example:"Okta"`
	ClientID        string                     `json:"client_id" doc:"The OAuth client whose tokens with the scope scim serve, too; empty: none" example:""`
	ObjectCode      string                     `json:"object_code" doc:"The core object whose nodes are the groups; empty: there are no groups; cannot change" example:"okta"`
	Adopt           string                     `json:"adopt" enum:"never,username,email" doc:"Whether a POST takes over a user that is there, by its username or its verified email"`
	OnDelete        string                     `json:"on_delete" enum:"disable,resign,delete" doc:"What a DELETE of a user does"`
	AcceptPassword  string                     `json:"accept_password" enum:"1,0" doc:"1: the attribute password is set; 0: it is ignored"`
	Owns            []string                   `json:"owns" doc:"The members of users that only the client changes, and groups for its tree; absent: all that SCIM maps"`
	LoginLink       rest.OrNull[ScimLoginLink] `json:"login_link" doc:"How users of the connection sign in: their stored credential is made with them"`
	Extensions      []string                   `json:"extensions" doc:"URNs of extensions whose attributes are kept as sent"`
	Gate            ScimGate                   `json:"gate" doc:"From how many removals on they are held"`
	Status          string                     `json:"status" readOnly:"true" enum:"1,0" doc:"Changed by enable and disable" example:"1"`
	State           string                     `json:"state" readOnly:"true" enum:"active,held" doc:"held: requests wait for approval"`
	Copying         bool                       `json:"copying" readOnly:"true" doc:"The groups that the tree had before are being read"`
	Counters        ScimCounters               `json:"counters" readOnly:"true" doc:"Since the connection was created"`
	TimeLastRequest *time.Time                 `json:"time_last_request" readOnly:"true" nullable:"true" doc:"null: never"`
	RootNodeID      string                     `json:"root_node_id" readOnly:"true" doc:"The root of the tree" example:"1048578"`
	ProviderCode    string                     `json:"provider_code" readOnly:"true" doc:"The provider of login_link"`
}

// ScimLoginLink is how users of a connection sign in.
type ScimLoginLink struct {
	IDPConfigID int64  `json:"idp_config_id" doc:"A connection of the identity-sources service, as a number" example:"31"`
	ID1         string `json:"id1" enum:"externalId,userName" doc:"What the provider knows them by"`
}

// ScimGate says when removals are held.
type ScimGate struct {
	Percent int `json:"percent" doc:"Of the active users" example:"10"`
	Min     int `json:"min" doc:"So many always pass" example:"10"`
	Hours   int `json:"hours" doc:"The time in which they count" example:"24"`
}

// ScimCounters count requests.
type ScimCounters struct {
	Requests int64 `json:"requests" doc:"All"`
	Refused  int64 `json:"refused" doc:"Those that were answered with an error"`
	Created  int64 `json:"created" doc:"Resources"`
	Updated  int64 `json:"updated" doc:"Resources"`
	Removed  int64 `json:"removed" doc:"Resources"`
	Unlogged int64 `json:"unlogged" doc:"Requests that the log does not have"`
}

// ScimConnectionInput is a connection to create, or the members of one to change.
type ScimConnectionInput struct {
	rest.MembersOf[ScimConnection]
	Name string `json:"name"`
}

// ScimRequest describes journal.Entry.
type ScimRequest struct {
	rest.Meta
	ConnectionID string    `json:"connection_id" doc:"Whose request it was"`
	Time         time.Time `json:"time" doc:"When it was answered"`
	Method       string    `json:"method" doc:"Of the request" example:"PATCH"`
	Path         string    `json:"path" doc:"With its query" example:"/scim/v2/Users/1048577"`
	Status       int64     `json:"status" doc:"The HTTP status of the answer" example:"200"`
	SCIMType     string    `json:"scim_type" doc:"Of an error"`
	Detail       string    `json:"detail" doc:"Of an error"`
	Ignored      []string  `json:"ignored" doc:"Members of the body that changed nothing"`
	RequestID    string    `json:"request_id" doc:"X-Request-Id"`
}

var exampleInput = map[string]any{"name": "Okta", "object_code": "okta", "adopt": "username"}

var exampleConnection = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","name":"Okta","client_id":"",` +
	`"object_code":"okta","adopt":"username","on_delete":"disable","accept_password":"0",` +
	`"owns":["username","display_name","email","mobile","status","locale","zoneinfo","employee_number",` +
	`"sys_ext_props.scim","groups"],"login_link":null,"extensions":[],"gate":{"percent":10,"min":10,"hours":24},` +
	`"status":"1","state":"active","copying":false,"counters":{"requests":0,"refused":0,"created":0,"updated":0,` +
	`"removed":0,"unlogged":0},"time_last_request":null,"root_node_id":"1048578","provider_code":""}`)

var exampleEntry = json.RawMessage(`{"id":"1048600","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:01.000Z","time_modified":"2026-01-31T09:30:01.000Z","connection_id":"1048577",` +
	`"time":"2026-01-31T09:30:00.000Z","method":"PATCH","path":"/scim/v2/Users/1048577","status":200,"scim_type":"",` +
	`"detail":"","ignored":["urn:acme:badge"],"request_id":"4mrhvkqtwz5c2d7ba3gxyun6ep"}`)

const exampleToken = `"id":"7","name":"Okta","time_created":"2026-01-31T09:30:00.000Z",` +
	`"time_expires":null,"time_last_used":null`

var (
	exampleNewToken = json.RawMessage(`{` + exampleToken + `,"token":"scim_…"}`)
	exampleTokens   = json.RawMessage(`[{` + exampleToken + `}]`)
)
