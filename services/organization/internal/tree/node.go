package tree

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/condition"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Node is a tree node. It has the same JSON form in the API, in events and in the store.
type Node struct {
	docstore.Meta
	ObjectCode string `json:"object_code" doc:"The code of the tree's core object" example:"company"`
	Profile
	ParentID    string   `json:"parent_id" doc:"Empty for a root" example:"1048578"`
	ARN         string   `json:"arn" readOnly:"true" doc:"Its name in policies, with tenant, tree and id" example:"arn:idp:acme:org:company:1048577"`
	OperatorID  string   `json:"operator_id" readOnly:"true" doc:"Who changed the node last" example:"admin"`
	Path        []string `json:"path" readOnly:"true" nullable:"false" doc:"Ids from the root to the node itself" example:"[\"1048578\",\"1048577\"]"`
	Depth       int      `json:"depth" readOnly:"true" doc:"0 for a root" example:"1"`
	ChildCount  int64    `json:"child_count" readOnly:"true" doc:"Nodes right below it" example:"0"`
	MemberCount int64    `json:"member_count" readOnly:"true" doc:"Members of the node itself, without those of nodes below" example:"0"`
}

// Profile holds the members that create and update may set.
type Profile struct {
	Code             string          `json:"code" doc:"1…256 visible characters; unique in the tree; generated if missing" example:"platform"`
	Name             string          `json:"name" doc:"1…256 characters" example:"平台组"`
	Description      string          `json:"description" doc:"Up to 2000 characters" example:""`
	Tag              string          `json:"tag" doc:"Up to 64 characters; lists filter by it" example:""`
	Status           string          `json:"status" enum:"1,0" doc:"1: in use" example:"1"`
	Seq              int64           `json:"seq" doc:"Orders siblings" example:"0"`
	PermNamespaceARN string          `json:"perm_namespace_arn" doc:"A namespace of permissions, up to 512 characters, for its clients" example:""`
	IsPointer        string          `json:"is_pointer" enum:"1,0" doc:"1: stands for the node pointer_id" example:"0"`
	PointerID        string          `json:"pointer_id" doc:"The node that it stands for" example:""`
	IsDynamic        string          `json:"is_dynamic" enum:"1,0" doc:"1: its members are the users who meet condition" example:"0"`
	Condition        string          `json:"condition" doc:"CEL over user, the user record" example:""`
	SysExtProps      json.RawMessage `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps     json.RawMessage `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
}

// Doc is a node as read or written.
type Doc = docstore.Doc[Node]

// The indexes. Those that lists can be sorted by have the names of the members.
//
// Values that are unique or ordered within one tree or one node begin with the id of its root or of that node, and a
// slash. So a tree, a subtree, and the children of a node are each one range of an index, in order.
const (
	byCode        = "code"
	byName        = "name"
	bySeq         = "seq"
	byDepth       = "depth"
	byTimeCreated = "time_created"
	// the ids of Path, each with a slash after it: a subtree is all that begins with the text of its root
	byPath      = "path"
	bySibling   = "sibling"   // the parent, then seq
	byNameGram  = "name_gram" // the name's grams, each after the root
	byStatus    = "status"
	byTag       = "tag"
	byPointer   = "pointer_id"
	byPopulated = "populated" // byPath, only of nodes that have members
	byDynamic   = "dynamic"
)

var nodes = docstore.Define(docstore.Schema[Node]{
	Name: "tree_nodes", Noun: "tree node", Revision: 1, Sortable: sortable,
	Counts: func(n *Node) []*int64 { return []*int64{&n.ChildCount, &n.MemberCount} },
	Indexes: []docstore.Index[Node]{
		docstore.Unique(docstore.ByText(byCode, func(n *Node) string { return n.root() + n.Code }), "code"),
		docstore.ByText(byName, func(n *Node) string { return textindex.Key(n.Name) }),
		docstore.ByNumber(bySeq, func(n *Node) docstore.Value { return docstore.Number(n.Seq) }),
		docstore.ByNumber(byDepth, func(n *Node) docstore.Value { return docstore.Number(int64(n.Depth)) }),
		docstore.ByNumber(byTimeCreated, func(n *Node) docstore.Value { return docstore.Moment(n.TimeCreated) }),
		docstore.ByText(byPath, (*Node).PathText),
		docstore.ByText(bySibling, func(n *Node) string { return n.ParentID + "/" + OrderText(n.Seq) }),
		docstore.ByList(byNameGram, func(n *Node) []string { return textindex.Grams(n.root(), textindex.Key(n.Name)) }),
		docstore.ByText(byStatus, func(n *Node) string { return n.Status }),
		docstore.ByText(byTag, func(n *Node) string { return n.Tag }),
		docstore.ByText(byPointer, func(n *Node) string { return n.PointerID }),
		docstore.ByText(byPopulated, func(n *Node) string {
			if n.MemberCount == 0 {
				return ""
			}
			return n.PathText()
		}),
		docstore.ByText(byDynamic, func(n *Node) string {
			if !n.Dynamic() {
				return ""
			}
			return "1"
		}),
	},
})

