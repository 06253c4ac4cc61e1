package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

func (a *api) registerPrivileges(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-privileges", Method: http.MethodGet, Path: "/v1/privileges", Scope: auth.PermissionsRead,
		Summary: "List an application's grants",
		Doc: "One item for each identity, object and rule that is valid now. With `identity_id` the list has what " +
			"reaches the identity with this id, also by inheritance (of `identity_type`, or of every type that has " +
			"it); otherwise what is granted to each identity itself. `expand=true` shows the resources of resource " +
			"sets instead of the sets. `page_sort` takes every member that is a text, and `time_created`, the " +
			"rule's; the default is `rule_id`, " +
			"whose pages cost the same however many rules there are.",
		Errors: []apperr.Kind{apperr.InvalidState, apperr.Unavailable},
		Response: map[string]any{"items": []any{map[string]any{
			"identity_id": "1048601", "identity_type": "node", "identity_name": "Finance", "application_id": "2001",
			"object_type": "data",
			"object_id":   "1048578", "object_code": "orders", "object_name": "Orders", "actions": []string{"read"},
			"affect":  "affect",
			"rule_id": "1048600", "auth_unit_id": "1048590", "inherited_from": "",
		}}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listPrivileges)
}

// Privilege is a grant that reaches an identity.
type Privilege struct {
	Identity
	ApplicationID string   `json:"application_id" doc:"The application" example:"2001"`
	ObjectType    string   `json:"object_type" enum:"data,api,ui,res,res_set,app" doc:"What the object is"`
	ObjectID      string   `json:"object_id" doc:"Id of the resource, resource set or application; empty for type res" example:"1048578"`
	ObjectCode    string   `json:"object_code" doc:"For type res a pattern; empty: all resources" example:"orders"`
	ObjectName    string   `json:"object_name" doc:"How it is shown" example:"Orders"`
	Actions       []string `json:"actions" doc:"What may be done with it; * means all" example:"[\"read\"]"`
	Affect        string   `json:"affect" enum:"affect,deny" doc:"affect allows, deny goes before"`
	RuleID        string   `json:"rule_id" doc:"The rule that says so" example:"1048600"`
	AuthUnitID    string   `json:"auth_unit_id" doc:"The unit that has the rule" example:"1048590"`
	InheritedFrom string   `json:"inherited_from" doc:"Id of the unit that has the rule, if it is another identity's; else empty"`
}

type listPrivilegesInput struct {
	docstore.Paging
	OfApplication
	grant.IdentityFilter
	ObjectType string        `query:"object_type" enum:"data,api,ui,res_set,app"`
	ObjectCode string        `query:"object_code" maxLength:"256"`
	Affect     string        `query:"affect" enum:"affect,deny"`
	Expand     docstore.Flag `query:"expand" doc:"true: resource sets are shown as their resources"`
	Consistency
}

func (a *api) listPrivileges(ctx context.Context, in *listPrivilegesInput) (rest.List[Privilege], error) {
	query := []string{"privileges", in.ApplicationID, in.IdentityType, in.IdentityID, in.IdentityName, in.ObjectType,
		in.ObjectCode, in.Affect, string(in.Expand), in.Sort}
	page, err := privilegePage(ctx, in.Paging, query)
	if err != nil {
		return rest.List[Privilege]{}, err
	}
	state, err := a.state(ctx, in.Token)
	if err != nil {
		return rest.List[Privilege]{}, err
	}
	f := engine.PrivilegeFilter{
		Identity: engine.Identity{Type: in.IdentityType, ID: in.IdentityID}, ApplicationID: in.ApplicationID,
		Name:       in.IdentityName,
		ObjectType: in.ObjectType, ObjectCode: in.ObjectCode, Affect: in.Affect, Expand: in.Expand.Or(false),
		Now: a.clock.Now().Millis(),
	}
	var done func()
	f.Work, done = a.work(ctx)
	defer done()
	found, err := state.Privileges(ctx, f, page)
	if err != nil {
		return rest.List[Privilege]{}, answerable(err)
	}
	list := rest.List[Privilege]{Total: -1, Num: in.Num, Size: in.Size}
	if page.Count {
		list.Total, list.More = int64(found.Total), found.More
	}
	for i := range found.Lines {
		list.Items = append(list.Items, appendEncoded(nil, privilege(&found.Lines[i])))
	}
	if found.Next {
		last, _ := json.Marshal(found.Lines[len(found.Lines)-1].Key(page.Sort)) // texts always marshal
		list.Next = docstore.PageToken(ctx, string(last), query...)
	}
	return list, nil
}

// privilegePage is the requested page of a list that was asked for with query.
func privilegePage(ctx context.Context, in docstore.Paging, query []string) (engine.PrivilegePage, error) {
	asked, err := in.Query(docstore.Filter{}, engine.PrivilegeMembers...)
	if err != nil {
		return engine.PrivilegePage{}, err
	}
	page := engine.PrivilegePage{Offset: asked.Offset, Limit: asked.Limit, Count: asked.Count}
	for _, order := range asked.Sort {
		page.Sort = append(page.Sort, engine.By{Member: order.Index, Desc: order.Desc})
	}
	if in.After == "" {
		return page, nil
	}
	after, err := docstore.ReadPageToken(ctx, in.After, query...)
	if err == nil && (json.Unmarshal([]byte(after), &page.After) != nil || !page.Follows()) {
		err = apperr.Invalid("page_token", "is not a page token of this list")
	}
	return page, err
}

