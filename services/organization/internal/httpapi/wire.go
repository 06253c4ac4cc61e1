package httpapi

import (
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/organization/internal/member"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// NewCoreObject is a core object to create.
type NewCoreObject struct {
	rest.MembersOf[tree.Object]
	Code string     `json:"code"`
	Name string     `json:"name"`
	Root *RootInput `json:"root,omitempty" doc:"The root node"`
}

// RootInput describes the root node to create.
type RootInput struct {
	rest.MembersOf[NodeMembers]
	Name     string `json:"name,omitempty" doc:"Absent: the core object's"`
	ParentID string `json:"parent_id,omitempty" doc:"Only empty: a root has no parent"`
}

// NodeMembers are the members of a node but object_code: the request names the tree for all its nodes.
type NodeMembers struct {
	tree.Node
	ObjectCode struct{} `json:"-"` // hides the node's
}

// TreeNodeInput are the members of a tree node to change.
type TreeNodeInput struct {
	rest.MembersOf[tree.Node]
	ObjectCode string `json:"object_code,omitempty" doc:"Cannot change"`
	Name       string `json:"name"`
	ParentID   string `json:"parent_id" doc:"Another parent moves the node; empty: the root"`
}

// NewTreeNode is a tree node to create.
type NewTreeNode struct {
	rest.MembersOf[tree.Node]
	ObjectCode string `json:"object_code" minLength:"1"`
	Name       string `json:"name"`
	ParentID   string `json:"parent_id" doc:"Empty: the root" example:""`
}

// NewTreeNodes are tree nodes to create together.
type NewTreeNodes struct {
	ObjectCode string         `json:"object_code" minLength:"1" doc:"The tree" example:"company"`
	Items      []NewBatchNode `json:"items" minItems:"1" maxItems:"1000" nullable:"false" doc:"1…1000 nodes; all or none"`
}

// NewBatchNode is one of the tree nodes to create together.
type NewBatchNode struct {
	rest.MembersOf[NodeMembers]
	Name      string `json:"name"`
	ParentID  string `json:"parent_id,omitempty" doc:"Empty: the root, unless parent_ref is given"`
	Ref       string `json:"ref,omitempty" maxLength:"256" doc:"A name that other items use as parent_ref; returned in the answer" example:"a"`
	ParentRef string `json:"parent_ref,omitempty" maxLength:"256" doc:"The ref of the item that is to be the parent"`
}

// AddedTreeNode is a node of a batch.
type AddedTreeNode struct {
	tree.Node
	Ref string `json:"ref,omitempty" doc:"The ref of the request's item" example:"a"`
}

// NestedTreeNode is a node with all nodes below it.
type NestedTreeNode struct {
	tree.Node
	Children []NestedTreeNode `json:"children" nullable:"false" doc:"The nodes right below it, in their order"`
}

// Membership is a membership record with the names of its node, which are not stored with it.
type Membership struct {
	member.Membership
	NodeName string   `json:"node_name" readOnly:"true" doc:"Of the node" example:"平台组"`
	NodePath []string `json:"node_path" readOnly:"true" nullable:"false" doc:"Names from the root to the node" example:"[\"Acme\",\"平台组\"]"`
}

// NewMembership is a membership to add.
type NewMembership struct {
	rest.MembersOf[Membership]
	NodeID string `json:"node_id"`
	UserID string `json:"user_id"`
}

// NewMemberships are memberships to add together.
type NewMemberships struct {
	NodeID  string          `json:"node_id,omitempty" doc:"The node that all of user_ids join" example:"1048579"`
	UserIDs []string        `json:"user_ids,omitempty" maxItems:"1000" doc:"With node_id"`
	Items   []NewMembership `json:"items,omitempty" maxItems:"1000" doc:"Instead of node_id and user_ids"`
}

// MembershipInput are the members of a membership to change.
type MembershipInput struct {
	rest.MembersOf[Membership]
	NodeID string `json:"node_id,omitempty" doc:"Cannot change"`
	UserID string `json:"user_id,omitempty" doc:"Cannot change"`
}

// TreeNodeUser is a user of a node, with the first of the selected memberships.
type TreeNodeUser struct {
	Membership
	Nodes []NodeOfUser `json:"nodes" nullable:"false" doc:"All selected memberships"`
}

// NodeOfUser is one of the memberships of a TreeNodeUser.
type NodeOfUser struct {
	ID        string `json:"id" doc:"The membership's id" example:"1048650"`
	NodeID    string `json:"node_id" doc:"The node" example:"1048579"`
	NodeName  string `json:"node_name" doc:"Of the node" example:"平台组"`
	Role      string `json:"role" doc:"Of the user in it" example:"member"`
	Title     string `json:"title" doc:"Of the user in it" example:"架构师"`
	IsPrimary string `json:"is_primary" enum:"1,0" doc:"1: the user's primary membership in this tree" example:"1"`
	Dynamic   bool   `json:"dynamic" doc:"Follows from the node's condition" example:"false"`
}
