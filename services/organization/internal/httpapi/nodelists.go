package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

func (a *api) registerNodeLists(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-ancestors", Method: http.MethodGet, Path: "/v1/tree-nodes/{id}/parent", Scope: auth.OrganizationRead,
		Summary: "List the nodes above a tree node",
		Doc:     "From its parent up to the root; empty for a root.",
	}, a.listAncestors)
	rest.Handle(s, rest.Op{
		ID: "list-children", Method: http.MethodGet, Path: "/v1/tree-nodes/{id}/children", Scope: auth.OrganizationRead,
		Summary: "List the children of a tree node",
	}, func(ctx context.Context, in *childrenInput) (rest.List[tree.Node], error) {
		return a.listBelow(ctx, in.ID, 1, in.Paging)
	})
	rest.Handle(s, rest.Op{
		ID: "list-descendants", Method: http.MethodGet, Path: "/v1/tree-nodes/{id}/descendants",
		Scope: auth.OrganizationRead, Summary: "List all nodes below a tree node",
	}, func(ctx context.Context, in *descendantsInput) (rest.List[tree.Node], error) {
		return a.listBelow(ctx, in.ID, in.Depth, in.Paging)
	})
	rest.Handle(s, rest.Op{
		ID: "get-subtree", Method: http.MethodGet, Path: "/v1/tree-nodes/{id}/tree", Scope: auth.OrganizationRead,
		Summary: "Get a tree node with all nodes below it, nested",
		Doc:     "Each node has `children`, sorted by `seq`. 400 if there are more than 10,000 nodes.",
	}, a.getSubtree)
}

func (a *api) listAncestors(ctx context.Context, in *rest.ByID) ([]rest.Raw[tree.Node], error) {
	return rest.RawOf[tree.Node](a.trees.Ancestors(ctx, in.ID))
}

type childrenInput struct {
	rest.ByID
	docstore.Paging
}

// DepthLimit is the number of levels to include.
type DepthLimit struct {
	Depth int `query:"depth" minimum:"1" maximum:"64" doc:"At most this many levels"`
}

type descendantsInput struct {
	rest.ByID
	DepthLimit
	docstore.Paging
}

func (a *api) listBelow(ctx context.Context, id string, depth int, p docstore.Paging) (rest.List[tree.Node], error) {
	page, err := a.trees.ListBelow(ctx, id, depth, p)
	return rest.ListOf[tree.Node](p, page, err)
}

type subtreeInput struct {
	rest.ByID
	DepthLimit
}

func (a *api) getSubtree(ctx context.Context, in *subtreeInput) (rest.Raw[NestedTreeNode], error) {
	body, err := a.trees.Nested(ctx, in.ID, in.Depth)
	return rest.Raw[NestedTreeNode]{JSON: body}, err
}
