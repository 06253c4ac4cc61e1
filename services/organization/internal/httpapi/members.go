package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/organization/internal/member"
)

func (a *api) registerMembers(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "add-tree-user", Method: http.MethodPost, Path: "/v1/tree-users", Scope: auth.OrganizationWrite,
		Summary: "Add a member to a tree node",
		Doc: "The user's first membership in a tree is the primary one, until another is made primary. " +
			"The users service is asked whether the user exists. The caller needs the scopes of this API that rules " +
			"give the node's members.",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState, apperr.Unavailable},
		Request: map[string]any{"node_id": "1048579", "user_id": "1048601", "title": "架构师"},
	}, a.addMember)
	rest.Handle(s, rest.Op{
		ID: "add-tree-users", Method: http.MethodPost, Path: "/v1/batch/tree-users", Scope: auth.OrganizationWrite,
		Summary: "Add members to tree nodes",
		Doc: "All or nothing, 1…1000: `user_ids` to one `node_id`, or `items`. The caller needs the scopes of this " +
			"API that rules give the nodes' members.",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState, apperr.Unavailable},
		Request: map[string]any{"node_id": "1048579", "user_ids": []string{"1048601"}},
	}, a.addMembers)
	rest.Handle(s, rest.Op{
		ID: "get-tree-user", Method: http.MethodGet, Path: "/v1/tree-users/{id}", Scope: auth.OrganizationRead,
		Summary: "Get a membership",
	}, a.getMember)
	rest.Handle(s, rest.Op{
		ID: "update-tree-user", Method: http.MethodPatch, Path: "/v1/tree-users/{id}", Scope: auth.OrganizationWrite,
		Summary: "Change a membership",
		Doc: "JSON merge patch (RFC 7396) of `title`, `role`, `seq` and `is_primary`. A membership that " +
			"follows from a dynamic node's condition cannot be changed.",
		Errors: []apperr.Kind{apperr.InvalidState}, Request: map[string]any{"role": "leader"},
	}, a.updateMember)
	rest.Handle(s, rest.Op{
		ID: "remove-tree-user", Method: http.MethodDelete, Path: "/v1/tree-users/{id}", Scope: auth.OrganizationWrite,
		Summary: "End a membership",
		Errors:  []apperr.Kind{apperr.InvalidState},
	}, a.removeMember)
	rest.Handle(s, rest.Op{
		ID: "remove-tree-users", Method: http.MethodDelete, Path: "/v1/tree-users", Scope: auth.OrganizationWrite,
		Summary: "End memberships",
		Doc: "Those with the query's `id` or the body's `ids`, or those of the body's `user_ids` in `node_id`; all " +
			"or nothing. Memberships that do not exist are ignored.",
		Errors: []apperr.Kind{apperr.InvalidState}, Request: map[string]any{"node_id": "1048579",
			"user_ids": []string{"1048601"}},
	}, a.removeMembers)
}

type newMember struct {
	NodeID string `json:"node_id"`
	UserID string `json:"user_id"`
	member.Profile
}

func (n newMember) draft() member.Draft { return member.Draft(n) }

func recordOf(shown member.Shown, err error) (rest.Record[Membership], error) {
	return rest.Record[Membership]{JSON: shown.JSON, Tag: shown.Tag}, err
}

func rawOf(shown []member.Shown, err error) ([]rest.Raw[Membership], error) {
	raw := make([]rest.Raw[Membership], len(shown))
	for i := range shown {
		raw[i].JSON = shown[i].JSON
	}
	return raw, err
}

type addMemberInput struct {
	Body rest.JSON[NewMembership]
}

func (a *api) addMember(ctx context.Context, in *addMemberInput) (rest.Record[Membership], error) {
	var body newMember
	if err := in.Body.Into(&body); err != nil {
		return rest.Record[Membership]{}, err
	}
	return recordOf(a.members.Add(ctx, body.draft()))
}

type addMembersInput struct {
	Body rest.JSON[NewMemberships]
}

