package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

func (a *api) registerSets(s *rest.Server) {
	sets := rest.Resource[grant.Set, grant.Set, grant.SetFilter]{
		Server: s, ID: "resource-set", One: "a resource set", Path: "/v1/resource-sets",
		Read: auth.PermissionsRead, Write: auth.PermissionsWrite,
	}
	sets.Get(rest.Op{}, a.grants.Set)
	sets.Delete(rest.Op{Doc: "Its members and the rules about it are deleted, too."}, a.grants.DeleteSet)
	rest.Handle(s, rest.Op{
		ID: "create-resource-set", Method: http.MethodPost, Path: "/v1/resource-sets", Scope: auth.PermissionsWrite,
		Summary: "Create a resource set",
		Doc:     "Needs the header X-Tenant-Id.", Errors: []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"application_id": "2001", "code": "sales"},
	}, a.createSet)
	sets.List(rest.Op{
		Summary: "List an application's resource sets", Experimental: true,
		Doc: "Or those with given `ids`, whatever their application.",
	}, a.grants.Sets)
	rest.Handle(s, rest.Op{
		ID: "replace-resource-set", Method: http.MethodPut, Path: "/v1/resource-sets/{id}",
		Scope: auth.PermissionsWrite, Summary: "Replace a resource set",
		Doc: "Needs the header X-Tenant-Id. `application_id` cannot be changed, and `code` not while rules name the " +
			"set: 409 `in_use`.",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InUse},
		Request: map[string]any{"code": "sales", "name": "Sales"},
	}, a.replaceSet)
}

// NamedTenant is the header X-Tenant-Id, which the specification requires for these operations. The server compares it
// with the credential.
type NamedTenant struct {
	TenantID string `header:"X-Tenant-Id" required:"true" doc:"The tenant's id"`
}

type createSetInput struct {
	NamedTenant
	Body rest.JSON[ResourceSetInput]
}

func (a *api) createSet(ctx context.Context, in *createSetInput) (rest.Record[grant.Set], error) {
	var draft grant.Set
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[grant.Set]{}, err
	}
	return rest.RecordOf[grant.Set](a.grants.CreateSet(ctx, draft))
}

type replaceSetInput struct {
	rest.ByID
	NamedTenant
	Body rest.JSON[ResourceSetInput]
}

func (a *api) replaceSet(ctx context.Context, in *replaceSetInput) (rest.Empty, error) {
	var draft grant.Set
	if err := in.Body.Into(&draft); err != nil {
		return rest.Empty{}, err
	}
	_, err := a.grants.UpdateSet(ctx, in.ID, draft.SetProfile)
	return rest.Empty{}, err
}

func (a *api) registerMembers(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "add-resource-set-members", Method: http.MethodPost, Path: "/v1/resource-sets/{id}/members",
		Scope:   auth.PermissionsWrite,
		Summary: "Add resources to a set",
		Doc: "Adds one resource and answers with its member, or adds the 1…1000 resources of `members`, all or none, " +
			"and answers with `items`. A resource must belong to the set's application or be global.",
		Errors:  []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"resource_id": "1048578", "actions": []string{"*"}},
	}, a.addMembers)
	rest.Handle(s, rest.Op{
		ID: "list-resource-set-members", Method: http.MethodGet, Path: "/v1/resource-sets/{id}/members",
		Scope:   auth.PermissionsRead,
		Summary: "List the members of a resource set",
	}, a.listMembers)
	rest.Handle(s, rest.Op{
		ID: "get-resource-set-member", Method: http.MethodGet, Path: "/v1/resource-sets/{sid}/members/{mid}",
		Scope:        auth.PermissionsRead,
		IfMatchParam: "mid", Summary: "Get a member of a resource set",
	}, a.getMember)
	rest.Handle(s, rest.Op{
		ID: "replace-resource-set-member", Method: http.MethodPut, Path: "/v1/resource-sets/{sid}/members/{mid}",
		Scope:        auth.PermissionsWrite,
		IfMatchParam: "mid", Summary: "Change the actions of a member of a resource set",
		Request: map[string]any{"actions": []string{"read"}},
	}, a.replaceMember)
	rest.Handle(s, rest.Op{
		ID: "remove-resource-set-member", Method: http.MethodDelete, Path: "/v1/resource-sets/{sid}/members/{mid}",
		Scope:        auth.PermissionsWrite,
		IfMatchParam: "mid", Summary: "Take a resource out of a set",
	}, a.removeMember)
}

type addMembersInput struct {
	rest.ByID
	Body rest.JSON[NewResourceSetMembers]
}

func (a *api) addMembers(ctx context.Context, in *addMembersInput) (rest.Raw[grant.Member], error) {
	var body struct {
		grant.Member
		Members []grant.Member `json:"members"`
	}
	if err := in.Body.Into(&body); err != nil {
		return rest.Raw[grant.Member]{}, err
	}
	if body.Members == nil {
		text, err := a.grants.AddMember(ctx, in.ID, body.Member)
		return rest.Raw[grant.Member]{JSON: text}, err
	}
	if body.ResourceID != "" || body.ResourceCode != "" {
		return rest.Raw[grant.Member]{}, apperr.Invalid("members",
			"must not be given together with resource_id or resource_code")
	}
	batch, err := a.grants.AddMembers(ctx, in.ID, body.Members)
	if err != nil {
		return rest.Raw[grant.Member]{}, err
	}
	text, err := json.Marshal(batch)
	return rest.Raw[grant.Member]{JSON: text}, err
}

// OfSet names a resource set.
type OfSet struct {
	SetID string `path:"sid" maxLength:"64" doc:"The resource set's id" example:"1048580"`
}

// MemberOfSet names a member of a resource set.
type MemberOfSet struct {
	OfSet
	MemberID string `path:"mid" maxLength:"64" doc:"The member's id" example:"1048590"`
}

type listMembersInput struct {
	rest.ByID
	docstore.Paging
	ResourceCode string `query:"resource_code" maxLength:"256"`
	ResourceType string `query:"resource_type" enum:"data,api,ui"`
}

func (a *api) listMembers(ctx context.Context, in *listMembersInput) (rest.List[grant.Member], error) {
	page, err := a.grants.Members(ctx, in.ID, in.ResourceCode, in.ResourceType, in.Paging)
	return rest.ListOf[grant.Member](in.Paging, page, err)
}

func (a *api) getMember(ctx context.Context, in *MemberOfSet) (rest.Record[grant.Member], error) {
	return rest.RecordOf[grant.Member](a.grants.Member(ctx, in.SetID, in.MemberID))
}

type replaceMemberInput struct {
	MemberOfSet
	Body rest.JSON[ResourceSetMemberInput]
}

func (a *api) replaceMember(ctx context.Context, in *replaceMemberInput) (rest.Empty, error) {
	var draft grant.Member
	if err := in.Body.Into(&draft); err != nil {
		return rest.Empty{}, err
	}
	_, err := a.grants.UpdateMember(ctx, in.SetID, in.MemberID, draft.Actions)
	return rest.Empty{}, err
}

func (a *api) removeMember(ctx context.Context, in *MemberOfSet) (rest.Deleted, error) {
	return a.grants.RemoveMember(ctx, in.SetID, in.MemberID)
}
