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

func (a *api) registerSets(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-resource-set", Method: http.MethodPost, Path: "/v1/resource-sets", Scope: auth.PermissionsWrite,
		Summary: "Create a resource set",
		Doc:     "Needs the header X-Tenant-Id.", Errors: []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"application_id": "2001", "code": "sales"}, Response: exampleSet,
	}, a.createSet)
	rest.Handle(s, rest.Op{
		ID: "list-resource-sets", Method: http.MethodGet, Path: "/v1/resource-sets", Scope: auth.PermissionsRead,
		Summary:    "List an application's resource sets",
		Doc:        "Or those with given `ids`, whatever their application.",
		Developing: true, Response: map[string]any{"items": []any{exampleSet}, "total": 1, "page_num": 1,
			"page_size": 20},
	}, a.listSets)
	rest.Handle(s, rest.Op{
		ID: "get-resource-set", Method: http.MethodGet, Path: "/v1/resource-sets/{id}", Scope: auth.PermissionsRead,
		Summary:  "Get a resource set",
		Response: exampleSet,
	}, rest.One[ResourceSet](a.grants.Set))
	rest.Handle(s, rest.Op{
		ID: "replace-resource-set", Method: http.MethodPut, Path: "/v1/resource-sets/{id}",
		Scope: auth.PermissionsWrite, Summary: "Replace a resource set",
		Doc:     "Needs the header X-Tenant-Id. `application_id` cannot be changed.",
		Errors:  []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"code": "sales", "name": "Sales"}, Response: map[string]any{},
	}, a.replaceSet)
	rest.Handle(s, rest.Op{
		ID: "delete-resource-set", Method: http.MethodDelete, Path: "/v1/resource-sets/{id}",
		Scope: auth.PermissionsWrite, Summary: "Delete a resource set",
		Doc: "Its members and the rules about it are deleted, too.", Response: map[string]any{"id": "1048580"},
	}, rest.Delete(a.grants.DeleteSet))
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

func (a *api) createSet(ctx context.Context, in *createSetInput) (rest.Record[ResourceSet], error) {
	var draft grant.Set
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[ResourceSet]{}, err
	}
	return rest.RecordOf[ResourceSet](a.grants.CreateSet(ctx, draft))
}

type listSetsInput struct {
	docstore.Paging
	OfApplicationOrIDs
	textindex.Search
	Code          string        `query:"code" maxLength:"256"`
	IncludeGlobal docstore.Flag `query:"include_global" doc:"true adds the global resource sets of other applications"`
}

func (a *api) listSets(ctx context.Context, in *listSetsInput) (rest.List[ResourceSet], error) {
	ids, err := in.readIDs()
	if err != nil {
		return rest.List[ResourceSet]{}, err
	}
	page, err := a.grants.Sets(ctx, grant.SetFilter{
		ApplicationID: in.ApplicationID, IDs: ids, Code: in.Code, Keyword: in.Keyword,
		IncludeGlobal: in.IncludeGlobal.Or(false),
	}, in.Paging)
	return rest.ListOf[ResourceSet](in.Paging, page, err)
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
		Errors: []apperr.Kind{apperr.AlreadyExists}, Request: map[string]any{"resource_id": "1048578",
			"actions": []string{"*"}}, Response: exampleMember,
	}, a.addMembers)
	rest.Handle(s, rest.Op{
		ID: "list-resource-set-members", Method: http.MethodGet, Path: "/v1/resource-sets/{id}/members",
		Scope:   auth.PermissionsRead,
		Summary: "List the members of a resource set", Response: map[string]any{"items": []any{exampleMember},
			"total": 1, "page_num": 1, "page_size": 20},
	}, a.listMembers)
	rest.Handle(s, rest.Op{
		ID: "get-resource-set-member", Method: http.MethodGet, Path: "/v1/resource-sets/{sid}/members/{mid}",
		Scope:  auth.PermissionsRead,
		Record: "mid", Summary: "Get a member of a resource set", Response: exampleMember,
	}, a.getMember)
	rest.Handle(s, rest.Op{
		ID: "replace-resource-set-member", Method: http.MethodPut, Path: "/v1/resource-sets/{sid}/members/{mid}",
		Scope:  auth.PermissionsWrite,
		Record: "mid", Summary: "Change the actions of a member of a resource set",
		Request: map[string]any{"actions": []string{"read"}}, Response: map[string]any{},
	}, a.replaceMember)
	rest.Handle(s, rest.Op{
		ID: "remove-resource-set-member", Method: http.MethodDelete, Path: "/v1/resource-sets/{sid}/members/{mid}",
		Scope:  auth.PermissionsWrite,
		Record: "mid", Summary: "Take a resource out of a set", Response: map[string]any{"id": "1048590"},
	}, a.removeMember)
}

type addMembersInput struct {
	rest.ByID
	Body rest.JSON[NewResourceSetMembers]
}

func (a *api) addMembers(ctx context.Context, in *addMembersInput) (rest.Raw[ResourceSetMember], error) {
	var body struct {
		grant.Member
		Members []grant.Member `json:"members"`
	}
	if err := in.Body.Into(&body); err != nil {
		return rest.Raw[ResourceSetMember]{}, err
	}
	one := body.Members == nil
	drafts := body.Members
	if one {
		drafts = []grant.Member{body.Member}
	} else if body.ResourceID != "" || body.ResourceCode != "" {
		return rest.Raw[ResourceSetMember]{}, apperr.Invalid("members",
			"must not be given together with resource_id or resource_code")
	}
	docs, err := a.grants.AddMembers(ctx, in.ID, drafts, !one)
	items, err := rest.RawOf[ResourceSetMember](docs, err)
	if err != nil || one {
		return first(items), err
	}
	text, err := json.Marshal(map[string]any{"items": items})
	return rest.Raw[ResourceSetMember]{JSON: text}, err
}

func first[W any](items []rest.Raw[W]) (one rest.Raw[W]) {
	if len(items) > 0 {
		one = items[0]
	}
	return one
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

func (a *api) listMembers(ctx context.Context, in *listMembersInput) (rest.List[ResourceSetMember], error) {
	page, err := a.grants.Members(ctx, in.ID, in.ResourceCode, in.ResourceType, in.Paging)
	return rest.ListOf[ResourceSetMember](in.Paging, page, err)
}

func (a *api) getMember(ctx context.Context, in *MemberOfSet) (rest.Record[ResourceSetMember], error) {
	return rest.RecordOf[ResourceSetMember](a.grants.Member(ctx, in.SetID, in.MemberID))
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

const exampleMeta = `"tenant_id":"acme","version":1,"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z",`

var exampleSet = json.RawMessage(`{"id":"1048580",` + exampleMeta +
	`"application_id":"2001","code":"sales","name":"Sales","description":"","is_global":"0","member_count":0}`)

var exampleMember = json.RawMessage(`{"id":"1048590",` + exampleMeta +
	`"set_id":"1048580","resource_id":"1048578","resource_code":"orders","resource_type":"data","actions":["*"]}`)
