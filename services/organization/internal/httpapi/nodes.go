package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

func (a *api) registerNodes(s *rest.Server) {
	rest.Named[tree.Node](s, "TreeNode")
	nodes := rest.Resource[tree.Node, tree.Node, tree.Filter]{
		Server: s, ID: "tree-node", One: "a tree node", Many: "tree nodes",
		Path: "/v1/tree-nodes", Read: auth.OrganizationRead, Write: auth.OrganizationWrite,
	}
	nodes.Get(rest.Op{}, a.trees.Get)
	nodes.List(rest.Op{
		Summary: "List and search tree nodes",
		Doc: "Without `parent_id` the whole tree with its root. With it the children of that node; with `recursive` " +
			"all nodes below it; with `depth` as many levels below it.",
	}, a.trees.List)
	rest.Handle(s, rest.Op{
		ID: "create-tree-node", Method: http.MethodPost, Path: "/v1/tree-nodes", Scope: auth.OrganizationWrite,
		Summary: "Add a tree node",
		Doc: "An empty `parent_id` is the root. A node's depth is at most 32. `code` is generated if it is missing. " +
			"With `is_pointer` 1 the node stands for the node `pointer_id`, of any tree. With `is_dynamic` 1 its " +
			"members are the users who meet `condition`, a CEL expression over `user`, the user record. For both the " +
			"caller needs the scopes of this API that rules give the members of nodes there.",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState, apperr.Unavailable},
		Request: exampleNewNode,
	}, a.createNode)
	rest.Handle(s, rest.Op{
		ID: "create-tree-nodes", Method: http.MethodPost, Path: "/v1/batch/tree-nodes", Scope: auth.OrganizationWrite,
		Summary: "Add tree nodes",
		Doc: "All or nothing, 1…1000. A node's parent may be another node of the batch: then `parent_ref` is the " +
			"parent's `ref`.",
		Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState, apperr.Unavailable},
		Request: map[string]any{"object_code": "company",
			"items": []any{map[string]any{"name": "R&D", "parent_id": "", "ref": "a"},
				map[string]any{"name": "平台组", "parent_ref": "a"}}},
	}, a.createNodes)
	rest.Handle(s, rest.Op{
		ID: "update-tree-node", Method: http.MethodPatch, Path: "/v1/tree-nodes/{id}", Scope: auth.OrganizationWrite,
		Summary: "Change or move a tree node",
		Doc: "JSON merge patch (RFC 7396). Another `parent_id` moves the node within its tree, with all " +
			"nodes below it, at most 50,000. For a move, another condition or another pointer, the caller needs the " +
			"scopes of this API that rules give the members there. A node with members becomes neither a pointer " +
			"nor dynamic.",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InUse, apperr.InvalidState, apperr.Unavailable},
		Request: map[string]any{"parent_id": "1048580"},
	}, rest.Update[tree.Node, TreeNodeInput](a.trees.Update))
	rest.Handle(s, rest.Op{
		ID: "delete-tree-node", Method: http.MethodDelete, Path: "/v1/tree-nodes/{id}", Scope: auth.OrganizationWrite,
		Summary: "Delete a tree node",
		Doc: "Its memberships and associations end. Refused while it has children, while pointers lead to it, " +
			"and for a root.",
		Errors: []apperr.Kind{apperr.HasChildren, apperr.InUse, apperr.InvalidState, apperr.Unavailable},
	}, a.deleteNode)
}

