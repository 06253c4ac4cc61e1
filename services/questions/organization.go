package questions

import (
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

// MembershipChange moves a user from one node to another of the same tree, or adds the user where FromNodeID is empty.
// A change is made once for its ID, however often it is asked for, and never once SettleChange has answered that it was
// not made.
type MembershipChange struct {
	ID         string `json:"change_id"`
	UserID     string `json:"user_id"`
	ObjectCode string `json:"object_code"`
	FromNodeID string `json:"from_node_id,omitempty"`
	ToNodeID   string `json:"to_node_id"`
	DryRun     bool   `json:"dry_run,omitempty"` // check and answer as if, change nothing
}

// Memberships are a user's membership records, in all trees.
type Memberships struct {
	Memberships []json.RawMessage `json:"memberships"`
}

// ChangeMembership asks for a change. Faults are located as in the body of the users service's change-organization.
// Without a clear answer the asker asks SettleChange.
var ChangeMembership = bus.Question[MembershipChange, Memberships]{
	Service: "organization", Name: "change-membership",
	Refusals: []apperr.Kind{apperr.InvalidParameters, apperr.AlreadyExists, apperr.InvalidState},
}

// ChangeID names a change.
type ChangeID struct {
	ID string `json:"change_id"`
}

// ChangeOutcome says whether a change was made; if so, Memberships are the user's as they now stand.
type ChangeOutcome struct {
	Applied bool `json:"applied"`
	Memberships
}

// SettleChange asks what became of a change. The answer is final: a change that was not made by then never will be.
// Without an answer the asker tries again later.
var SettleChange = bus.Question[ChangeID, ChangeOutcome]{
	Service: "organization", Name: "settle-change", Refusals: []apperr.Kind{apperr.InvalidParameters},
}
