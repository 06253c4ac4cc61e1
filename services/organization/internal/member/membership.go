// Package member is the domain of memberships: which users belong to which node, added by hand or by a condition.
package member

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// Membership says that a user belongs to a node. Its JSON form is that of the store; Shown has the form of the API and
// the events.
type Membership struct {
	docstore.Meta
	ObjectCode string `json:"object_code" readOnly:"true" doc:"The tree of the node" example:"company"`
	NodeID     string `json:"node_id" doc:"The node" example:"1048579"`
	UserID     string `json:"user_id" doc:"The user" example:"1048601"`
	Profile
	Dynamic bool `json:"dynamic" readOnly:"true" doc:"Follows from the node's condition" example:"false"`
}

// Profile holds the members that add and update may set.
type Profile struct {
	IsPrimary string `json:"is_primary" enum:"1,0" doc:"1: the user's primary membership in this tree; the first one, until another is made primary" example:"1"` // never 1 for a dynamic membership
	Title     string `json:"title" doc:"What the user is there, up to 128 characters" example:"架构师"`
	Role      string `json:"role" doc:"member, leader, or any other 1…64 letters, digits, spaces or . _ -; member if absent" example:"member"`
	Seq       int64  `json:"seq" doc:"Orders the members of a node" example:"0"`
}

// Doc is a membership as read or written.
type Doc = docstore.Doc[Membership]

// The indexes. Orders begin with a node's id, so that a node's members are one range.
const (
	byPlace   = "place"   // the node, the user
	byOrder   = "seq"     // the node, seq, the id, the user
	byRole    = "role"    // the node, the role, seq, the id, the user
	byUser    = "user"    // the user, the core object's code
	byNode    = "node"    // the node, and whether the membership is primary; see listing.countBelow
	byPrimary = "primary" // the core object's code, the user; only for primary memberships
)

var members = docstore.Define(docstore.Schema[Membership]{
	Name: "tree_users", Noun: "membership", Revision: 1,
	Indexes: []docstore.Index[Membership]{
		docstore.Unique(docstore.ByText(byPlace, func(m *Membership) string {
			return place(m.NodeID, m.UserID)
		}), "user_id"),
		docstore.ByText(byOrder, (*Membership).order),
		docstore.ByText(byRole, func(m *Membership) string {
			return m.NodeID + "/" + m.Role + "/" + m.within()
		}),
		docstore.ByText(byUser, func(m *Membership) string { return inTree(m.UserID, m.ObjectCode) }),
		docstore.Counted(docstore.ByText(byNode, func(m *Membership) string {
			return standing(m.NodeID, m.IsPrimary)
		})),
		docstore.Unique(docstore.ByText(byPrimary, func(m *Membership) string {
			if m.IsPrimary != "1" {
				return ""
			}
			return primary(m.ObjectCode, m.UserID)
		}), "is_primary"),
	},
})

func place(nodeID, userID string) string       { return nodeID + "/" + userID }
func inTree(userID, objectCode string) string  { return userID + "/" + objectCode }
func primary(objectCode, userID string) string { return objectCode + "/" + userID }
func standing(nodeID, isPrimary string) string { return nodeID + "/" + isPrimary }

func (m *Membership) order() string { return m.NodeID + "/" + m.within() }

// within is the text by which byOrder sorts the memberships of a node. It contains the user.
func (m *Membership) within() string { return tree.OrderText(m.Seq) + "/" + m.ID + "/" + m.UserID }

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{members.Def(), people.Def(), upkeeps.Def(), changes.Def(), rechecks.Def(), rota.Def()}
}

// Limits of members, in characters.
const (
	maxTitle  = 128
	maxUserID = 64
	maxSeq    = 1 << 53

	// MaxOfUser is the number of memberships of a user at which no more can be added by hand: they are listed in one
	// array.
	MaxOfUser = 2000

	// mostOfUser is more than a user has: a batch may exceed MaxOfUser, and concurrent requests tree.MaxDynamic.
	mostOfUser = 2 * (MaxOfUser + tree.MaxDynamic)
)

// role matches a role, apart from its length: {0,63} would compile to 63 copies of the character classes, 1 MiB.
var role = regexp.MustCompile(`^[\pL\pN][\pL\pM\pN._ -]*$`)

func isRole(s string) bool { return utf8.RuneCountInString(s) <= 64 && role.MatchString(s) }

