package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

func (a *api) registerUnits(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-auth-unit", Method: http.MethodPost, Path: "/v1/auth-units", Scope: auth.PermissionsWrite,
		Summary:  "Create an authorization unit",
		Doc:      "Each identity has at most one. Granting a rule creates a missing one.",
		Errors:   []apperr.Kind{apperr.AlreadyExists},
		Request:  map[string]any{"identity_id": "1048601", "identity_type": "node", "identity_name": "Finance"},
		Response: exampleUnit,
	}, rest.Create[AuthUnit, AuthUnitInput](a.grants.CreateUnit))
	rest.Handle(s, rest.Op{
		ID: "list-auth-units", Method: http.MethodGet, Path: "/v1/auth-units", Scope: auth.PermissionsRead,
		Summary:  "List authorization units",
		Response: map[string]any{"items": []any{exampleUnit}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listUnits)
	rest.Handle(s, rest.Op{
		ID: "get-auth-unit", Method: http.MethodGet, Path: "/v1/auth-units/{id}", Scope: auth.PermissionsRead,
		Summary:  "Get an authorization unit",
		Response: exampleUnit,
	}, rest.One[AuthUnit](a.grants.Unit))
	rest.Handle(s, rest.Op{
		ID: "update-auth-unit", Method: http.MethodPatch, Path: "/v1/auth-units/{id}", Scope: auth.PermissionsWrite,
		Summary: "Change an authorization unit",
		Doc:     "JSON merge patch (RFC 7396). The rules stay with the unit, even if its identity is changed.",
		Errors:  []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"description": "Books and payroll"}, Response: exampleUnit,
	}, rest.Update[AuthUnit, AuthUnitInput](a.grants.UpdateUnit))
	rest.Handle(s, rest.Op{
		ID: "delete-auth-unit", Method: http.MethodDelete, Path: "/v1/auth-units/{id}", Scope: auth.PermissionsWrite,
		Fresh:    rest.FreshAlways,
		Summary:  "Delete an authorization unit",
		Doc:      "Its rules and, if it is a group, its members are deleted, too.",
		Response: map[string]any{"id": "1048590"},
	}, rest.Delete(a.grants.DeleteUnit))
	rest.Handle(s, rest.Op{
		ID: "add-auth-unit-members", Method: http.MethodPost, Path: "/v1/auth-units/{id}/members",
		Scope: auth.PermissionsWrite, Summary: "Add users to a group",
		Doc:      "1…1000 users, all or none. The answer lists the new members.",
		Errors:   []apperr.Kind{apperr.InvalidState},
		Request:  map[string]any{"user_ids": []string{"1048601"}},
		Response: map[string]any{"items": []any{exampleGroupMember}},
	}, a.addGroupMembers)
	rest.Handle(s, rest.Op{
		ID: "list-auth-unit-members", Method: http.MethodGet, Path: "/v1/auth-units/{id}/members",
		Scope: auth.PermissionsRead, Summary: "List the members of a group",
		Response: map[string]any{"items": []any{exampleGroupMember}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listGroupMembers)
	rest.Handle(s, rest.Op{
		ID: "remove-auth-unit-members", Method: http.MethodDelete, Path: "/v1/auth-units/{id}/members",
		Scope: auth.PermissionsWrite, Summary: "Remove users from a group",
		Doc:     "1…1000 users, all or none. A user who is not a member is not an error.",
		Errors:  []apperr.Kind{apperr.InvalidState},
		Request: map[string]any{"user_ids": []string{"1048601"}}, Response: map[string]any{"removed": 1},
	}, a.removeGroupMembers)
}

// IdentityFilter selects records by their identity.
type IdentityFilter struct {
	IdentityID   string `query:"identity_id" maxLength:"64"`
	IdentityType string `query:"identity_type" enum:"user,node,core_object,application,group,everyone"`
	IdentityName string `query:"identity_name" maxLength:"256"`
}

func (f IdentityFilter) filter() grant.IdentityFilter {
	return grant.IdentityFilter{IdentityID: f.IdentityID, IdentityType: f.IdentityType, IdentityName: f.IdentityName}
}

type listUnitsInput struct {
	docstore.Paging
	IdentityFilter
	textindex.Search
	rest.Selection
}

func (a *api) listUnits(ctx context.Context, in *listUnitsInput) (rest.List[AuthUnit], error) {
	var faults apperr.Faults
	filter := grant.UnitFilter{IdentityFilter: in.filter(), Keyword: in.Keyword, IDs: in.ReadIDs(&faults)}
	if err := faults.Err(); err != nil {
		return rest.List[AuthUnit]{}, err
	}
	page, err := a.grants.Units(ctx, filter, in.Paging)
	return rest.ListOf[AuthUnit](in.Paging, page, err)
}

type groupMembersInput struct {
	rest.ByID
	Body struct {
		UserIDs []string `json:"user_ids" minItems:"1" maxItems:"1000" doc:"1…1000 ids of users" example:"[\"1048601\"]"`
	}
}

// GroupMembers are the members that were added.
type GroupMembers struct {
	Items []rest.Raw[GroupMember] `json:"items" doc:"In the order of the request"`
}

func (a *api) addGroupMembers(ctx context.Context, in *groupMembersInput) (GroupMembers, error) {
	docs, err := a.grants.AddGroupMembers(ctx, in.ID, in.Body.UserIDs)
	items, err := rest.RawOf[GroupMember](docs, err)
	return GroupMembers{items}, err
}

// OfUnit names an authorization unit.
type OfUnit struct {
	UnitID string `path:"rid" maxLength:"64" doc:"The authorization unit's id" example:"1048590"`
}

type listGroupMembersInput struct {
	rest.ByID
	docstore.Paging
}

func (a *api) listGroupMembers(ctx context.Context, in *listGroupMembersInput) (rest.List[GroupMember], error) {
	page, err := a.grants.GroupMembers(ctx, in.ID, in.Paging)
	return rest.ListOf[GroupMember](in.Paging, page, err)
}

func (a *api) removeGroupMembers(ctx context.Context, in *groupMembersInput) (rest.Removed, error) {
	n, err := a.grants.RemoveGroupMembers(ctx, in.ID, in.Body.UserIDs)
	return rest.Removed{Removed: n}, err
}

var exampleUnit = json.RawMessage(`{"id":"1048590",` + exampleMeta +
	`"identity_id":"1048601","identity_type":"node","identity_name":"Finance","description":"","rule_count":1}`)

var exampleGroupMember = json.RawMessage(`{"id":"1048591",` + exampleMeta +
	`"auth_unit_id":"1048590","user_id":"1048601"}`)
