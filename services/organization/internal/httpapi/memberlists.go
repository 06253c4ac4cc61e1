package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/organization/internal/member"
)

func (a *api) registerMemberLists(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-tree-users", Method: http.MethodGet, Path: "/v1/tree-users", Scope: auth.OrganizationRead,
		Summary: "List a user's memberships",
		Doc:     "In all trees, including those that follow from the conditions of dynamic nodes.",
	}, a.listOfUser)
	rest.Handle(s, rest.Op{
		ID: "list-tree-node-users", Method: http.MethodGet, Path: "/v1/tree-nodes/{id}/users",
		Scope: auth.OrganizationRead, Summary: "List the users of a tree node",
		Doc: "Each user is listed once, with the first membership in the order of nodes and `seq`; `nodes` lists all " +
			"selected memberships. With `recursive`, `total` is exact up to 10,000 users; with a `role`, or if the " +
			"users have more than 10,000 memberships there beside their primary ones, 10,000 memberships are " +
			"counted. If many users of a large node match the `keyword`, `total` is the number up to this page, and " +
			"pages may have fewer items than `page_size`.",
		Errors: []apperr.Kind{apperr.Unavailable},
	}, a.listOfNode)
}

type listOfUserInput struct {
	UserID string `query:"user_id" required:"true" minLength:"1" maxLength:"64" example:"1048601"`
}

func (a *api) listOfUser(ctx context.Context, in *listOfUserInput) ([]rest.Raw[Membership], error) {
	return rawOf(a.members.OfUser(ctx, in.UserID))
}

type listOfNodeInput struct {
	rest.ByID
	Recursive docstore.Flag `query:"recursive" doc:"Also the users of all nodes below it; no pointers are followed"`
	Keyword   string        `query:"keyword" maxLength:"256" doc:"Only users found by the users service's full-text search" example:"伟"`
	Role      string        `query:"role" maxLength:"64" doc:"Only memberships with this role" example:"leader"`
	docstore.Paging
}

func (a *api) listOfNode(ctx context.Context, in *listOfNodeInput) (rest.List[TreeNodeUser], error) {
	page, err := a.members.Users(ctx, member.Filter{
		NodeID: in.ID, Recursive: in.Recursive.Or(false), Role: in.Role, Keyword: strings.TrimSpace(in.Keyword),
	}, in.Paging)
	if err != nil {
		return rest.List[TreeNodeUser]{}, err
	}
	list := rest.List[TreeNodeUser]{Items: make([][]byte, len(page.Items)), Total: page.Total, More: page.More,
		Num: in.Num, Size: in.Size, Next: page.Next}
	for i, item := range page.Items {
		list.Items[i] = item
	}
	return list, nil
}
