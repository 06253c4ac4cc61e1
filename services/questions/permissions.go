package questions

import (
	"context"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
)

// GrantedNode is a tree node. The root of a tree stands for the whole tree.
type GrantedNode struct {
	ObjectCode string `json:"object_code"`
	NodeID     string `json:"node_id"`
}

// GrantsOfNode asks how many grants a node has. Without an answer, the node is not deleted.
var GrantsOfNode = bus.Question[GrantedNode, Count]{Service: "permissions", Name: "grants-of-node"}

// ApplicationID names an application.
type ApplicationID struct {
	ID string `json:"id"`
}

// GrantsOfApplication asks how many rules of other applications grant an application's global resources or resource
// sets. Without an answer, the application is not deleted.
var GrantsOfApplication = bus.Question[ApplicationID, Count]{Service: "permissions", Name: "grants-of-application"}

// Use is a user at the door of an application.
type Use struct {
	UserID string `json:"user_id"`
	AppID  string `json:"app_id"`
}

// MayUseAnswer says whether the user may enter, and the rule that decides; RuleID is empty if there is none. Reason is
// that of the check operation.
type MayUseAnswer struct {
	Allowed bool   `json:"allowed"`
	RuleID  string `json:"rule_id,omitempty"`
	Reason  string `json:"reason"`
}

// MayUse asks whether a user may use an application. Without an answer, the user may not enter for now.
var MayUse = bus.Question[Use, MayUseAnswer]{Service: "permissions", Name: "may-use"}

// UsableQuestion names applications that a user may want to use, at most MaxUsable.
type UsableQuestion struct {
	UserID string   `json:"user_id"`
	AppIDs []string `json:"app_ids"`
}

// MaxUsable is how many applications one question names.
const MaxUsable = 2000

// ApplicationIDs name applications.
type ApplicationIDs struct {
	IDs []string `json:"ids"`
}

// Usable asks which of the applications a user may use, by the decision of MayUse. Without an answer, the user is not
// shown any.
var Usable = bus.Question[UsableQuestion, ApplicationIDs]{
	Service: "permissions", Name: "usable", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// ScopesQuestion names scopes of the platform's API that a user may have in an application, at most MaxScopes.
type ScopesQuestion struct {
	UserID string   `json:"user_id"`
	AppID  string   `json:"app_id"`
	Scopes []string `json:"scopes"`
}

// MaxScopes is more than there are scopes.
const MaxScopes = 100

// Scopes are scopes of the platform's API.
type Scopes struct {
	Scopes []string `json:"scopes"`
}

// ScopesIn makes the answer with the scopes of a set.
func ScopesIn(set auth.Scopes) Scopes {
	names := Scopes{Scopes: []string{}}
	for _, scope := range set.List() {
		names.Scopes = append(names.Scopes, string(scope))
	}
	return names
}

// Set is the set of the scopes.
func (s Scopes) Set() auth.Scopes {
	set, _ := auth.ParseScopes(strings.Join(s.Scopes, " "))
	return set
}

// HeldScopes asks which of the scopes a user has: those whose resource, of type api and with the scope as its code, has
// an action that rules allow the user. Without an answer, the user gets no token for the platform's API.
var HeldScopes = bus.Question[ScopesQuestion, Scopes]{
	Service: "permissions", Name: "held-scopes", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// HolderOfScopes names a user.
type HolderOfScopes struct {
	UserID string `json:"user_id"`
}

// ScopesOfUser asks which scopes of the platform's API rules give a user, in whichever application. Rules for everyone
// do not count. Those that have not ended count, whatever their conditions say and others deny: whoever takes over the
// user's account may have these scopes one day. Without an answer, nobody takes it over.
var ScopesOfUser = bus.Question[HolderOfScopes, Scopes]{Service: "permissions", Name: "scopes-of-user"}

// NodeIDs name tree nodes, at most MaxScopeNodes.
type NodeIDs struct {
	IDs []string `json:"node_ids"`
}

// MaxScopeNodes is how many nodes one question names.
const MaxScopeNodes = 1000

// ScopesOfMembers are scopes of the platform's API. Unknown are the nodes that the answering service has not heard of
// yet, so that the answer lacks what is given to nodes above them.
type ScopesOfMembers struct {
	Scopes
	Unknown []string `json:"unknown"`
}

// ScopesOfNodes asks which scopes of the platform's API rules give the members of nodes: rules for these nodes, for
// those above and for their trees. Rules count as in ScopesOfUser. Without an answer, nobody becomes a member.
var ScopesOfNodes = bus.Question[NodeIDs, ScopesOfMembers]{
	Service: "permissions", Name: "scopes-of-nodes", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// maxNodeID is the length of an id that is asked about. A longer one is no node's.
const maxNodeID = 64

// ScopesGiven asks ScopesOfNodes about any number of nodes. Of those that the permissions service has not heard of, it
// asks about the nodes that above returns: these and all above them.
func ScopesGiven(
	ctx context.Context, b *bus.Bus, ids []string,
	above func(ctx context.Context, ids []string) ([]string, error),
) (auth.Scopes, error) {
	given, unknown, err := scopesGiven(ctx, b, ids)
	if err != nil || len(unknown) == 0 {
		return given, err
	}
	if ids, err = above(ctx, unknown); err != nil {
		return 0, err
	}
	more, _, err := scopesGiven(ctx, b, ids)
	return given | more, err
}

func scopesGiven(ctx context.Context, b *bus.Bus, ids []string) (given auth.Scopes, unknown []string, err error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" || len(id) > maxNodeID })
	for some := range slices.Chunk(ids, MaxScopeNodes) {
		answer, err := ScopesOfNodes.Ask(ctx, b, NodeIDs{IDs: some})
		if err != nil {
			return 0, nil, err
		}
		given |= answer.Set()
		unknown = append(unknown, answer.Unknown...)
	}
	return given, unknown, nil
}