// sortable are the fields that a list of nodes can be sorted by. The first is the default.
var sortable = []string{bySeq, byName, byCode, byDepth, byTimeCreated}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{objects.Def(), nodes.Def(), budgets.Def()} }

// Limits of members, in characters unless stated otherwise.
const (
	maxName        = 256
	maxCode        = 256
	maxTag         = 64
	maxDescription = 2000
	maxARN         = 512
	maxSeq         = 1 << 53

	// MaxDepth is the largest depth of a node; a root's is 0. Paths are indexed as a whole, so it bounds the cost of a
	// node.
	MaxDepth = 32
)

// Dynamic reports whether the node's members are the users who meet its condition.
func (n *Node) Dynamic() bool { return n.IsDynamic == "1" }

// root is the beginning of the index values of the node's tree.
func (n *Node) root() string { return n.Path[0] + "/" }

// PathText is the path in the form of the index: it is the beginning of the text of every node below.
func (n *Node) PathText() string { return pathText(n.Path) }

func pathText(path []string) string { return strings.Join(path, "/") + "/" }

// OrderText returns a number as text with the same order.
func OrderText(n int64) string { return fmt.Sprintf("%016x", uint64(n)+1<<63) }

// Draft is a node to create.
type Draft struct {
	Profile
	ParentID string
	Ref      string // identifies this draft for others of its batch
	Parent   string // the Ref of the draft that will be the parent; ParentID is then empty
}

// check notes every fault that can be found without the store.
func (p *Profile) check(faults *apperr.Faults) {
	faults.Name("name", p.Name, maxName)
	faults.Prose("description", p.Description, maxDescription)
	faults.Text("tag", p.Tag, maxTag)
	faults.Text("perm_namespace_arn", p.PermNamespaceARN, maxARN)
	if p.Code != "" {
		faults.Check(validCode(p.Code), "code", "must have 1…%d visible characters, no spaces", maxCode)
	}
	faults.Switch("status", &p.Status, "1")
	faults.Switch("is_pointer", &p.IsPointer, "0")
	faults.Switch("is_dynamic", &p.IsDynamic, "0")
	checkSeq(faults, p.Seq)
	faults.Check((p.PointerID != "") == (p.IsPointer == "1"), "pointer_id",
		"must be given with is_pointer 1, and only then")
	faults.Check(p.IsDynamic != "1" || p.Condition != "", "condition", "must be given with is_dynamic 1")
	if p.Condition != "" {
		if _, err := Conditions.Cached(p.Condition); err != nil {
			faults.Add("condition", "%s", err)
		}
	}
	faults.Props("sys_ext_props", &p.SysExtProps)
	faults.Props("free_ext_props", &p.FreeExtProps)
}

// Conditions are those of dynamic nodes. Their variable user is a user record in the form of the users service's
// events.
var Conditions = conditions()

func conditions() *condition.Environment {
	env, err := condition.NewEnvironment(condition.Map("user"))
	if err != nil {
		panic(err) // only if the declaration above is wrong
	}
	return env
}

func checkSeq(faults *apperr.Faults, seq int64) {
	faults.Check(-maxSeq < seq && seq < maxSeq, "seq", "must lie between -2^53 and 2^53")
}

func validCode(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= maxCode && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
}

// node makes the draft a node. Its place in the tree is set later: see insert.
func (d *Draft) node(ctx context.Context, id, objectCode string) *Node {
	n := &Node{
		Meta: docstore.Meta{ID: id}, ObjectCode: objectCode, Profile: d.Profile,
		ARN: "arn:idp:" + request.Tenant(ctx) + ":org:" + objectCode + ":" + id, OperatorID: request.From(ctx).Actor,
	}
	if n.Code == "" {
		n.Code = "node-" + id
	}
	return n
}

// place puts a node below a parent, or makes it a root.
func (n *Node) place(parent *Node) {
	n.ParentID, n.Path, n.Depth = "", []string{n.ID}, 0
	if parent != nil {
		n.ParentID, n.Path, n.Depth = parent.ID, append(parent.Path[:len(parent.Path):len(parent.Path)], n.ID),
			parent.Depth+1
	}
}

func emit(ctx context.Context, tx *docstore.Tx, action string, doc *Doc, extra map[string]any) error {
	return outbox.Tell(ctx, tx, outbox.Kind{Entity: "node", Source: "/tree-nodes"}, action, doc, extra)
}