func (a *api) registerNodeActions(s *rest.Server) {
	for _, op := range []struct {
		word, summary string
		enabled       bool
	}{{"enable", "Enable a tree node", true}, {"disable", "Disable a tree node", false}} {
		rest.Handle(s, rest.Op{
			ID: op.word + "-tree-node", Method: http.MethodPost, Path: "/v1/tree-nodes/{id}/" + op.word,
			Scope: auth.OrganizationWrite, Summary: op.summary,
			Doc: "With `recursive` also all nodes below it, at most 50,000.",
		}, func(ctx context.Context, in *statusInput) (rest.Record[tree.Node], error) {
			doc, err := a.trees.SetStatus(ctx, in.ID, op.enabled, in.Recursive.Or(false))
			return rest.RecordOf[tree.Node](doc, err)
		})
	}
	rest.Handle(s, rest.Op{
		ID: "check-tree-nodes", Method: http.MethodPost, Path: "/v1/batch/tree-nodes-check",
		Scope: auth.OrganizationRead, Summary: "Find tree nodes by id, code or arn",
		Doc:     "The answer has a member for each given name: the node, or null. A code is `object_code/code`.",
		Request: map[string]any{"type": "code", "ids": []string{"company/platform"}},
	}, a.checkNodes)
}

// newNode is a node to be created, as the domain reads it.
type newNode struct {
	tree.Profile
	ObjectCode string `json:"object_code"`
	ParentID   string `json:"parent_id"`
	Ref        string `json:"ref"`
	ParentRef  string `json:"parent_ref"`
}

func (n newNode) draft() tree.Draft {
	return tree.Draft{Profile: n.Profile, ParentID: n.ParentID, Ref: n.Ref, Parent: n.ParentRef}
}

type createNodeInput struct {
	Body rest.JSON[NewTreeNode]
}

func (a *api) createNode(ctx context.Context, in *createNodeInput) (rest.Record[tree.Node], error) {
	var body newNode
	if err := in.Body.Into(&body); err != nil {
		return rest.Record[tree.Node]{}, err
	}
	return rest.RecordOf[tree.Node](a.trees.Create(ctx, body.ObjectCode, body.draft()))
}

type createNodesInput struct {
	Body rest.JSON[NewTreeNodes]
}

func (a *api) createNodes(ctx context.Context, in *createNodesInput) (rest.BatchOf[AddedTreeNode], error) {
	var body struct {
		ObjectCode string    `json:"object_code"`
		Items      []newNode `json:"items"`
	}
	if err := in.Body.Into(&body); err != nil {
		return rest.BatchOf[AddedTreeNode]{}, err
	}
	drafts := make([]tree.Draft, len(body.Items))
	for i, item := range body.Items {
		drafts[i] = item.draft()
	}
	return rest.BatchFrom[AddedTreeNode](a.trees.CreateMany(ctx, body.ObjectCode, drafts))
}

type deleteNodeInput struct {
	rest.ByID
	GrantsFlag
	ObjectCode string `query:"object_code" required:"true" minLength:"1" maxLength:"128" doc:"The code of the node's core object" example:"company"`
}

func (a *api) deleteNode(ctx context.Context, in *deleteNodeInput) (rest.Deleted, error) {
	return a.trees.Delete(ctx, in.ID, in.ObjectCode, in.refuse())
}

type statusInput struct {
	rest.ByID
	Recursive docstore.Flag `query:"recursive" doc:"Also all nodes below it"`
}

type checkNodesInput struct {
	Body struct {
		Type string   `json:"type" enum:"id,code,arn" doc:"What the ids are" example:"code"`
		IDs  []string `json:"ids" minItems:"1" maxItems:"1000" doc:"1…1000 names" example:"[\"company/platform\"]"`
	}
}

func (a *api) checkNodes(ctx context.Context, in *checkNodesInput) (map[string]*rest.Raw[tree.Node], error) {
	found, err := a.trees.Check(ctx, tree.Reference(in.Body.Type), in.Body.IDs)
	if err != nil {
		return nil, err
	}
	answer := make(map[string]*rest.Raw[tree.Node], len(in.Body.IDs))
	for _, name := range in.Body.IDs {
		answer[name] = nil
		if doc, ok := found[name]; ok {
			raw, err := rest.RawOf[tree.Node]([]docstore.Doc[tree.Node]{doc}, nil)
			if err != nil {
				return nil, err
			}
			answer[name] = &raw[0]
		}
	}
	return answer, nil
}

var exampleNewNode = map[string]any{"object_code": "company", "name": "平台组", "parent_id": "", "code": "platform"}
