package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/provisioning/internal/gate"
)

func (a *api) registerGate(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-held-requests", Method: http.MethodGet, Path: oneConnection + "/held", Scope: auth.ProvisioningRead,
		Summary:  "List held requests",
		Response: map[string]any{"items": []any{exampleHeld}, "total": 1, "page_num": 1, "page_size": 20},
	}, func(ctx context.Context, in *connectionPage) (rest.List[HeldRequest], error) {
		page, err := a.Gate.List(ctx, in.ID, in.Paging)
		return rest.ListOf[HeldRequest](in.Paging, page, err)
	})
	rest.Handle(s, rest.Op{
		ID: "approve-held-requests", Method: http.MethodPost, Path: oneConnection + "/approve",
		Scope: auth.ProvisioningWrite, Summary: "Carry out held requests", Timeout: time.Minute,
		Doc: "All of them. One whose resource has changed since is skipped. What takes longer than 20 seconds is " +
			"carried out in the background.",
		Response: gate.GateOutcome{Requests: 12, Done: 11, Skipped: []gate.SkippedRequest{{
			ID: "1048590", Path: "/scim/v2/Users/1048577", Reason: "the resource has changed since",
		}}},
	}, func(ctx context.Context, in *rest.ByID) (gate.GateOutcome, error) { return a.Gate.Approve(ctx, in.ID) })
	rest.Handle(s, rest.Op{
		ID: "reject-held-requests", Method: http.MethodPost, Path: oneConnection + "/reject",
		Scope: auth.ProvisioningWrite, Summary: "Drop held requests",
		Response: gate.GateOutcome{Requests: 12, Skipped: []gate.SkippedRequest{}},
	}, func(ctx context.Context, in *rest.ByID) (gate.GateOutcome, error) { return a.Gate.Reject(ctx, in.ID) })
}

// HeldRequest describes gate.Request.
type HeldRequest struct {
	rest.Meta
	ConnectionID string     `json:"connection_id" doc:"Whose request it is"`
	Type         string     `json:"type" enum:"User,Group" doc:"Of the resource"`
	ResourceID   string     `json:"resource_id" doc:"The user or node" example:"1048577"`
	Display      string     `json:"display" doc:"Its name" example:"li.wei"`
	Method       string     `json:"method" doc:"Of the request" example:"PATCH"`
	Path         string     `json:"path" doc:"Of the request" example:"/scim/v2/Users/1048577"`
	Body         string     `json:"body" doc:"As sent, without passwords"`
	Tag          string     `json:"resource_version" doc:"The resource's entity tag then"`
	Reason       string     `json:"reason" doc:"Why it is held"`
	Approved     bool       `json:"approved" doc:"It is being carried out"`
	TimeDue      *time.Time `json:"time_due" nullable:"true" doc:"Since when it is to be carried out"`
}

var exampleHeld = json.RawMessage(`{"id":"1048590","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","connection_id":"1048577",` +
	`"type":"User","resource_id":"1048577","display":"li.wei","method":"DELETE","path":"/scim/v2/Users/1048577",` +
	`"body":"","resource_version":"W/\"1\"","reason":"too many users are disabled or deleted","approved":false,"time_due":null}`)
