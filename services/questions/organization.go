package questions

import (
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

// MembershipChange moves a user from one node to another of the same tree, or adds the user if FromNodeID is empty.
// However often it is asked for, a change is made at most once for its ID, and not at all after SettleChange has
// answered that it was not made.
type MembershipChange struct {
	ID         string `json:"change_id"`
	UserID     string `json:"user_id"`
	ObjectCode string `json:"object_code"`
	FromNodeID string `json:"from_node_id,omitempty"`
	ToNodeID   string `json:"to_node_id"`
	DryRun     bool   `json:"dry_run,omitempty"` // check and answer as usual, but change nothing
}

// Memberships are the membership records of a user in all trees.
type Memberships struct {
	Memberships []json.RawMessage `json:"memberships"`
}

// ChangeMembership asks for a change. Faults are located as in the body of change-organization of the users service.
// Without a clear answer, the asking service asks SettleChange.
var ChangeMembership = bus.Question[MembershipChange, Memberships]{
	Service: "organization", Name: "change-membership",
	Refusals: []apperr.Kind{apperr.InvalidParameters, apperr.AlreadyExists, apperr.InvalidState},
}

// ChangeID names a change.
type ChangeID struct {
	ID string `json:"change_id"`
}

// ChangeOutcome says whether a change was made. If so, Memberships are the user's present ones.
type ChangeOutcome struct {
	Applied bool `json:"applied"`
	Memberships
}

// SettleChange asks whether a change was made. The answer is final: a change that has not been made by then is never
// made. Without an answer, the asking service tries again later.
var SettleChange = bus.Question[ChangeID, ChangeOutcome]{
	Service: "organization", Name: "settle-change", Refusals: []apperr.Kind{apperr.InvalidParameters},
}
