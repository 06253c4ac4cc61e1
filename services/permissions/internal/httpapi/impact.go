package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

func (a *api) registerImpact(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "assess-auth-impact", Method: http.MethodPost, Path: "/v1/auth-impact", Scope: auth.PermissionsRead,
		Summary: "Find out who would gain and who would lose access by changes",
		Doc: "The changes (rules for identities, rules to revoke, moves of nodes within their trees, one after the " +
			"other, nodes to disable or enable) are not made: the answer compares what checks answer now with what " +
			"they would answer. Each item is a decision that changes: an identity, an object and an action, in the " +
			"order of identities, then " +
			"applications, types, codes and actions. Nothing is listed where a deny, or another rule that allows the " +
			"same, keeps the decision as it is.\n\n" +
			"Decisions are those of checks without a `context`. If a condition needs one, a rule that allows is " +
			"left out, and a rule that denies counts. Stored properties and the present time are taken into " +
			"account. " +
			"An item is `conditional` if a rule with a condition takes part in the decision before or after; " +
			"`undecided` counts the further decisions that the changes can alter only with a context.\n\n" +
			"`items` are the first `limit` of them, `more` says whether there are others; the numbers count all. At " +
			"most 200,000 identities of each type, 100,000 pairs of object and action for each, and 1,000,000 " +
			"decisions are compared. `complete` is false if something is left out: beyond that, or because an " +
			"identity belongs to more than 10,000 nodes and groups; the numbers are then lower bounds.\n\n" +
			"What only the organization service knows (how deep and large a tree is, pointers) is not checked here: " +
			"the move itself with `dry_run=true` tells.",
		Errors: []apperr.Kind{apperr.InvalidState, apperr.Unavailable}, NoReplay: true,
		Request: map[string]any{
			"grant": []any{map[string]any{
				"identity": map[string]any{"identity_id": "1048579", "identity_type": "node"},
				"rule": map[string]any{"application_id": "2001", "type": "data", "code": "orders",
					"actions": []string{"read"}},
			}},
			"revoke":   []string{"1048600"},
			"moves":    []any{map[string]any{"node_id": "1048580", "parent_id": "1048579"}},
			"statuses": []any{map[string]any{"node_id": "1048581", "status": "0"}},
		},
		Response: map[string]any{
			"gained": 1, "lost": 0, "identities_gaining": 1, "identities_losing": 0,
			"by_type": map[string]any{
				"user":        map[string]any{"gaining": 1, "losing": 0},
				"application": map[string]any{"gaining": 0, "losing": 0},
			},
			"undecided": 0, "complete": true,
			"more": false, "items": []any{map[string]any{
				"identity_id": "1048601", "identity_type": "user", "identity_name": "li.wei", "application_id": "2001",
				"object_type": "data", "object_code": "orders", "action": "read", "change": "gained",
				"conditional": false,
			}},
		},
	}, a.impact)
}

// AccessChanges are changes that are not made.
type AccessChanges struct {
	IdentityTypes []string         `json:"identity_types,omitempty" minItems:"1" maxItems:"6" enum:"user,node,core_object,application,group,everyone" doc:"The identities whose decisions are compared; absent: user and application"`
	Grant         []ProposedRule   `json:"grant,omitempty" maxItems:"5000" doc:"Rules that would be added"`
	Revoke        []string         `json:"revoke,omitempty" maxItems:"5000" doc:"Ids of rules"`
	Moves         []ProposedMove   `json:"moves,omitempty" maxItems:"1000" doc:"Nodes that would be moved"`
	Statuses      []ProposedStatus `json:"statuses,omitempty" maxItems:"1000" doc:"Nodes that would be disabled or enabled; those below them keep their own status"`
}

// ProposedRule is a rule for an identity.
type ProposedRule struct {
	Identity Identity      `json:"identity" doc:"Who would have it"`
	Rule     AuthRuleInput `json:"rule" doc:"The rule"`
}

// ProposedMove is a node with a new parent.
type ProposedMove struct {
	NodeID   string `json:"node_id" maxLength:"64" doc:"The node" example:"1048580"`
	ParentID string `json:"parent_id" maxLength:"64" doc:"A node of the same tree" example:"1048579"`
}

// ProposedStatus is a node that is disabled or enabled.
type ProposedStatus struct {
	NodeID string `json:"node_id" maxLength:"64" doc:"The node" example:"1048581"`
	Status string `json:"status" enum:"1,0" doc:"0: it grants nothing, nor does what is below it" example:"0"`
}

