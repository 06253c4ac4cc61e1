package httpapi

import "github.com/idplatform/idplatform/pkg/rest"

// These types describe JSON for the OpenAPI document and for the validation of bodies. Records are stored in this form,
// or completed by the domain; a test compares the two.

// CoreObject is an organization relation: a tree.
type CoreObject struct {
	rest.Meta
	Code         string                 `json:"code" doc:"1…128 letters of any script, digits or . _ -; unique; cannot change" example:"company"`
	Name         string                 `json:"name" doc:"1…256 characters" example:"Acme"`
	Description  string                 `json:"description" doc:"Up to 2000 characters" example:""`
	Status       string                 `json:"status" enum:"1,0" doc:"1: in use" example:"1"`
	RootNodeID   string                 `json:"root_node_id" readOnly:"true" doc:"The node above all others" example:"1048578"`
	NodeCount    int64                  `json:"node_count" readOnly:"true" doc:"Including the root" example:"1"`
	Seq          int64                  `json:"seq" doc:"Orders core objects" example:"0"`
	SysExtProps  map[string]any         `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps map[string]any         `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	ManagedBy    rest.OrNull[ManagedBy] `json:"managed_by" readOnly:"true" doc:"The provisioning connection that owns the names and members of the tree's nodes, which change only through SCIM; null: none"`
}

// ManagedBy says what a provisioning connection owns of a tree.
type ManagedBy struct {
	ConnectionID string   `json:"connection_id" doc:"The provisioning connection" example:"1048577"`
	Members      []string `json:"members" doc:"What only its client changes" example:"[\"name\",\"members\"]"`
}

// CoreObjectInput is a core object to create, or the members of one to change.
type CoreObjectInput struct {
	rest.MembersOf[CoreObject]
	Code string `json:"code"`
	Name string `json:"name"`
}

// NewCoreObject is a core object to create.
type NewCoreObject struct {
	CoreObjectInput
	Root *RootInput `json:"root,omitempty" doc:"The root node"`
}

// RootInput describes the root node to create.
type RootInput struct {
	rest.MembersOf[NodeMembers]
	Name     string `json:"name,omitempty" doc:"Absent: the core object's"`
	ParentID string `json:"parent_id,omitempty" doc:"Only empty: a root has no parent"`
}

// TreeNode is a node of a tree.
type TreeNode struct {
	NodeMembers
	ObjectCode string `json:"object_code" doc:"The code of the tree's core object" example:"company"`
}

// NodeMembers are the members of a node but its tree, which the request names for all its nodes.
type NodeMembers struct {
	rest.Meta
	Code             string         `json:"code" doc:"1…256 visible characters; unique in the tree; generated if missing" example:"platform"`
	Name             string         `json:"name" doc:"1…256 characters" example:"平台组"`
	Description      string         `json:"description" doc:"Up to 2000 characters" example:""`
	Tag              string         `json:"tag" doc:"Up to 64 characters; lists filter by it" example:""`
	Status           string         `json:"status" enum:"1,0" doc:"1: in use" example:"1"`
	Seq              int64          `json:"seq" doc:"Orders siblings" example:"0"`
	PermNamespaceARN string         `json:"perm_namespace_arn" doc:"A namespace of permissions, up to 512 characters, for its clients" example:""`
	IsPointer        string         `json:"is_pointer" enum:"1,0" doc:"1: stands for the node pointer_id" example:"0"`
	PointerID        string         `json:"pointer_id" doc:"The node that it stands for" example:""`
	IsDynamic        string         `json:"is_dynamic" enum:"1,0" doc:"1: its members are the users who meet condition" example:"0"`
	Condition        string         `json:"condition" doc:"CEL over user, the user record" example:""`
	SysExtProps      map[string]any `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps     map[string]any `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	ParentID         string         `json:"parent_id" doc:"Empty for a root" example:"1048578"`
	ARN              string         `json:"arn" readOnly:"true" doc:"Its name in policies, with tenant, tree and id" example:"arn:idp:acme:org:company:1048579"`
	OperatorID       string         `json:"operator_id" readOnly:"true" doc:"Who changed the node last" example:"admin"`
	Path             []string       `json:"path" readOnly:"true" nullable:"false" doc:"Ids from the root to the node itself"`
	Depth            int            `json:"depth" readOnly:"true" doc:"0 for a root" example:"1"`
	ChildCount       int64          `json:"child_count" readOnly:"true" doc:"Nodes right below it" example:"0"`
	MemberCount      int64          `json:"member_count" readOnly:"true" doc:"Members of the node itself, without those of nodes below" example:"0"`
}

// TreeNodeInput are the members of a tree node to change.
type TreeNodeInput struct {
	rest.MembersOf[TreeNode]
	ObjectCode string `json:"object_code,omitempty" doc:"Cannot change"`
	Name       string `json:"name"`
	ParentID   string `json:"parent_id" doc:"Another parent moves the node; empty: the root"`
}

// NewTreeNode is a tree node to create.
type NewTreeNode struct {
	rest.MembersOf[TreeNode]
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
	TreeNode
	Ref string `json:"ref,omitempty" doc:"The ref of the request's item" example:"a"`
}

// NestedTreeNode is a node with all nodes below it.
type NestedTreeNode struct {
	TreeNode
	Children []NestedTreeNode `json:"children" nullable:"false" doc:"The nodes right below it, in their order"`
}

// Membership says that a user belongs to a node.
type Membership struct {
	rest.Meta
	ObjectCode string   `json:"object_code" readOnly:"true" doc:"The tree of the node" example:"company"`
	NodeID     string   `json:"node_id" doc:"The node" example:"1048579"`
	NodeName   string   `json:"node_name" readOnly:"true" doc:"Of the node" example:"平台组"`
	NodePath   []string `json:"node_path" readOnly:"true" nullable:"false" doc:"Names from the root to the node"`
	UserID     string   `json:"user_id" doc:"The user" example:"1048601"`
	IsPrimary  string   `json:"is_primary" enum:"1,0" doc:"1: the user's primary membership in this tree; the first one, until another is made primary" example:"1"`
	Title      string   `json:"title" doc:"What the user is there, up to 128 characters" example:"架构师"`
	Role       string   `json:"role" doc:"member, leader, or any other 1…64 letters, digits, spaces or . _ -; member if absent" example:"member"`
	Seq        int64    `json:"seq" doc:"Orders the members of a node" example:"0"`
	Dynamic    bool     `json:"dynamic" readOnly:"true" doc:"Follows from the node's condition" example:"false"`
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

// TreeAssociation links nodes of two trees.
type TreeAssociation struct {
	rest.Meta
	SourceNodeID string `json:"source_node_id" doc:"The node that it begins at" example:"1048700"`
	TargetNodeID string `json:"target_node_id" doc:"Of another tree" example:"1048579"`
	Type         string `json:"type" doc:"What one is to the other, up to 64 characters" example:"owner"`
	Description  string `json:"description" doc:"Up to 2000 characters" example:""`
}

// NewTreeAssociation is an association to create.
type NewTreeAssociation struct {
	rest.MembersOf[TreeAssociation]
	SourceNodeID string `json:"source_node_id"`
	TargetNodeID string `json:"target_node_id"`
}
