// Package connection is the domain of connections: the SCIM clients of a tenant, what each may do and owns, and their
// tokens.
package connection

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/questions"
)

// The states of a connection.
const (
	Active = "active"
	Held   = "held" // it has requests that wait for approval
)

// The ways of adoption: whether a POST may take over a user that is there already.
const (
	AdoptNever    = "never"
	AdoptUsername = "username"
	AdoptEmail    = "email" // only a verified one
)

// What a DELETE of a user does.
const (
	Disable = "disable"
	Resign  = "resign"
	Delete  = "delete"
)

// OwnsGroups is, among what a connection owns, its tree: the names of nodes, and their members.
const OwnsGroups = "groups"

// Connection is a connection record. It has the same JSON form in the API, in events and in the store.
type Connection struct {
	docstore.Meta
	Profile
	Status          string     `json:"status" readOnly:"true" enum:"1,0" doc:"Changed by enable and disable" example:"1"`
	State           string     `json:"state" readOnly:"true" enum:"active,held" doc:"held: requests wait for approval"`
	Copying         bool       `json:"copying" readOnly:"true" doc:"The groups that the tree had before are being read"`
	Counters        Counters   `json:"counters" readOnly:"true" doc:"Since the connection was created"`
	TimeLastRequest clock.Time `json:"time_last_request" readOnly:"true" nullable:"true" doc:"null: never"`
	RootNodeID      string     `json:"root_node_id" readOnly:"true" doc:"The root of the tree" example:"1048578"`
	ProviderCode    string     `json:"provider_code" readOnly:"true" doc:"The provider of login_link"`
	TreeMade        bool       `json:"tree_made" readOnly:"true" doc:"The tree was made with the connection: who changes the connection needs no organization:write"`
}

// Profile holds the members that create and update may set.
type Profile struct {
	Name           string     `json:"name" required:"true" doc:"1…128 characters" example:"Okta"`
	ClientID       string     `json:"client_id" doc:"The OAuth client whose tokens with the scope scim serve, too; empty: none" example:""`
	ObjectCode     string     `json:"object_code" doc:"The core object whose nodes are the groups; empty: there are no groups; cannot change" example:"okta"`
	Adopt          string     `json:"adopt" enum:"never,username,email" doc:"Whether a POST takes over a user that is there, by its username or its verified email" example:"username"`
	OnDelete       string     `json:"on_delete" enum:"disable,resign,delete" doc:"What a DELETE of a user does"`
	AcceptPassword string     `json:"accept_password" enum:"1,0" doc:"1: the attribute password is set; 0: it is ignored" example:"0"`
	Owns           []string   `json:"owns" doc:"The members of users that only the client changes, and groups for its tree; absent: all that SCIM maps" example:"[\"username\",\"status\",\"groups\"]"`
	LoginLink      *LoginLink `json:"login_link" doc:"How users of the connection sign in: their stored credential is made with them"`
	Extensions     []string   `json:"extensions" doc:"URNs of extensions whose attributes are kept as sent"`
	Gate           Gate       `json:"gate" doc:"From how many removals on they are held"`
	Scopes         []string   `json:"scopes" doc:"Scopes of this API that users whom the client adopts may have, and that its groups may give; all must be the caller's" example:"[]"`
}

// LoginLink says at which connection of the identity-sources service users sign in, and by which of their members.
type LoginLink struct {
	IDPConfigID int64  `json:"idp_config_id" doc:"A connection of the identity-sources service, as a number" example:"31"`
	ID1         string `json:"id1" enum:"externalId,userName" doc:"What the provider knows them by"`
}

// The members that can be a LoginLink's ID1.
const (
	ByExternalID = "externalId"
	ByUserName   = "userName"
)

// Gate says from how many removals within how many hours on they are held: the larger of Min and Percent of what was
// there when the hours began: of the active users, and for members of those of their group.
type Gate struct {
	Percent int `json:"percent" doc:"Of the active users, and of the members of each group, when the hours began" example:"10"`
	Min     int `json:"min" doc:"So many always pass" example:"10"`
	Hours   int `json:"hours" doc:"The time in which they count" example:"24"`
}

// Counters count the requests of the connection's client, and the resources that it changed.
type Counters struct {
	Requests int64 `json:"requests" doc:"All"`
	Refused  int64 `json:"refused" doc:"Those that were answered with an error"`
	Created  int64 `json:"created" doc:"Resources"`
	Updated  int64 `json:"updated" doc:"Resources"`
	Removed  int64 `json:"removed" doc:"Resources"`
	Unlogged int64 `json:"unlogged" doc:"Requests that the log does not have"`
}

// Doc is a connection as read or written.
type Doc = docstore.Doc[Connection]

const (
	byName        = "name"
	byClientID    = "client_id"
	byObjectCode  = "object_code"
	byIDPConfig   = "idp_config_id"
	byTimeCreated = "time_created"
	byConnection  = "connection_id"
	byHash        = "sha256"
)