// AccessImpact is what changes that are not made would change.
type AccessImpact struct {
	Gained            int                          `json:"gained" doc:"Decisions that would be allowed" example:"1"`
	Lost              int                          `json:"lost" doc:"Decisions that would not be allowed any more" example:"0"`
	IdentitiesGaining int                          `json:"identities_gaining" doc:"Identities that gain something" example:"1"`
	IdentitiesLosing  int                          `json:"identities_losing" doc:"Identities that lose something" example:"0"`
	ByType            map[string]IdentitiesReached `json:"by_type" doc:"The same for each of identity_types"`
	Undecided         int                          `json:"undecided" doc:"Further decisions that the changes can alter only with a context" example:"0"`
	Complete          bool                         `json:"complete" doc:"false: something is left out, and the numbers are lower bounds"`
	More              bool                         `json:"more" doc:"true: more decisions change than are listed"`
	Items             []ChangedDecision            `json:"items" doc:"One for each decision that changes"`
}

// IdentitiesReached are the identities of a type that gain or lose something.
type IdentitiesReached struct {
	Gaining int `json:"gaining" doc:"Identities that gain something" example:"1"`
	Losing  int `json:"losing" doc:"Identities that lose something" example:"0"`
}

// ChangedDecision is a decision that changes would change.
type ChangedDecision struct {
	IdentityID    string `json:"identity_id" doc:"Who" example:"1048601"`
	IdentityType  string `json:"identity_type" enum:"user,node,core_object,application,group,everyone" doc:"What identity_id is the id of"`
	IdentityName  string `json:"identity_name" doc:"How it is shown" example:"li.wei"`
	ApplicationID string `json:"application_id" doc:"The application" example:"2001"`
	ObjectType    string `json:"object_type" enum:"data,api,ui,app" doc:"What the object is"`
	ObjectCode    string `json:"object_code" doc:"Empty for an application" example:"orders"`
	Action        string `json:"action" doc:"Empty for an application" example:"read"`
	Change        string `json:"change" enum:"gained,lost" doc:"gained or lost"`
	Conditional   bool   `json:"conditional" doc:"true: a rule with a condition takes part in the decision before or after"`
}

type impactInput struct {
	Limit int `query:"limit" minimum:"0" maximum:"1000" default:"100" doc:"The number of items"`
	Consistency
	Body rest.JSON[AccessChanges]
}

func (a *api) impact(ctx context.Context, in *impactInput) (AccessImpact, error) {
	var body struct {
		IdentityTypes []string `json:"identity_types"`
		grant.Supposed
	}
	if err := in.Body.Into(&body); err != nil {
		return AccessImpact{}, err
	}
	if body.IdentityTypes == nil {
		body.IdentityTypes = []string{engine.User, engine.Application}
	}
	state, err := a.state(ctx, in.Token)
	if err != nil {
		return AccessImpact{}, err
	}
	hypothesis, err := a.grants.Suppose(ctx, state, body.Supposed)
	if err != nil {
		return AccessImpact{}, err
	}
	work, done := a.work(ctx)
	defer done()
	found, err := hypothesis.Impact(ctx, engine.ImpactQuestion{
		Types: body.IdentityTypes, Limit: in.Limit, Now: a.clock.Now().Millis(), Work: work,
	})
	return impactOf(found), err
}

func impactOf(found engine.Impact) AccessImpact {
	i := AccessImpact{
		Gained: found.Gained, Lost: found.Lost, IdentitiesGaining: found.Gaining, IdentitiesLosing: found.Losing,
		Undecided: found.Open, Complete: found.Complete, More: found.Gained+found.Lost > len(found.Items),
		Items: make([]ChangedDecision, len(found.Items)), ByType: map[string]IdentitiesReached{},
	}
	for kind, reached := range found.ByType {
		i.ByType[kind] = IdentitiesReached(reached)
	}
	for n, item := range found.Items {
		one := ChangedDecision{
			IdentityID: item.ID, IdentityType: item.Type, IdentityName: item.Name, ApplicationID: item.ApplicationID,
			ObjectType: engine.App, Action: item.Action, Change: "lost", Conditional: item.Conditional,
		}
		if item.Resource != nil {
			one.ObjectType, one.ObjectCode = item.Resource.Type, item.Resource.Code
		}
		if item.Gained {
			one.Change = "gained"
		}
		i.Items[n] = one
	}
	return i
}
