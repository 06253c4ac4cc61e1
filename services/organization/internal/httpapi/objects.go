package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

func (a *api) registerObjects(s *rest.Server) {
	rest.Named[tree.Object](s, "CoreObject")
	rest.DescribedAs[questions.ManagedBy, rest.OrNull[questions.ManagedBy]](s)
	rest.Handle(s, rest.Op{
		ID: "create-core-object", Method: http.MethodPost, Path: "/v1/core-objects", Scope: auth.OrganizationWrite,
		Summary: "Create a core object",
		Doc: "Creates the organization relation and its root node. `root` has the members of the root; its code and " +
			"name are the core object's unless given.",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Request: map[string]any{"code": "company", "name": "Acme"},
	}, a.createObject)
	rest.Handle(s, rest.Op{
		ID: "list-core-objects", Method: http.MethodGet, Path: "/v1/core-objects", Scope: auth.OrganizationRead,
		Summary: "List core objects",
		Doc:     "All of them, sorted by `seq`.",
	}, a.listObjects)
	rest.Handle(s, rest.Op{
		ID: "get-core-object", Method: http.MethodGet, Path: "/v1/core-objects/{id}", Scope: auth.OrganizationRead,
		Summary: "Get a core object",
		Doc:     "An array with the core object if it has both `id` and `code`; otherwise an empty array.",
	}, a.getObject)
	rest.Handle(s, rest.Op{
		ID: "update-core-object", Method: http.MethodPatch, Path: "/v1/core-objects/{id}",
		Scope: auth.OrganizationWrite, Summary: "Change a core object",
		Doc:     "JSON merge patch (RFC 7396). The code cannot change: it is part of every node's `arn`.",
		Request: map[string]any{"description": "All of us"},
	}, rest.Update[tree.Object, rest.Input[tree.Object]](a.trees.UpdateObject))
	rest.Handle(s, rest.Op{
		ID: "delete-core-object", Method: http.MethodDelete, Path: "/v1/core-objects/{id}",
		Scope: auth.OrganizationWrite, Summary: "Delete a core object",
		Doc:    "Its root node is deleted, too. Refused while there are nodes below the root.",
		Errors: []apperr.Kind{apperr.HasChildren, apperr.InUse, apperr.Unavailable},
	}, a.deleteObject)
}

func (a *api) createObject(ctx context.Context, in *rest.Creation[NewCoreObject]) (rest.Record[tree.Object], error) {
	var body struct {
		tree.Object
		Root struct {
			tree.Profile
			ParentID string `json:"parent_id"`
		} `json:"root"`
	}
	if err := in.Body.Into(&body); err != nil {
		return rest.Record[tree.Object]{}, err
	}
	body.ManagedBy = nil // read-only
	doc, err := a.trees.CreateObject(ctx, body.Object,
		tree.Draft{Profile: body.Root.Profile, ParentID: body.Root.ParentID})
	return rest.RecordOf[tree.Object](doc, err)
}

func (a *api) listObjects(ctx context.Context, in *struct{ textindex.Search }) ([]rest.Raw[tree.Object], error) {
	return rest.RawOf[tree.Object](a.trees.Objects(ctx, in.Keyword))
}

type getObjectInput struct {
	rest.ByID
	Code string `query:"code" required:"true" minLength:"1" maxLength:"128" example:"company"`
}

func (a *api) getObject(ctx context.Context, in *getObjectInput) ([]rest.Raw[tree.Object], error) {
	return rest.RawOf[tree.Object](a.trees.ObjectIf(ctx, in.ID, in.Code))
}

type deleteObjectInput struct {
	rest.ByID
	GrantsFlag
}

func (a *api) deleteObject(ctx context.Context, in *deleteObjectInput) (rest.Deleted, error) {
	return a.trees.DeleteObject(ctx, in.ID, in.refuse())
}