// check notes every fault.
func (p *Profile) check(faults *apperr.Faults) {
	if p.Role == "" {
		p.Role = "member"
	}
	faults.Check(isRole(p.Role), "role",
		"must have 1…64 letters, digits, spaces or . _ -, and begin with a letter or digit")
	faults.Text("title", p.Title, maxTitle)
	faults.Switch("is_primary", &p.IsPrimary, "0")
	faults.Check(-maxSeq < p.Seq && p.Seq < maxSeq, "seq", "must lie between -2^53 and 2^53")
}

// Deps are what Members need. All are required.
type Deps struct {
	Store *docstore.Store
	Bus   *bus.Bus // for questions about users
	Log   *slog.Logger
}

// Members are the use cases.
type Members struct {
	Deps
	costs together[int64] // of conditions, by tenant: an import tells an event for each of its users
}

// New makes the use cases.
func New(d Deps) *Members { return &Members{Deps: d} }

// Shown is a membership as clients see it: with the current names of its node and of the nodes above.
type Shown struct {
	ID   string
	Tag  string
	JSON json.RawMessage
}

// Stored returns the JSON and the ETag, so that pkg/rest can answer with any kind of record.
func (s Shown) Stored() (body []byte, tag string, err error) { return s.JSON, s.Tag, nil }

// show adds the names. It leaves out memberships whose node is deleted: they will end soon.
func show(ctx context.Context, r docstore.Reader, docs ...Doc) ([]Shown, error) {
	named, err := names(ctx, from(r), docs)
	if err != nil {
		return nil, err
	}
	all := make([]Shown, 0, len(docs))
	for i := range docs {
		m, err := docs[i].Value()
		if err != nil {
			return nil, err
		}
		node := named.nodes[m.NodeID]
		if node == nil {
			continue
		}
		body, err := named.shown(&docs[i], node)
		if err != nil {
			return nil, err
		}
		all = append(all, Shown{docs[i].ID, docs[i].Tag(), body})
	}
	return all, nil
}

// from finds nodes by a reader.
func from(r docstore.Reader) func(context.Context, []string) (map[string]*tree.Node, error) {
	return func(ctx context.Context, ids []string) (map[string]*tree.Node, error) {
		return tree.Find(ctx, r, ids...)
	}
}

// directory holds nodes and all nodes above them.
type directory struct{ nodes map[string]*tree.Node }

func names(ctx context.Context, find func(context.Context, []string) (map[string]*tree.Node, error),
	docs []Doc) (directory, error) {
	var ids []string
	for i := range docs {
		m, err := docs[i].Value()
		if err != nil {
			return directory{}, err
		}
		ids = append(ids, m.NodeID)
	}
	slices.Sort(ids)
	found, err := find(ctx, slices.Compact(ids))
	if err != nil {
		return directory{}, err
	}
	d := directory{found}
	return d, d.addAbove(ctx, find)
}

// addAbove adds the nodes above those of the directory.
func (d directory) addAbove(
	ctx context.Context, find func(context.Context, []string) (map[string]*tree.Node, error),
) error {
	var ids []string
	for _, n := range d.nodes {
		for _, id := range n.Path {
			if d.nodes[id] == nil {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	above, err := find(ctx, slices.Compact(ids))
	maps.Copy(d.nodes, above)
	return err
}

// openLine is a node and all above it; none if one of them is disabled, or the node is deleted.
func (d directory) openLine(nodeID string) (line []*tree.Node) {
	node := d.nodes[nodeID]
	if node == nil {
		return nil
	}
	for _, id := range node.Path {
		above := d.nodes[id]
		if above == nil {
			continue
		}
		if above.Status == tree.Disabled {
			return nil
		}
		line = append(line, above)
	}
	return line
}

// path is the names from the root to a node.
func (d directory) path(n *tree.Node) []string {
	path := make([]string, 0, len(n.Path))
	for _, id := range n.Path {
		if above := d.nodes[id]; above != nil {
			path = append(path, above.Name)
		}
	}
	return path
}

// shown adds the names of a node, empty ones if it is deleted.
func (d directory) shown(doc *Doc, node *tree.Node) (json.RawMessage, error) {
	body, err := doc.JSON()
	if err != nil {
		return nil, err
	}
	names := struct {
		Name string   `json:"node_name"`
		Path []string `json:"node_path"`
	}{Path: []string{}}
	if node != nil {
		names.Name, names.Path = node.Name, d.path(node)
	}
	more, err := json.Marshal(names)
	return splice(body, more), err
}

// splice joins two JSON objects to one.
func splice(a, b []byte) json.RawMessage {
	both := make([]byte, 0, len(a)+len(b))
	both = append(append(both, a[:len(a)-1]...), ',')
	return append(both, b[1:]...)
}
