package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

func (a *api) registerResources(s *rest.Server) {
	resources := rest.Resource[grant.Resource, grant.Resource, grant.ResourceFilter]{
		Server: s, ID: "resource", One: "a resource", Path: "/v1/resources",
		Read: auth.PermissionsRead, Write: auth.PermissionsWrite,
	}
	resources.Create(rest.Op{
		Errors: []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"application_id": "2001", "type": "data", "code": "orders",
			"actions": []any{map[string]any{"code": "read"}}},
	}, a.grants.CreateResource)
	resources.Delete(rest.Op{
		Doc: "The rules and the members of sets that name it are deleted, too.",
	}, a.grants.DeleteResource)
	resources.List(rest.Op{
		Summary: "List an application's resources", Experimental: true,
		Doc: "Or those with given `ids`, whatever their application.",
	}, a.grants.Resources)
	rest.Handle(s, rest.Op{
		ID: "get-resource", Method: http.MethodGet, Path: "/v1/resources/{id}", Scope: auth.PermissionsRead,
		Summary: "Get a resource",
		Doc:     "404, also if the resource is another application's.",
	}, a.getResource)
	rest.Handle(s, rest.Op{
		ID: "replace-resource", Method: http.MethodPut, Path: "/v1/resources/{id}", Scope: auth.PermissionsWrite,
		Summary: "Replace a resource",
		Doc:     "Use PATCH instead. `application_id`, `type`, `code` and `is_global` cannot be changed.",
		Errors:  []apperr.Kind{apperr.InUse}, Request: map[string]any{"name": "Orders"},
		Deprecated: &rest.Deprecation{
			Since: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), Successor: "/v1/resources/{id}",
		},
	}, a.replaceResource)
	rest.Handle(s, rest.Op{
		ID: "update-resource", Method: http.MethodPatch, Path: "/v1/resources/{id}", Scope: auth.PermissionsWrite,
		Summary: "Change a resource",
		Doc: "JSON merge patch (RFC 7396) of `name`, `description`, `uri`, `actions` and the extension properties. " +
			"An action that rules or sets name cannot be removed.",
		Errors: []apperr.Kind{apperr.InUse}, Request: map[string]any{"description": "All orders"},
	}, a.updateResource)
	rest.Handle(s, rest.Op{
		ID: "create-resources", Method: http.MethodPost, Path: "/v1/batch/resources", Scope: auth.PermissionsWrite,
		Summary: "Create resources",
		Doc:     "All or nothing. Each item is handled as by `create-resource`.",
		Errors:  []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"items": []any{
			map[string]any{"application_id": "2001", "type": "data", "code": "orders",
				"actions": []any{map[string]any{"code": "read"}}},
			map[string]any{"application_id": "2001", "type": "data", "code": "offers"},
		}},
	}, a.createResources)
	rest.Handle(s, rest.Op{
		ID: "delete-resources", Method: http.MethodDelete, Path: "/v1/batch/resources", Scope: auth.PermissionsWrite,
		Summary: "Delete resources",
		Doc:     "By `ids`, or by `application_id` and `codes`; all or none. Missing resources are not an error.",
		Request: map[string]any{"ids": []string{"1048578"}},
	}, a.deleteResources)
}

// OfApplication selects the records of an application.
type OfApplication struct {
	ApplicationID string `query:"application_id" required:"true" minLength:"1" maxLength:"64" doc:"The application's id" example:"2001"`
}

type getResourceInput struct {
	rest.ByID
	OfApplication
}

func (a *api) getResource(ctx context.Context, in *getResourceInput) (rest.Record[grant.Resource], error) {
	return rest.RecordOf[grant.Resource](a.grants.Resource(ctx, in.ID, in.ApplicationID))
}

// ResourceProfile is what can be changed of a resource; other members may be sent back as they are.
type ResourceProfile struct {
	rest.MembersOf[grant.Resource]
	ApplicationID string `json:"application_id,omitempty" readOnly:"true"`
	Type          string `json:"type,omitempty" readOnly:"true"`
	Code          string `json:"code,omitempty" readOnly:"true"`
	IsGlobal      string `json:"is_global,omitempty" readOnly:"true"`
}

type replaceResourceInput struct {
	rest.ByID
	Body rest.JSON[ResourceProfile]
}

func (a *api) replaceResource(ctx context.Context, in *replaceResourceInput) (rest.Empty, error) {
	_, err := a.grants.UpdateResource(ctx, in.ID, func(r *grant.Resource) error {
		r.ResourceProfile = grant.ResourceProfile{}
		return in.Body.Into(&r.ResourceProfile)
	})
	return rest.Empty{}, err
}

type updateResourceInput struct {
	rest.ByID
	Body rest.MergePatch[ResourceProfile]
}

func (a *api) updateResource(ctx context.Context, in *updateResourceInput) (rest.Empty, error) {
	_, err := a.grants.UpdateResource(ctx, in.ID,
		func(r *grant.Resource) error { return in.Body.Into(r) })
	return rest.Empty{}, err
}

type createResourcesInput struct {
	Body struct {
		Items []rest.JSON[rest.Input[grant.Resource]] `json:"items" minItems:"1" maxItems:"1000" nullable:"false" doc:"1…1000 resources; all or none"`
	}
}

func (a *api) createResources(ctx context.Context, in *createResourcesInput) (rest.BatchOf[grant.Resource], error) {
	drafts := make([]grant.Resource, len(in.Body.Items))
	for i, item := range in.Body.Items {
		if err := item.Into(&drafts[i]); err != nil {
			return rest.BatchOf[grant.Resource]{}, err
		}
	}
	return rest.BatchFrom[grant.Resource](a.grants.CreateResources(ctx, drafts))
}

type deleteResourcesInput struct {
	Body struct {
		IDs           []string `json:"ids,omitempty" minItems:"1" maxItems:"1000" doc:"1…1000 ids" example:"[\"1048578\"]"`
		ApplicationID string   `json:"application_id,omitempty" doc:"Or those of this application"`
		Type          string   `json:"type,omitempty" enum:"data,api,ui" doc:"Absent: all types"`
		Codes         []string `json:"codes,omitempty" minItems:"1" maxItems:"1000" doc:"… with these codes"`
	}
}

func (a *api) deleteResources(ctx context.Context, in *deleteResourcesInput) (rest.Empty, error) {
	b := in.Body
	var faults apperr.Faults
	faults.Check((len(b.IDs) > 0) != (len(b.Codes) > 0), "ids", "must be given, or codes, but not both")
	faults.Check((b.ApplicationID != "") == (len(b.Codes) > 0), "application_id",
		"must be given with codes, and only then")
	faults.Check(b.Type == "" || len(b.Codes) > 0, "type", "must not be given with ids")
	if err := faults.Err(); err != nil {
		return rest.Empty{}, err
	}
	err := a.grants.DeleteResources(ctx, b.IDs, grant.Selection{ApplicationID: b.ApplicationID, Type: b.Type,
		Codes: b.Codes})
	return rest.Empty{}, err
}
