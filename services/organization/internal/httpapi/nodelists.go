package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

func (a *api) registerNodeLists(s *rest.Server) {
	page := map[string]any{"items": []any{exampleNode}, "total": 1, "page_num": 1, "page_size": 20}
	rest.Handle(s, rest.Op{
		ID: "list-tree-nodes", Method: http.MethodGet, Path: "/v1/tree-nodes", Scope: auth.OrganizationRead,
		Summary: "List and search tree nodes",
		Doc: "Without `parent_id` the whole tree with its root. With it the children of that node; with `recursive` " +
			"all nodes below it; with `depth` as many levels below it.",
		Response: page,
	}, a.listNodes)
	rest.Handle(s, rest.Op{
		ID: "list-ancestors", Method: http.MethodGet, Path: "/v1/tree-nodes/{id}/parent", Scope: auth.OrganizationRead,
		Summary: "List the nodes above a tree node",
		Doc:     "From its parent up to the root; empty for a root.", Response: []any{exampleNode},
	}, a.listAncestors)
	rest.Handle(s, rest.Op{
		ID: "list-children", Method: http.MethodGet, Path: "/v1/tree-nodes/{id}/children", Scope: auth.OrganizationRead,
		Summary:  "List the children of a tree node",
		Response: page,
	}, func(ctx context.Context, in *childrenInput) (rest.List[TreeNode], error) {
		return a.listBelow(ctx, in.ID, 1, in.Paging)
	})
	rest.Handle(s, rest.Op{
		ID: "list-descendants", Method: http.MethodGet, Path: "/v1/tree-nodes/{id}/descendants",
		Scope: auth.OrganizationRead, Summary: "List all nodes below a tree node",
		Response: page,
	}, func(ctx context.Context, in *descendantsInput) (rest.List[TreeNode], error) {
		return a.listBelow(ctx, in.ID, in.Depth, in.Paging)
	})
	rest.Handle(s, rest.Op{
		ID: "get-subtree", Method: http.MethodGet, Path: "/v1/tree-nodes/{id}/tree", Scope: auth.OrganizationRead,
		Summary:  "Get a tree node with all nodes below it, nested",
		Doc:      "Each node has `children`, sorted by `seq`. 400 if there are more than 10,000 nodes.",
		Response: exampleNested,
	}, a.getSubtree)
}

type listNodesInput struct {
	ObjectCode string        `query:"object_code" required:"true" minLength:"1" maxLength:"128" doc:"The code of the tree's core object" example:"company"`
	ParentID   string        `query:"parent_id" maxLength:"64" doc:"Only nodes below this one"`
	Recursive  docstore.Flag `query:"recursive" doc:"With parent_id: all nodes below it, not only its children"`
	Depth      int           `query:"depth" minimum:"1" maximum:"64" doc:"At most this many levels below parent_id, or below the root"`
	Code       string        `query:"code" maxLength:"256" doc:"The exact code"`
	Name       string        `query:"name" maxLength:"256" doc:"A part of the name; case and width are ignored" example:"平台"`
	Status     string        `query:"status" enum:"1,0"`
	Tag        string        `query:"tag" maxLength:"64" doc:"The exact tag"`
	docstore.Paging
}

func (a *api) listNodes(ctx context.Context, in *listNodesInput) (rest.List[TreeNode], error) {
	page, err := a.trees.List(ctx, tree.Filter{
		ObjectCode: in.ObjectCode, ParentID: in.ParentID, Recursive: in.Recursive.Or(false), Depth: in.Depth,
		Code: in.Code, Name: in.Name, Status: in.Status, Tag: in.Tag,
	}, in.Paging)
	return rest.ListOf[TreeNode](in.Paging, page, err)
}

func (a *api) listAncestors(ctx context.Context, in *rest.ByID) ([]rest.Raw[TreeNode], error) {
	return rest.RawOf[TreeNode](a.trees.Ancestors(ctx, in.ID))
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

func (a *api) listBelow(ctx context.Context, id string, depth int, p docstore.Paging) (rest.List[TreeNode], error) {
	page, err := a.trees.ListBelow(ctx, id, depth, p)
	return rest.ListOf[TreeNode](p, page, err)
}

type subtreeInput struct {
	rest.ByID
	DepthLimit
}

func (a *api) getSubtree(ctx context.Context, in *subtreeInput) (rest.Raw[NestedTreeNode], error) {
	body, err := a.trees.Nested(ctx, in.ID, in.Depth)
	return rest.Raw[NestedTreeNode]{JSON: body}, err
}

var exampleNested = json.RawMessage(strings.TrimSuffix(string(exampleNode), "}") + `,"children":[]}`)
