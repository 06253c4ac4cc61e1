package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

func (a *api) registerObjects(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-core-object", Method: http.MethodPost, Path: "/v1/core-objects", Scope: auth.OrganizationWrite,
		Summary: "Create a core object",
		Doc: "Creates the organization relation and its root node. `root` has the members of the root; its code and " +
			"name are the core object's unless given.",
		Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState}, Request: map[string]any{"code": "company",
			"name": "Acme"}, Response: exampleObject,
	}, a.createObject)
	rest.Handle(s, rest.Op{
		ID: "list-core-objects", Method: http.MethodGet, Path: "/v1/core-objects", Scope: auth.OrganizationRead,
		Summary: "List core objects",
		Doc:     "All of them, sorted by `seq`.", Response: []any{exampleObject},
	}, a.listObjects)
	rest.Handle(s, rest.Op{
		ID: "get-core-object", Method: http.MethodGet, Path: "/v1/core-objects/{id}", Scope: auth.OrganizationRead,
		Summary:  "Get a core object",
		Doc:      "An array with the core object if it has both `id` and `code`; otherwise an empty array.",
		Response: []any{exampleObject},
	}, a.getObject)
	rest.Handle(s, rest.Op{
		ID: "update-core-object", Method: http.MethodPatch, Path: "/v1/core-objects/{id}",
		Scope: auth.OrganizationWrite, Summary: "Change a core object",
		Doc:     "JSON merge patch (RFC 7396). The code cannot change: it is part of every node's `arn`.",
		Request: map[string]any{"description": "All of us"}, Response: exampleObject,
	}, rest.Update[CoreObject, CoreObjectInput](a.trees.UpdateObject))
	rest.Handle(s, rest.Op{
		ID: "delete-core-object", Method: http.MethodDelete, Path: "/v1/core-objects/{id}",
		Scope: auth.OrganizationWrite, Summary: "Delete a core object",
		Doc:      "Its root node is deleted, too. Refused while there are nodes below the root.",
		Errors:   []apperr.Kind{apperr.HasChildren, apperr.InUse, apperr.Unavailable},
		Response: map[string]any{"id": "1048577"},
	}, a.deleteObject)
}

type createObjectInput struct {
	Body rest.JSON[NewCoreObject]
}

func (a *api) createObject(ctx context.Context, in *createObjectInput) (rest.Record[CoreObject], error) {
	var body struct {
		tree.Object
		Root struct {
			tree.Profile
			ParentID string `json:"parent_id"`
		} `json:"root"`
	}
	if err := in.Body.Into(&body); err != nil {
		return rest.Record[CoreObject]{}, err
	}
	body.ManagedBy = nil // read-only
	doc, err := a.trees.CreateObject(ctx, body.Object,
		tree.Draft{Profile: body.Root.Profile, ParentID: body.Root.ParentID})
	return rest.RecordOf[CoreObject](doc, err)
}

func (a *api) listObjects(ctx context.Context, in *struct{ textindex.Search }) ([]rest.Raw[CoreObject], error) {
	return rest.RawOf[CoreObject](a.trees.Objects(ctx, in.Keyword))
}

type getObjectInput struct {
	rest.ByID
	Code string `query:"code" required:"true" minLength:"1" maxLength:"128" example:"company"`
}

func (a *api) getObject(ctx context.Context, in *getObjectInput) ([]rest.Raw[CoreObject], error) {
	return rest.RawOf[CoreObject](a.trees.ObjectIf(ctx, in.ID, in.Code))
}

type deleteObjectInput struct {
	rest.ByID
	GrantsFlag
}

func (a *api) deleteObject(ctx context.Context, in *deleteObjectInput) (rest.Deleted, error) {
	return a.trees.DeleteObject(ctx, in.ID, in.refuse())
}

var exampleObject = json.RawMessage(
	`{"id":"1048577","tenant_id":"acme","version":1,"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z",` +
		`"name":"Acme","description":"","status":"1","seq":0,"sys_ext_props":{},"free_ext_props":{},"code":"company","root_node_id":"1048578","node_count":1,"managed_by":null}`)
