package mapping

import (
	"fmt"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// common sets the common attributes of a resource.
func (p *Place) common(
	kind *schema.Resource, r resource.Object, id string, version int64, created, modified clock.Time,
) {
	r["id"] = id
	set(r, "externalId", p.ExternalID)
	tag := p.Version
	if tag == "" {
		tag = fmt.Sprintf(`W/"%d"`, version)
	}
	r["meta"] = resource.Object{
		"resourceType": kind.Name, "created": created.String(), "lastModified": modified.String(),
		"location": p.uri(kind, id), "version": tag,
	}
	r["schemas"] = resource.Schemas(kind, r)
}

// Node has the members of a tree node's record that SCIM shows. It is read from the record's JSON.
type Node struct {
	ID           string     `json:"id"`
	Version      int64      `json:"version"`
	TimeCreated  clock.Time `json:"time_created"`
	TimeModified clock.Time `json:"time_modified"`
	ObjectCode   string     `json:"object_code"`
	Code         string     `json:"code"`
	Name         string     `json:"name"`
	Status       string     `json:"status"`
	ParentID     string     `json:"parent_id"`
	Path         []string   `json:"path"` // ids, from the root to the node itself
	IsPointer    string     `json:"is_pointer"`
	IsDynamic    string     `json:"is_dynamic"`
}

// IsGroup reports whether a node is a group: not the root, and no pointer.
func (n *Node) IsGroup() bool { return n.ParentID != "" && n.IsPointer != "1" }

// Member is a direct member of a group.
type Member struct{ ID, Display string }

// GroupView is what a group's resource has beside the record.
type GroupView struct {
	Place
	Members []Member // all of them; nil if the answer does not have them
	Whole   bool     // the answer has all attributes of each member
}

// FromNode makes the resource of a node's record.
func FromNode(kind *schema.Resource, n *Node, view GroupView) resource.Object {
	node := resource.Object{}
	set(node, "code", n.Code)
	if len(n.Path) > 2 { // the root is no group
		node["parent"] = n.ParentID
	}
	var path []any
	for _, id := range n.Path[min(1, len(n.Path)):] {
		path = append(path, id)
	}
	put(node, "path", path)
	r := resource.Object{schema.NodeURN: node}
	set(r, "displayName", n.Name)
	put(r, "members", view.members())
	view.common(kind, r, n.ID, n.Version, n.TimeCreated, n.TimeModified)
	return r
}

// shownMember is a member with all its attributes. It takes a fifth of the memory of a resource.Object.
type shownMember struct {
	Ref     string `json:"$ref"`
	Display string `json:"display,omitempty"`
	Type    string `json:"type"`
	Value   string `json:"value"`
}

func (v *GroupView) members() []any {
	items := make([]any, 0, len(v.Members))
	for _, m := range v.Members {
		if v.Whole {
			items = append(items, shownMember{v.uri(schema.User, m.ID), m.Display, "User", m.ID})
			continue
		}
		o := resource.Object{"value": m.ID, "$ref": v.uri(schema.User, m.ID), "type": "User"}
		set(o, "display", m.Display)
		items = append(items, o)
	}
	return items
}
