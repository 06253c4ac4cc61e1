package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/organization/internal/link"
)

func (a *api) registerAssociations(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-tree-association", Method: http.MethodPost, Path: "/v1/tree-associations",
		Scope: auth.OrganizationWrite, Summary: "Link nodes of two trees",
		Doc: "Such as a project to a department. There is at most one link of a type from one node to another; it " +
			"ends when either node is deleted.",
		Errors:   []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Request:  map[string]any{"source_node_id": "1048700", "target_node_id": "1048579", "type": "owner"},
		Response: exampleAssociation,
	}, rest.Create[TreeAssociation, NewTreeAssociation](a.links.Add))
	rest.Handle(s, rest.Op{
		ID: "list-tree-associations", Method: http.MethodGet, Path: "/v1/tree-associations",
		Scope: auth.OrganizationRead, Summary: "List tree associations",
		Response: map[string]any{"items": []any{exampleAssociation}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listAssociations)
	rest.Handle(s, rest.Op{
		ID: "get-tree-association", Method: http.MethodGet, Path: "/v1/tree-associations/{id}",
		Scope: auth.OrganizationRead, Summary: "Get a tree association",
		Response: exampleAssociation,
	}, rest.One[TreeAssociation](a.links.Get))
	rest.Handle(s, rest.Op{
		ID: "delete-tree-association", Method: http.MethodDelete, Path: "/v1/tree-associations/{id}",
		Scope: auth.OrganizationWrite, Summary: "Delete a tree association",
		Response: map[string]any{"id": "1048710"},
	}, a.deleteAssociation)
	rest.Handle(s, rest.Op{
		ID: "delete-tree-associations", Method: http.MethodDelete, Path: "/v1/tree-associations",
		Scope: auth.OrganizationWrite, Summary: "Delete tree associations",
		Doc:     "Those with the query's `id` or the body's `ids`, all or nothing. Ids that do not exist are ignored.",
		Request: map[string]any{"ids": []string{"1048710"}}, Response: map[string]any{"removed": 1},
	}, a.deleteAssociations)
}

type listAssociationsInput struct {
	Node   string `query:"node_id" maxLength:"64" doc:"Source or target"`
	Source string `query:"source_node_id" maxLength:"64"`
	Target string `query:"target_node_id" maxLength:"64"`
	Type   string `query:"type" maxLength:"64" doc:"The exact type" example:"owner"`
	docstore.Paging
}

func (a *api) listAssociations(ctx context.Context, in *listAssociationsInput) (rest.List[TreeAssociation], error) {
	filter := link.Filter{Node: in.Node, Source: in.Source, Target: in.Target, Type: in.Type}
	page, err := a.links.List(ctx, filter, in.Paging)
	return rest.ListOf[TreeAssociation](in.Paging, page, err)
}

func (a *api) deleteAssociation(ctx context.Context, in *rest.ByID) (rest.Deleted, error) {
	return rest.Deleted{ID: in.ID}, a.links.Remove(ctx, in.ID)
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

var exampleAssociation = map[string]any{
	"id": "1048710", "tenant_id": "acme", "version": 1, "time_created": "2026-01-31T09:30:00.000Z",
	"time_modified":  "2026-01-31T09:30:00.000Z",
	"source_node_id": "1048700", "target_node_id": "1048579", "type": "owner", "description": "",
}
