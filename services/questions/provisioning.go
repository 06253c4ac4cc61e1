package questions

import (
	"encoding/json"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

// ManagedBy names the provisioning connection that a record belongs to, and the members that only its client changes.
type ManagedBy struct {
	ConnectionID string   `json:"connection_id" doc:"The provisioning connection" example:"1048577"`
	Members      []string `json:"members" doc:"What only its client changes" example:"[\"username\",\"status\"]"`
}

// Frees reports whether m, in a change, ends the ownership of its connection.
func (m *ManagedBy) Frees() bool { return m != nil && len(m.Members) == 0 }

// The members that a connection can own, which are not members of a user record: what is kept of attributes that users
// do not have, the names of a tree's nodes, and their members.
const (
	OwnedProps   = "sys_ext_props.scim"
	OwnedNames   = "name"
	OwnedMembers = "members"
)

// UserName names a user by one of its members.
type UserName struct {
	ID       string `json:"id,omitempty"`
	Username string `json:"username,omitempty"`
	Email    string `json:"email,omitempty"`
}

// UserState is a user's record in the form that events carry; empty if there is no such user. Events about the user
// with a sequence up to Sequence were before the answer.
type UserState struct {
	User     json.RawMessage `json:"user,omitempty"`
	Sequence int64           `json:"sequence,omitempty"`
}

// FindUser asks for the user with an id, username or email. Without an answer, nothing is changed.
var FindUser = bus.Question[UserName, UserState]{
	Service: "users", Name: "find", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// The actions of a UserChange. ReinstateUser also applies the profile.
const (
	CreateUser    = "create"
	UpdateUser    = "update"
	ResignUser    = "resign"
	ReinstateUser = "reinstate"
	DeleteUser    = "delete"
)

// UserChange is a change of one user. However often it is asked for, it is made at most once for its ID, and not at all
// after SettleUserChange has answered that it was not made.
type UserChange struct {
	ID     string `json:"change_id"`
	UserID string `json:"user_id,omitempty"` // of all actions but CreateUser
	// the version that the record must have; 0: any
	Version int64  `json:"version,omitempty"`
	Action  string `json:"action"`
	// The members to set, null for their zero values. Of sys_ext_props it has only the members to set or, with null, to
	// remove; the others stay.
	Profile json.RawMessage `json:"profile,omitempty"`
	// sealed with TransitKeyOfUsers for ToProvision and the username of Profile
	Password   string          `json:"password,omitempty"`
	Credential *UserCredential `json:"credential,omitempty"`
	ManagedBy  *ManagedBy      `json:"managed_by,omitempty"` // without members: the connection owns none any more
	DryRun     bool            `json:"dry_run,omitempty"`
	// Unique refuses an email or mobile of another user, whatever the tenant's settings of users allow.
	Unique bool `json:"unique,omitempty"`
	// NodeID is the tree node of which a user that CreateUser makes becomes a member, soon after (see NodeOfUser).
	NodeID string `json:"node_id,omitempty"`
}

// NodeOfUser is the member of the data of user.created that has the NodeID of a UserChange.
const NodeOfUser = "node_id"

// ToProvision is the use for which a password in a UserChange is sealed; see PasswordFor.
const ToProvision = "users.change"

// UserCredential is how a user signs in at a connection of the identity-sources service.
type UserCredential struct {
	ProviderCode string `json:"provider_code"`
	IDPConfigID  int64  `json:"idp_config_id"`
	ID1          string `json:"id1"`
}

// ChangeUser asks for a change. Faults are located at members of the profile. ManagedElsewhere says that another
// connection owns the user. Without a clear answer, the asking service asks SettleUserChange.
var ChangeUser = bus.Question[UserChange, UserState]{
	Service: "users", Name: "change", Patience: 5 * time.Second,
	Refusals: []apperr.Kind{
		apperr.InvalidParameters, apperr.AlreadyExists, apperr.InvalidState, apperr.NotFound, apperr.VersionMismatch,
		apperr.ManagedElsewhere,
	},
}

// UserOutcome says whether a change was made. If so, the state is the user's present one.
type UserOutcome struct {
	Applied bool `json:"applied"`
	UserState
}

// SettleUserChange asks whether a change was made, as SettleChange does.
var SettleUserChange = bus.Question[ChangeID, UserOutcome]{
	Service: "users", Name: "settle-change", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// NewTree makes a core object unless there is one of this code, and gives it an owner. A ManagedBy without members ends
// the ownership of its connection. Without a Name no core object is made.
type NewTree struct {
	ID        string    `json:"change_id"`
	Code      string    `json:"code"`
	Name      string    `json:"name"`
	ManagedBy ManagedBy `json:"managed_by"`
	DryRun    bool      `json:"dry_run,omitempty"`
	// The root of the tree, if it is about one that was there before: none is made then, and another tree that has the
	// code by now stays as it is.
	RootNodeID string `json:"root_node_id,omitempty"`
}

// Tree is a core object, and whether the change has made it.
type Tree struct {
	ID         string `json:"id"`
	Code       string `json:"code"`
	RootNodeID string `json:"root_node_id"`
	Made       bool   `json:"made"`
	Sequence   int64  `json:"sequence"`
}

// MakeTree asks for a tree. Without a clear answer it is asked again, with the same ID. ManagedElsewhere says that
// another connection owns the tree.
var MakeTree = bus.Question[NewTree, Tree]{
	Service: "organization", Name: "make-tree",
	Refusals: []apperr.Kind{
		apperr.InvalidParameters, apperr.AlreadyExists, apperr.InvalidState, apperr.ManagedElsewhere,
	},
}

// The actions of a NodeChange. Disabling refuses a node above others.
const (
	CreateNode  = "create"
	UpdateNode  = "update"
	DisableNode = "disable"
	EnableNode  = "enable" // also applies the node's members
)

// NodeChange is a change of one node of a tree, made at most once for its ID.
type NodeChange struct {
	ID         string `json:"change_id"`
	ObjectCode string `json:"object_code"`
	// The root of the tree that CreateNode is about: another tree may have the code by now. "": the asking service is
	// older, and does not say.
	RootNodeID string          `json:"root_node_id,omitempty"`
	NodeID     string          `json:"node_id,omitempty"` // not of CreateNode, which makes a child of the root
	Version    int64           `json:"version,omitempty"` // the version that the record must have; 0: any
	Action     string          `json:"action"`
	Node       json.RawMessage `json:"node,omitempty"` // the members to set
	DryRun     bool            `json:"dry_run,omitempty"`
}

// NodeState is a node's record in the form that events carry; empty if there is none. Events about the node with a
// sequence up to Sequence were before the answer.
type NodeState struct {
	Node     json.RawMessage `json:"node,omitempty"`
	Sequence int64           `json:"sequence,omitempty"`
}

// ChangeNode asks for a change. Without a clear answer, the asking service asks SettleChange.
var ChangeNode = bus.Question[NodeChange, NodeState]{
	Service: "organization", Name: "change-node",
	Refusals: []apperr.Kind{
		apperr.InvalidParameters, apperr.AlreadyExists, apperr.InvalidState, apperr.NotFound, apperr.VersionMismatch,
		apperr.HasChildren, apperr.ManagedElsewhere,
	},
}

// MembersChange adds users to a node and removes others: all or nothing, at most 1000 together, made at most once for
// its ID. Adding a member and removing a user who is none change nothing.
type MembersChange struct {
	ID     string   `json:"change_id"`
	NodeID string   `json:"node_id"`
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
	DryRun bool     `json:"dry_run,omitempty"`
	// Unmanaged refuses a node whose members a connection manages: without it, the connection asks.
	Unmanaged bool `json:"unmanaged,omitempty"`
}

// MembersChanged has the ids that are no users; then nothing has changed. Otherwise Memberships are those of the added
// users, new or not, and Ended those that ended.
type MembersChanged struct {
	Unknown     []string     `json:"unknown"`
	Memberships []Membership `json:"memberships"`
	Ended       []Membership `json:"ended"`
}

// ChangeMembers asks for a change. Without a clear answer, the asking service asks SettleChange.
var ChangeMembers = bus.Question[MembersChange, MembersChanged]{
	Service: "organization", Name: "change-members", Patience: 5 * time.Second,
	Refusals: []apperr.Kind{apperr.InvalidParameters, apperr.InvalidState, apperr.NotFound, apperr.ManagedElsewhere},
}
