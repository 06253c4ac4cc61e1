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
	// The scopes that the change may give by rules for ToNodeID and what is above it, because its caller holds them.
	// nil: the asking service is older, and does not say.
	Held *Scopes `json:"held,omitempty"`
}

// Memberships are the membership records of a user in all trees.
type Memberships struct {
	Memberships []json.RawMessage `json:"memberships" doc:"As they are now"`
}

// ChangeMembership asks for a change. Faults are located as in the body of change-organization of the users service.
// Without a clear answer, the asking service asks SettleChange.
var ChangeMembership = bus.Question[MembershipChange, Memberships]{
	Service: "organization", Name: "change-membership",
	Refusals: []apperr.Kind{
		apperr.InvalidParameters, apperr.AlreadyExists, apperr.InvalidState, apperr.ManagedElsewhere, apperr.Forbidden,
	},
}

// MembershipsChange is a MembershipChange of several users: of all or of none.
type MembershipsChange struct {
	ID         string   `json:"change_id"`
	UserIDs    []string `json:"user_ids"`
	ObjectCode string   `json:"object_code"`
	FromNodeID string   `json:"from_node_id,omitempty"`
	ToNodeID   string   `json:"to_node_id"`
	DryRun     bool     `json:"dry_run,omitempty"`
	Held       *Scopes  `json:"held,omitempty"` // as a MembershipChange's
}

// Changed is the answer to a change that was made.
type Changed struct{}

// ChangeMemberships is ChangeMembership for several users. Faults of a user are located at ids[n].
var ChangeMemberships = bus.Question[MembershipsChange, Changed]{
	Service: "organization", Name: "change-memberships",
	Refusals: []apperr.Kind{
		apperr.InvalidParameters, apperr.AlreadyExists, apperr.InvalidState, apperr.ManagedElsewhere, apperr.Forbidden,
	},
}

// ChangeID names a change.
type ChangeID struct {
	ID string `json:"change_id"`
}

// ChangeOutcome says whether a change was made. If so, Memberships are the user's present ones, if it was a change of
// one user's, and the state is the present one of the node, if it was a change of a node or its members.
type ChangeOutcome struct {
	Applied bool `json:"applied"`
	Memberships
	NodeState
}

// SettleChange asks whether a change was made. The answer is final: a change that has not been made by then is never
// made. Without an answer, the asking service tries again later.
var SettleChange = bus.Question[ChangeID, ChangeOutcome]{
	Service: "organization", Name: "settle-change", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// NextOrganizationTenant asks which tenant follows a tenant among those that have core objects. It is asked for the
// platform, not for a tenant. Without an answer, the asking service tries again later.
var NextOrganizationTenant = bus.Question[TenantName, TenantName]{Service: "organization", Name: "next-tenant"}

// CoreObject is what other services need to know of a core object.
type CoreObject struct {
	ID   string `json:"id"`
	Code string `json:"code"`
	Name string `json:"name"`
	// of the first event with this state: events with a lower sequence are outdated
	Sequence int64 `json:"sequence"`
}

// CoreObjects are a page of core objects; Next is empty on the last.
type CoreObjects struct {
	CoreObjects []CoreObject `json:"core_objects"`
	Next        string       `json:"next"`
}

// CoreObjectRecords asks for a page of a tenant's core objects. Without an answer, the asking service tries again
// later.
var CoreObjectRecords = bus.Question[RecordsPage, CoreObjects]{
	Service: "organization", Name: "core-object-records", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// Node is what other services need to know of a tree node. The ParentID of a root is empty.
type Node struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	ParentID   string `json:"parent_id"`
	ObjectCode string `json:"object_code"`
	Sequence   int64  `json:"sequence"` // as a CoreObject's
	Code       string `json:"code,omitempty"`
	Status     string `json:"status,omitempty"`
	IsPointer  string `json:"is_pointer,omitempty"`
	PointerID  string `json:"pointer_id,omitempty"`
	IsDynamic  string `json:"is_dynamic,omitempty"`
	Version    int64  `json:"version,omitempty"`
	// RFC 3339
	TimeCreated string `json:"time_created,omitempty"`
}

// Nodes are a page of tree nodes; Next is empty on the last.
type Nodes struct {
	Nodes []Node `json:"nodes"`
	Next  string `json:"next"`
}

// NodeRecords asks for a page of a tenant's tree nodes. Without an answer, the asking service tries again later.
var NodeRecords = bus.Question[RecordsPage, Nodes]{
	Service: "organization", Name: "node-records", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// Membership is what other services need to know of a membership.
type Membership struct {
	ID       string `json:"id"`
	NodeID   string `json:"node_id" doc:"The node"`
	UserID   string `json:"user_id" doc:"The user"`
	Sequence int64  `json:"sequence"` // as a CoreObject's
}

// MembershipPage is a page of memberships; Next is empty on the last.
type MembershipPage struct {
	Memberships []Membership `json:"memberships"`
	Next        string       `json:"next"`
}

// GroupsQuestion names a user.
type GroupsQuestion struct {
	UserID string `json:"user_id"`
}

// Groups are the groups of a user as other companies' software knows them: the nodes that the user is a member of and
// all nodes above them, each as <object code>/<node code>, in the order of texts.
type Groups struct {
	Groups []string `json:"groups"`
}

// GroupsOfUser asks for the groups of a user; there are none of an unknown one. Without an answer, the asking service
// says so: an application would take none for true.
var GroupsOfUser = bus.Question[GroupsQuestion, Groups]{Service: "organization", Name: "groups-of-user"}

// MembershipPlaces asks where the tenant's memberships divide, as UserPlaces does.
var MembershipPlaces = bus.Question[PartsOf, Places]{
	Service: "organization", Name: "membership-places", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// MembershipsPage asks for a page of memberships. AfterID stands for After on the first page of a part.
type MembershipsPage struct {
	RecordsPage
	AfterID string `json:"after_id,omitempty"`
}

// MembershipRecords asks for a page of a tenant's memberships. Without an answer, the asking service tries again later.
var MembershipRecords = bus.Question[MembershipsPage, MembershipPage]{
	Service: "organization", Name: "membership-records", Refusals: []apperr.Kind{apperr.InvalidParameters},
}