func (a *api) addMembers(ctx context.Context, in *addMembersInput) (rest.BatchOf[Membership], error) {
	var body struct {
		NodeID  string      `json:"node_id"`
		UserIDs []string    `json:"user_ids"`
		Items   []newMember `json:"items"`
	}
	if err := in.Body.Into(&body); err != nil {
		return rest.BatchOf[Membership]{}, err
	}
	var drafts []member.Draft
	switch {
	case (len(body.Items) > 0) == (len(body.UserIDs) > 0):
		return rest.BatchOf[Membership]{}, apperr.Invalid("", "must have either items or user_ids, at least one")
	case len(body.Items) > 0 && body.NodeID != "":
		return rest.BatchOf[Membership]{}, apperr.Invalid("node_id",
			"must not be given with items, which have their own")
	case len(body.Items) > 0:
		for _, item := range body.Items {
			drafts = append(drafts, item.draft())
		}
	default:
		for _, id := range body.UserIDs {
			drafts = append(drafts, member.Draft{NodeID: body.NodeID, UserID: id})
		}
	}
	added, err := a.members.AddMany(ctx, drafts)
	if len(body.UserIDs) > 0 {
		err = apperr.Relocate(err, amongUserIDs)
	}
	return rest.BatchFrom[Membership](added, err)
}

// amongUserIDs translates locations for requests with one node_id and user_ids: items[2].user_id is user_ids[2], and
// items[2].node_id is node_id.
func amongUserIDs(location string) string {
	item, member, _ := strings.Cut(location, ".")
	if member == "user_id" {
		return "user_ids" + strings.TrimPrefix(item, "items")
	}
	return member
}

func (a *api) getMember(ctx context.Context, in *rest.ByID) (rest.Record[Membership], error) {
	return recordOf(a.members.Get(ctx, in.ID))
}

type updateMemberInput struct {
	rest.ByID
	Body rest.MergePatch[MembershipInput]
}

func (a *api) updateMember(ctx context.Context, in *updateMemberInput) (rest.Record[Membership], error) {
	return recordOf(a.members.Update(ctx, in.ID, func(m *member.Membership) error { return in.Body.Into(m) }))
}

func (a *api) removeMember(ctx context.Context, in *rest.ByID) (rest.Deleted, error) {
	return rest.Deleted{ID: in.ID}, a.members.Remove(ctx, in.ID)
}

type removeMembersInput struct {
	ID   string `query:"id" maxLength:"64" doc:"A membership's id"`
	Body *struct {
		IDs     []string `json:"ids,omitempty" maxItems:"1000" doc:"Memberships' ids"`
		NodeID  string   `json:"node_id,omitempty" doc:"The node" example:"1048579"`
		UserIDs []string `json:"user_ids,omitempty" maxItems:"1000" doc:"Users whose memberships in node_id end"`
	}
}

func (a *api) removeMembers(ctx context.Context, in *removeMembersInput) (rest.Removed, error) {
	ids := []string{}
	if in.ID != "" {
		ids = append(ids, in.ID)
	}
	body := in.Body
	if body != nil {
		ids = append(ids, body.IDs...)
	}
	if body == nil || body.NodeID == "" && len(body.UserIDs) == 0 {
		if len(ids) == 0 {
			return rest.Removed{}, apperr.Invalid("id",
				"or body.ids, or body.node_id with body.user_ids, must be given")
		}
		n, err := a.members.RemoveMany(ctx, ids)
		return rest.Removed{Removed: n}, err
	}
	var faults apperr.Faults
	faults.Check(len(ids) == 0, "ids", "must not be given with node_id and user_ids, nor query.id")
	faults.Check(body.NodeID != "", "node_id", "must be given with user_ids")
	faults.Check(len(body.UserIDs) > 0, "user_ids", "must be given with node_id, at least one")
	if err := faults.Err(); err != nil {
		return rest.Removed{}, err
	}
	n, err := a.members.RemoveFrom(ctx, body.NodeID, body.UserIDs)
	return rest.Removed{Removed: n}, err
}