// privilege converts a privilege.
func privilege(p *engine.Privilege) Privilege {
	wire := Privilege{
		Identity:      Identity{p.Identity.ID, p.Identity.Type, p.Name},
		ApplicationID: p.Rule.ApplicationID,
		ObjectType:    p.ObjectType, ObjectID: p.ObjectID, ObjectCode: p.ObjectCode, ObjectName: p.ObjectName,
		Actions: p.Actions, Affect: affect(p.Rule), RuleID: p.Rule.ID, AuthUnitID: p.Rule.UnitID,
	}
	if p.Inherited {
		wire.InheritedFrom = p.Rule.UnitID
	}
	return wire
}

func (a *api) registerApplications(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-authorized-applications", Method: http.MethodGet, Path: "/v1/authorized-applications",
		Scope:   auth.PermissionsRead,
		Summary: "List the applications that an identity may use",
		Doc:     "By rules of type `app`, inherited included, in the order of ids.",
		Errors:  []apperr.Kind{apperr.InvalidState, apperr.Unavailable},
		Response: map[string]any{"items": []any{map[string]any{"application_id": "2001"}}, "total": 1, "page_num": 1,
			"page_size": 20},
	}, a.listApplications)
	example := map[string]any{"application_ids": []string{"2001"},
		"identities": []any{map[string]any{"identity_id": "1048601", "identity_type": "node"}}}
	rest.Handle(s, rest.Op{
		ID: "authorize-applications", Method: http.MethodPost, Path: "/v1/application-authorizations",
		Scope:   auth.PermissionsWrite,
		Summary: "Let identities use applications",
		Doc: "With `affect` deny the use is forbidden. All or none; applications times identities must be at most " +
			"1000.",
		Request: example,
	}, a.authorize)
	rest.Handle(s, rest.Op{
		ID: "unauthorize-applications", Method: http.MethodDelete, Path: "/v1/application-authorizations",
		Scope:   auth.PermissionsWrite,
		Summary: "Revoke authorizations of applications",
		Doc: "Removes the rules of type `app` that have the same `affect`, whatever their condition and time. " +
			"Missing rules are not an error.",
		Errors:  []apperr.Kind{apperr.InvalidState},
		Request: example,
	}, a.unauthorize)
}

// AuthorizedApplication is an application that an identity may use.
type AuthorizedApplication struct {
	ApplicationID string `json:"application_id" doc:"The application" example:"2001"`
}

type listApplicationsInput struct {
	docstore.Paging
	IdentityID   string `query:"identity_id" required:"true" minLength:"1" maxLength:"64"`
	IdentityType string `query:"identity_type" required:"true" enum:"user,node,core_object,application,group,everyone"`
	Consistency
}

func (a *api) listApplications(ctx context.Context, in *listApplicationsInput) (rest.List[AuthorizedApplication],
	error) {
	state, err := a.state(ctx, in.Token)
	if err != nil {
		return rest.List[AuthorizedApplication]{}, err
	}
	work, done := a.work(ctx)
	defer done()
	found, err := state.Objects(ctx, &engine.Question{
		Identity: engine.Identity{Type: in.IdentityType, ID: in.IdentityID}, ObjectType: engine.App,
		Now: a.clock.Now().Millis(), Work: work,
	})
	if err != nil {
		return rest.List[AuthorizedApplication]{}, answerable(err)
	}
	return pageOf[AuthorizedApplication](ctx, in.Paging, answerList[engine.Object]{
		entries: found,
		key:     objectKey,
		append: func(b []byte, o engine.Object) []byte {
			return appendEncoded(b, AuthorizedApplication{o.ApplicationID})
		},
		query: []string{"applications", in.IdentityType, in.IdentityID},
	})
}

// ApplicationAuthorizations are applications and who may use them.
type ApplicationAuthorizations struct {
	ApplicationIDs []string   `json:"application_ids" minItems:"1" maxItems:"1000" doc:"1…1000 applications"`
	Identities     []Identity `json:"identities" minItems:"1" maxItems:"1000" doc:"1…1000 who may use them"`
	Affect         string     `json:"affect,omitempty" enum:"affect,deny" doc:"Absent: affect"`
}

type authorizeInput struct {
	Body rest.JSON[ApplicationAuthorizations]
}

// authorizations is the body in the form of the domain.
type authorizations struct {
	ApplicationIDs []string         `json:"application_ids"`
	Identities     []grant.Identity `json:"identities"`
	Affect         string           `json:"affect"`
}

func (a *api) authorize(ctx context.Context, in *authorizeInput) (rest.Empty, error) {
	var body authorizations
	if err := in.Body.Into(&body); err != nil {
		return rest.Empty{}, err
	}
	rules := make([]grant.RuleProfile, len(body.ApplicationIDs))
	for i, id := range body.ApplicationIDs {
		rules[i] = grant.RuleProfile{ApplicationID: id, Type: engine.App, Affect: body.Affect}
	}
	return rest.Empty{}, apperr.Relocate(a.grants.Grant(ctx, body.Identities, rules), amongApplications)
}

func (a *api) unauthorize(ctx context.Context, in *authorizeInput) (rest.Empty, error) {
	var body authorizations
	if err := in.Body.Into(&body); err != nil {
		return rest.Empty{}, err
	}
	return rest.Empty{}, apperr.Relocate(a.grants.Withdraw(ctx, body.Identities, body.ApplicationIDs, body.Affect),
		amongApplications)
}

// amongApplications is the location in the body of a fault that the domain found in rules[i].
func amongApplications(location string) string {
	item, _, _ := strings.Cut(location, ".")
	if i, ok := strings.CutPrefix(item, "rules"); ok {
		return "application_ids" + i
	}
	return location
}
