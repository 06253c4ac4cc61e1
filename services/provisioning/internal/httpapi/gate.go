package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/provisioning/internal/gate"
)

func (a *api) registerGate(s *rest.Server) {
	rest.Named[gate.Request](s, "HeldRequest")
	rest.Handle(s, rest.Op{
		ID: "list-held-requests", Method: http.MethodGet, Path: oneConnection + "/held", Scope: auth.ProvisioningRead,
		Summary: "List held requests",
	}, func(ctx context.Context, in *connectionPage) (rest.List[gate.Request], error) {
		page, err := a.Gate.List(ctx, in.ID, in.Paging)
		return rest.ListOf[gate.Request](in.Paging, page, err)
	})
	rest.Handle(s, rest.Op{
		ID: "approve-held-requests", Method: http.MethodPost, Path: oneConnection + "/approve",
		Scope: auth.ProvisioningWrite, AlsoScopes: letsActOnUsers, Summary: "Carry out held requests",
		Timeout: time.Minute,
		Doc: "Those with the `ids`; without a body all. If the resource has changed since, only the removal is " +
			"carried out. A request that the client has taken back since, by making the user active or the group " +
			"anew, is skipped. What takes longer than 20 seconds is carried out in the background. If the " +
			"connection takes a tree that existed before it, the caller also needs `organization:write`; if a " +
			"request gives people scopes of this API, it needs these.",
		Response: gate.GateOutcome{Requests: 12, Done: 11, Skipped: []gate.SkippedRequest{{
			ID: "1048590", Path: "/scim/v2/Users/1048577", Reason: "it was revived since",
		}}},
	}, func(ctx context.Context, in *heldInput) (gate.GateOutcome, error) {
		return a.Gate.Approve(ctx, in.ID, in.ids())
	})
	rest.Handle(s, rest.Op{
		ID: "reject-held-requests", Method: http.MethodPost, Path: oneConnection + "/reject",
		Scope: auth.ProvisioningWrite, Summary: "Drop held requests",
		Doc:      "Those with the `ids`; without a body all.",
		Response: gate.GateOutcome{Requests: 12, Skipped: []gate.SkippedRequest{}},
	}, func(ctx context.Context, in *heldInput) (gate.GateOutcome, error) {
		return a.Gate.Reject(ctx, in.ID, in.ids())
	})
}

// heldInput says which held requests an operation is about.
type heldInput struct {
	rest.ByID
	Body *struct {
		IDs []string `json:"ids,omitempty" minItems:"1" maxItems:"1000" doc:"Of held requests; absent: all" example:"[\"1048590\"]"`
	}
}

func (in *heldInput) ids() []string {
	if in.Body == nil {
		return nil
	}
	return in.Body.IDs
}
