package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

func (a *api) registerUnits(s *rest.Server) {
	units := rest.Resource[grant.Unit, grant.Unit, grant.UnitFilter]{
		Server: s, ID: "auth-unit", One: "an authorization unit", Many: "authorization units",
		Path: "/v1/auth-units",
		Read: auth.PermissionsRead, Write: auth.PermissionsWrite,
	}
	taken := []apperr.Kind{apperr.AlreadyExists}
	units.Create(rest.Op{
		Doc: "Each identity has at most one. Granting a rule creates a missing one.", Errors: taken,
		Request: map[string]any{"identity_id": "1048601", "identity_type": "node", "identity_name": "Finance"},
	}, a.grants.CreateUnit)
	units.List(rest.Op{}, a.grants.Units)
	units.Get(rest.Op{}, a.grants.Unit)
	units.Update(rest.Op{
		Doc: "JSON merge patch (RFC 7396). The rules stay with the unit, even if its identity is changed: for that " +
			"the caller needs the scopes of this API that they give.",
		Request: map[string]any{"description": "Books and payroll"}, Errors: taken,
	}, a.grants.UpdateUnit)
	units.Delete(rest.Op{
		Doc: "Its rules and, if it is a group, its members are deleted, too.", RecentSignIn: rest.FreshAlways,
	}, a.grants.DeleteUnit)
	rest.Handle(s, rest.Op{
		ID: "add-auth-unit-members", Method: http.MethodPost, Path: "/v1/auth-units/{id}/members",
		Scope: auth.PermissionsWrite, Summary: "Add users to a group",
		Doc: "1…1000 users, all or none. The answer lists the new members. The caller needs the scopes of this API " +
			"that rules give the group.",
		Errors:  []apperr.Kind{apperr.InvalidState, apperr.Unavailable},
		Request: map[string]any{"user_ids": []string{"1048601"}},
	}, a.addGroupMembers)
	rest.Handle(s, rest.Op{
		ID: "list-auth-unit-members", Method: http.MethodGet, Path: "/v1/auth-units/{id}/members",
		Scope: auth.PermissionsRead, Summary: "List the members of a group",
	}, a.listGroupMembers)
	rest.Handle(s, rest.Op{
		ID: "remove-auth-unit-members", Method: http.MethodDelete, Path: "/v1/auth-units/{id}/members",
		Scope: auth.PermissionsWrite, Summary: "Remove users from a group",
		Doc:     "1…1000 users, all or none. A user who is not a member is not an error.",
		Errors:  []apperr.Kind{apperr.InvalidState},
		Request: map[string]any{"user_ids": []string{"1048601"}},
	}, a.removeGroupMembers)
}

type groupMembersInput struct {
	rest.ByID
	Body struct {
		UserIDs []string `json:"user_ids" minItems:"1" maxItems:"1000" doc:"1…1000 ids of users" example:"[\"1048601\"]"`
	}
}

// GroupMembers are the members that were added.
type GroupMembers struct {
	Items []rest.Raw[grant.GroupMember] `json:"items" doc:"In the order of the request"`
}

func (a *api) addGroupMembers(ctx context.Context, in *groupMembersInput) (GroupMembers, error) {
	added, err := rest.BatchFrom[grant.GroupMember](a.grants.AddGroupMembers(ctx, in.ID, in.Body.UserIDs))
	return GroupMembers{added.Items}, err
}

// OfUnit names an authorization unit.
type OfUnit struct {
	UnitID string `path:"rid" maxLength:"64" doc:"The authorization unit's id" example:"1048590"`
}

type listGroupMembersInput struct {
	rest.ByID
	docstore.Paging
}

func (a *api) listGroupMembers(ctx context.Context, in *listGroupMembersInput) (rest.List[grant.GroupMember], error) {
	page, err := a.grants.GroupMembers(ctx, in.ID, in.Paging)
	return rest.ListOf[grant.GroupMember](in.Paging, page, err)
}

func (a *api) removeGroupMembers(ctx context.Context, in *groupMembersInput) (rest.Removed, error) {
	n, err := a.grants.RemoveGroupMembers(ctx, in.ID, in.Body.UserIDs)
	return rest.Removed{Removed: n}, err
}
