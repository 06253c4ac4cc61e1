// Package httpapi contains the operations of the organization service: JSON forms and their conversion to the domain's,
// one file per noun. It has no rules and no storage.
package httpapi

import (
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/organization/internal/link"
	"github.com/idplatform/idplatform/services/organization/internal/member"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

type api struct {
	trees   *tree.Trees
	members *member.Members
	links   *link.Links
}

// Register adds all operations to the server.
func Register(s *rest.Server, trees *tree.Trees, members *member.Members, links *link.Links) {
	a := &api{trees, members, links}
	a.registerObjects(s.Tagged("Core objects", "The trees of an organization: departments, cost centres, projects."))
	nodes := s.Tagged("Tree nodes",
		"The nodes of a tree: adding, changing and moving them, and the ways to walk and search a tree.")
	a.registerNodes(nodes)
	a.registerNodeActions(nodes)
	a.registerNodeLists(nodes)
	memberships := s.Tagged("Memberships", "Which users belong to which tree nodes.")
	a.registerMembers(memberships)
	a.registerMemberLists(memberships)
	a.registerAssociations(s.Tagged("Tree associations", "Typed links between nodes of two trees."))
}

// GrantsFlag says whether a delete is refused if there are grants.
type GrantsFlag struct {
	Grants string `query:"grants" enum:"refuse" doc:"refuse: 409 in_use if something is granted to the node. Absent: its grants end"`
}

func (g GrantsFlag) refuse() bool { return g.Grants == "refuse" }
