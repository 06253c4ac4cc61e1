// Package httpapi is the organization service's operations: wire forms, their conversion to the domain's, one file a noun. It holds
// no rules and no storage.
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
	a.registerObjects(s)
	a.registerNodes(s)
	a.registerNodeLists(s)
	a.registerMembers(s)
	a.registerMemberLists(s)
	a.registerAssociations(s)
}

// GrantsFlag is how a delete says what is to become of grants.
type GrantsFlag struct {
	Grants string `query:"grants" enum:"refuse" doc:"refuse: 409 in_use if something is granted to the node. Absent: grants go with it"`
}

func (g GrantsFlag) refuse() bool { return g.Grants == "refuse" }
