package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/organization/internal/link"
)

func (a *api) registerAssociations(s *rest.Server) {
	rest.Named[link.Association](s, "TreeAssociation")
	associations := rest.Resource[link.Association, link.Draft, link.Filter]{
		Server: s, ID: "tree-association", One: "a tree association",
		Many: "tree associations", Path: "/v1/tree-associations",
		Read: auth.OrganizationRead, Write: auth.OrganizationWrite,
	}
	rest.Handle(s, rest.Op{
		ID: "create-tree-association", Method: http.MethodPost, Path: "/v1/tree-associations",
		Scope: auth.OrganizationWrite, Summary: "Link nodes of two trees",
		Doc: "Such as a project to a department. There is at most one link of a type from one node to another; it " +
			"ends when either node is deleted.",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Request: map[string]any{"source_node_id": "1048700", "target_node_id": "1048579", "type": "owner"},
	}, rest.Create[link.Association, NewTreeAssociation](a.links.Add))
	associations.List(rest.Op{}, a.links.List)
	associations.Get(rest.Op{}, a.links.Get)
	associations.Delete(rest.Op{}, a.links.Remove)
	rest.Handle(s, rest.Op{
		ID: "delete-tree-associations", Method: http.MethodDelete, Path: "/v1/tree-associations",
		Scope: auth.OrganizationWrite, Summary: "Delete tree associations",
		Doc:     "Those with the query's `id` or the body's `ids`, all or nothing. Ids that do not exist are ignored.",
		Request: map[string]any{"ids": []string{"1048710"}},
	}, a.deleteAssociations)
}

// NewTreeAssociation is an association to create.
type NewTreeAssociation struct {
	rest.MembersOf[link.Association]
	SourceNodeID string `json:"source_node_id"`
	TargetNodeID string `json:"target_node_id"`
}

type deleteAssociationsInput struct {
	ID   string `query:"id" maxLength:"64" doc:"A tree association's id"`
	Body *struct {
		IDs []string `json:"ids" minItems:"1" maxItems:"1000" doc:"1…1000 ids" example:"[\"1048710\"]"`
	}
}

func (a *api) deleteAssociations(ctx context.Context, in *deleteAssociationsInput) (rest.Removed, error) {
	var ids []string
	if in.ID != "" {
		ids = append(ids, in.ID)
	}
	if in.Body != nil {
		ids = append(ids, in.Body.IDs...)
	}
	if len(ids) == 0 {
		return rest.Removed{}, apperr.Invalid("id", "or body.ids must be given")
	}
	n, err := a.links.RemoveMany(ctx, ids)
	return rest.Removed{Removed: n}, err
}