var connections = outbox.Define("scim_connection", "/provisioning/connections", docstore.Schema[Connection]{
	Name: "connections", Noun: "connection", Sortable: []string{byTimeCreated, byName},
	Due: func(c *Connection) clock.Time { // its tree is to be copied
		if !c.Copying {
			return clock.Time{}
		}
		return c.TimeCreated
	},
	Counts: func(c *Connection) []*int64 {
		n := &c.Counters
		return []*int64{&n.Requests, &n.Refused, &n.Created, &n.Updated, &n.Removed, &n.Unlogged}
	},
	Indexes: []docstore.Index[Connection]{
		docstore.ByText(byName, func(c *Connection) string { return textindex.Key(c.Name) }),
		docstore.Unique(docstore.ByText(byClientID, func(c *Connection) string { return c.ClientID }), "client_id"),
		docstore.Unique(docstore.ByText(byObjectCode, func(c *Connection) string { return c.ObjectCode }),
			"object_code"),
		docstore.ByNumber(byIDPConfig, func(c *Connection) docstore.Value {
			if c.LoginLink == nil {
				return docstore.NoNumber
			}
			return docstore.Number(c.LoginLink.IDPConfigID)
		}),
		docstore.ByNumber(byTimeCreated, func(c *Connection) docstore.Value { return docstore.Moment(c.TimeCreated) }),
	},
})

// Limits of members.
const (
	maxName       = 128 // characters
	maxClientID   = 255
	maxCode       = 128
	maxExtensions = 20
	maxURN        = 255
	maxHours      = 720
	maxMin        = 1_000_000
)

var objectCode = regexp.MustCompile(`^[\pL\pN][\pL\pM\pN._-]*$`)

// Owned are all members that a connection can own.
func Owned() []string { return append(mapping.Owned(), OwnsGroups) }

// normalize sets absent members to their defaults.
func (p *Profile) normalize() {
	if p.Adopt == "" {
		p.Adopt = AdoptNever
	}
	if p.OnDelete == "" {
		p.OnDelete = Disable
	}
	if p.Owns == nil {
		p.Owns = Owned()
	}
	if p.Extensions == nil {
		p.Extensions = []string{}
	}
	if p.Scopes == nil {
		p.Scopes = []string{}
	}
	if p.Gate == (Gate{}) {
		p.Gate = Gate{Percent: 10, Min: 10, Hours: 24}
	}
}

// check notes every fault.
func (p *Profile) check(faults *apperr.Faults) {
	faults.Name("name", p.Name, maxName)
	faults.Text("client_id", p.ClientID, maxClientID)
	faults.Check(p.ObjectCode == "" || utf8.RuneCountInString(p.ObjectCode) <= maxCode &&
		objectCode.MatchString(p.ObjectCode), "object_code",
		"must have 1…%d letters, digits or . _ -, and begin with a letter or digit", maxCode)
	faults.Check(slices.Contains([]string{AdoptNever, AdoptUsername, AdoptEmail}, p.Adopt), "adopt",
		"must be never, username or email")
	faults.Check(slices.Contains([]string{Disable, Resign, Delete}, p.OnDelete), "on_delete",
		"must be disable, resign or delete")
	faults.Switch("accept_password", &p.AcceptPassword, "0")
	for i, member := range p.Owns {
		at := apperr.Item("owns", i)
		faults.Check(slices.Contains(Owned(), member), at, "must be one of %s", strings.Join(Owned(), ", "))
		faults.Check(!slices.Contains(p.Owns[:i], member), at, "is given twice")
	}
	if l := p.LoginLink; l != nil {
		faults.Check(l.IDPConfigID > 0 && l.IDPConfigID < 1<<53, "login_link.idp_config_id",
			"must be a connection's id")
		faults.Check(l.ID1 == ByExternalID || l.ID1 == ByUserName, "login_link.id1", "must be externalId or userName")
	}
	faults.Check(len(p.Extensions) <= maxExtensions, "extensions", "must have at most %d URNs", maxExtensions)
	for i, urn := range p.Extensions {
		ok := len(urn) <= maxURN && strings.HasPrefix(strings.ToLower(urn), "urn:") && len(urn) > len("urn:")
		faults.Check(ok, apperr.Item("extensions", i), "must be a URN of at most %d bytes", maxURN)
	}
	for i, scope := range p.Scopes {
		at := apperr.Item("scopes", i)
		faults.Check(auth.NewScopes(auth.Scope(scope)) != 0, at, "must be a scope of this API")
		faults.Check(!slices.Contains(p.Scopes[:i], scope), at, "is given twice")
	}
	g := p.Gate
	faults.Check(g.Percent >= 0 && g.Percent <= 100, "gate.percent", "must lie in 0…100")
	faults.Check(g.Min >= 0 && g.Min <= maxMin, "gate.min", "must lie in 0…%d", maxMin)
	faults.Check(g.Hours >= 1 && g.Hours <= maxHours, "gate.hours", "must lie in 1…%d", maxHours)
}

// ManagedBy is what the connection owns of its users.
func (c *Connection) ManagedBy() *questions.ManagedBy {
	members := slices.DeleteFunc(slices.Clone(c.Owns), func(m string) bool { return m == OwnsGroups })
	if len(members) == 0 { // the user belongs to the connection, whatever that owns
		members = []string{mapping.OwnedProps}
	}
	return &questions.ManagedBy{ConnectionID: c.ID, Members: members}
}

// OwnsTree reports whether the connection owns its groups: only then its client can change them.
func (c *Connection) OwnsTree() bool { return slices.Contains(c.Owns, OwnsGroups) }

// treeOwner is what the connection owns of its tree.
func (c *Connection) treeOwner() questions.ManagedBy {
	m := questions.ManagedBy{ConnectionID: c.ID, Members: []string{}}
	if c.OwnsTree() {
		m.Members = []string{questions.OwnedNames, questions.OwnedMembers}
	}
	return m
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{connections.Def(), tokens.Def(), claims.Def(), sweeps.Def()}
}
