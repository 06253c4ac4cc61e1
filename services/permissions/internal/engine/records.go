// Package engine answers who may do what, from memory. An Engine holds for each tenant what is granted (rules,
// resources, sets) and who belongs where (users, nodes, trees, groups). Each change makes a new State, which shares the
// unchanged parts with the previous one. A question reads one State, without locks, while changes go on.
//
// Records may arrive in any order, several times, and before the records that they refer to. A record whose sequence is
// not greater than that of the known one is ignored, so events can be replayed.
package engine

import "slices"

// The types of identities.
const (
	User        = "user"
	Node        = "node"        // a tree node: what it is granted reaches members of it and of every node below
	CoreObject  = "core_object" // a whole tree
	Application = "application"
	Group       = "group"
	Everyone    = "everyone" // its only id is Any
)

// Any is the id of Everyone, and the action that means every action.
const Any = "*"

// The types of objects and rules.
const (
	Data = "data"
	API  = "api"
	UI   = "ui"
	App  = "app" // an application; a rule gives the right to use it

	Wildcard    = "res"     // rules about all resources of an application, or those whose codes match a pattern
	ResourceSet = "res_set" // rules about the members of a set
)

// Identity is whom something can be granted to.
type Identity struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// Properties are what conditions see of a user or a resource: a JSON object, or empty.
type Properties string

// Resource is what can be granted.
type Resource struct {
	ID, ApplicationID, Type, Code, Name, URI string

	Actions    []string // codes
	Global     bool     // can be granted and grouped by every application of the tenant
	Properties Properties
	Sequence   int64

	path []string // of an api resource: the segments of its URI, see patternOfURI; nil: no check can name it by URI
}

// Set groups resources.
type Set struct {
	ID, ApplicationID, Code, Name string

	Sequence int64
}

// Member is a resource in a set, with the actions that belong to the set; Any means all.
type Member struct {
	ID, SetID, ResourceID string

	Actions  []string
	Sequence int64
}

// Unit is an identity that something is granted to.
type Unit struct {
	ID       string
	Identity Identity
	Name     string
	Sequence int64
}

// GroupMember says that a user belongs to a group.
type GroupMember struct {
	ID, UnitID, UserID string

	Sequence int64
}

// Rule grants or denies.
type Rule struct {
	ID, UnitID, ApplicationID, Type string

	Code       string // the pattern of a Wildcard; empty: all resources
	ResourceID string
	SetID      string
	Actions    []string // Any means all
	Deny       bool
	Condition  *Condition // nil: none
	From, To   int64      // milliseconds since 1970, from From and before To; 0: unbounded
	Created    int64      // milliseconds since 1970
	Sequence   int64
}

// Person is a user.
type Person struct {
	ID, Username string

	Disabled   bool // may do nothing
	Properties Properties
	Sequence   int64
}

// Caller is an application as an identity.
type Caller struct {
	ID, Name string

	Sequence int64
}

// TreeNode is a node of a tree; a root has no parent.
type TreeNode struct {
	ID, Name, ParentID, ObjectCode string

	PointerID string // the node that it stands for, whose members have its grants, too; "" for none
	Disabled  bool   // no grants reach anybody through it, nor through what is below it
	Sequence  int64
}

// Tree is a core object.
type Tree struct {
	ID, Code, Name string

	Sequence int64
}

// Membership says that a user belongs to a node.
type Membership struct {
	ID, NodeID, UserID string

	Sequence int64
}

// kind says what a target is.
type kind uint8

const (
	oneResource  kind = iota // id is the resource's
	setOf                    // id is the set's
	allResources             // id is the application's
	patternOf                // id is the application's; the pattern is in the rule
	application              // id is the application's
)

// target is what a rule is about: the key by which rules are found.
type target struct {
	kind kind
	id   string
}

func (r *Rule) target() target {
	switch {
	case r.Type == App:
		return target{application, r.ApplicationID}
	case r.Type == ResourceSet:
		return target{setOf, r.SetID}
	case r.Type != Wildcard:
		return target{oneResource, r.ResourceID}
	case r.Code == "":
		return target{allResources, r.ApplicationID}
	}
	return target{patternOf, r.ApplicationID}
}

// includes reports whether a list of actions has an action, or Any.
func includes(actions []string, action string) bool {
	return slices.Contains(actions, action) || slices.Contains(actions, Any)
}

// current reports whether the rule is valid at a moment.
func (r *Rule) current(now int64) bool { return now >= r.From && (r.To == 0 || now < r.To) }
