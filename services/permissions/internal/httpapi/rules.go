package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

func (a *api) registerRules(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "grant-auth-rules", Method: http.MethodPost, Path: "/v1/batch/auth-unit-rules",
		Scope: auth.PermissionsWrite, Summary: "Grant rules to identities",
		Doc: "Creates every rule for every identity: at most 1000 rules, all or none. Missing units are created; a " +
			"rule that exists already is not created again. The rules of a tenant can have at most 1000 different " +
			"conditions. A rule on an api resource whose code is a scope of this API gives that scope, so the " +
			"caller must have it.",
		Errors: []apperr.Kind{apperr.InvalidState},
		Request: map[string]any{
			"identities": []any{map[string]any{"identity_id": "1048601", "identity_type": "node",
				"identity_name": "Finance"}},
			"rules": []any{map[string]any{"application_id": "2001", "type": "data", "code": "orders",
				"actions": []string{"read"}}},
		},
	}, a.grantRules)
	rest.Handle(s, rest.Op{
		ID: "revoke-auth-rules", Method: http.MethodDelete, Path: "/v1/batch/auth-unit-rules",
		Scope: auth.PermissionsWrite, Summary: "Revoke rules",
		Doc: "Revokes the rules `rule_ids`, or those of the unit `auth_unit_id`: all, or only those with the given " +
			"`application_id`, `type` and `codes`. All or none. Missing rules are not an error.",
		Errors:  []apperr.Kind{apperr.InvalidState},
		Request: map[string]any{"rule_ids": []string{"1048600"}},
	}, a.revokeRules)
	rest.Handle(s, rest.Op{
		ID: "list-auth-unit-rules", Method: http.MethodGet, Path: "/v1/auth-units/{rid}/rules",
		Scope: auth.PermissionsRead, Summary: "List what is granted to an identity",
		Doc: "Unless `self_only` is true, the list includes the rules that the identity inherits from nodes, trees, " +
			"groups and everyone; these have `inherited_from`. 400 if it is necessary to read more than 2000 rules.",
		Errors: []apperr.Kind{apperr.Unavailable},
	}, a.listUnitRules)
	rest.Handle(s, rest.Op{
		ID: "get-auth-unit-rule", Method: http.MethodGet, Path: "/v1/auth-units/{rid}/rules/{tid}",
		Scope: auth.PermissionsRead, Summary: "Get a rule",
		IfMatchParam: "tid",
	}, a.getRule)
	rest.Handle(s, rest.Op{
		ID: "replace-auth-unit-rule", Method: http.MethodPut, Path: "/v1/auth-units/{rid}/rules/{tid}",
		Scope: auth.PermissionsWrite, Summary: "Replace a rule",
		IfMatchParam: "tid", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Request: map[string]any{"application_id": "2001", "type": "data", "code": "orders",
			"actions": []string{"read", "write"}},
	}, a.replaceRule)
	rest.Handle(s, rest.Op{
		ID: "list-auth-rules", Method: http.MethodGet, Path: "/v1/auth-rules", Scope: auth.PermissionsRead,
		Summary: "List rules of all identities",
	}, a.listRules)
}

type grantRulesInput struct {
	Body rest.JSON[NewRules]
}

// NewRules are rules for identities.
type NewRules struct {
	Identities []Identity      `json:"identities" minItems:"1" maxItems:"1000" doc:"1…1000 who get the rules"`
	Rules      []AuthRuleInput `json:"rules" minItems:"1" maxItems:"1000" doc:"1…1000, which each identity gets"`
}

// Identity is whom something is granted to.
type Identity struct {
	IdentityID   string `json:"identity_id" doc:"The id; * of everyone" example:"1048601"`
	IdentityType string `json:"identity_type" enum:"user,node,core_object,application,group,everyone" doc:"What it is the id of"`
	IdentityName string `json:"identity_name,omitempty" doc:"How it is shown" example:"Finance"`
}

func (a *api) grantRules(ctx context.Context, in *grantRulesInput) (rest.Empty, error) {
	var body struct {
		Identities []grant.Identity    `json:"identities"`
		Rules      []grant.RuleProfile `json:"rules"`
	}
	if err := in.Body.Into(&body); err != nil {
		return rest.Empty{}, err
	}
	return rest.Empty{}, a.grants.Grant(ctx, body.Identities, body.Rules)
}

type revokeRulesInput struct {
	Body struct {
		RuleIDs       []string `json:"rule_ids,omitempty" minItems:"1" maxItems:"1000" doc:"1…1000 ids" example:"[\"1048600\"]"`
		AuthUnitID    string   `json:"auth_unit_id,omitempty" doc:"Or those of this unit …"`
		ApplicationID string   `json:"application_id,omitempty" doc:"… about this application"`
		Type          string   `json:"type,omitempty" enum:"res,res_set,data,ui,api,app" doc:"… of this type"`
		Codes         []string `json:"codes,omitempty" minItems:"1" maxItems:"1000" doc:"… about the resources or sets with these codes"`
	}
}

func (a *api) revokeRules(ctx context.Context, in *revokeRulesInput) (rest.Empty, error) {
	b := in.Body
	var faults apperr.Faults
	faults.Check((len(b.RuleIDs) > 0) != (b.AuthUnitID != ""), "rule_ids",
		"must be given, or auth_unit_id, but not both")
	faults.Check(b.ApplicationID == "" || b.AuthUnitID != "", "application_id", "needs auth_unit_id")
	faults.Check(b.Type == "" || b.AuthUnitID != "", "type", "needs auth_unit_id")
	faults.Check(len(b.Codes) == 0 || b.AuthUnitID != "", "codes", "needs auth_unit_id")
	if err := faults.Err(); err != nil {
		return rest.Empty{}, err
	}
	return rest.Empty{}, a.grants.Revoke(ctx, grant.RuleSelection{
		IDs: b.RuleIDs, AuthUnitID: b.AuthUnitID, ApplicationID: b.ApplicationID, Type: b.Type, Codes: b.Codes,
	})
}

type listUnitRulesInput struct {
	OfUnit
	ApplicationID string        `query:"application_id" maxLength:"64"`
	Type          string        `query:"type" enum:"res,res_set,data,ui,api,app"`
	Code          string        `query:"code" maxLength:"256" doc:"Of the resource or resource set"`
	SelfOnly      docstore.Flag `query:"self_only" doc:"true: only what is granted to this identity itself"`
	ResourceID    string        `query:"resource_id" maxLength:"64" doc:"Only with type data, ui or api"`
	AllResources  docstore.Flag `query:"resource_match_all_resources" doc:"Only with type res"`
	AllActions    docstore.Flag `query:"resource_match_all_actions" doc:"Only with type res"`
	ResourceSetID string        `query:"resource_set_id" maxLength:"64" doc:"Only with type res_set"`
	Consistency
}

// check refuses filters that rules of the type do not have.
func (in *listUnitRulesInput) check() error {
	var faults apperr.Faults
	meaningful := func(given bool, name string, types ...string) {
		faults.Check(!given || in.Type == "" || slices.Contains(types, in.Type), name,
			"is not a filter for rules of this type")
	}
	meaningful(in.ResourceID != "", "resource_id", engine.Data, engine.UI, engine.API)
	meaningful(in.AllResources != "", "resource_match_all_resources", engine.Wildcard)
	meaningful(in.AllActions != "", "resource_match_all_actions", engine.Wildcard)
	meaningful(in.ResourceSetID != "", "resource_set_id", engine.ResourceSet)
	return faults.Err()
}

// onOff is the value of an on/off member that a flag selects; "" if the flag is not given.
func onOff(f docstore.Flag) string {
	switch {
	case f == "":
		return ""
	case f.Or(false):
		return grant.On
	}
	return grant.Off
}

func (a *api) listUnitRules(ctx context.Context, in *listUnitRulesInput) ([]rest.Raw[AuthRule], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	ids := []string{in.UnitID}
	if !in.SelfOnly.Or(false) {
		inherited, err := a.inherited(ctx, in.UnitID, in.Token)
		if err != nil {
			return nil, err
		}
		ids = append(ids, inherited...)
	}
	listed, err := a.grants.RulesReaching(ctx, ids, grant.RuleFilter{
		ApplicationID: in.ApplicationID, Type: in.Type, Code: in.Code, ResourceID: in.ResourceID,
		ResourceSetID: in.ResourceSetID,
		AllResources:  onOff(in.AllResources), AllActions: onOff(in.AllActions),
	})
	if err != nil {
		return nil, err
	}
	items := make([]rest.Raw[AuthRule], len(listed))
	for i := range listed {
		if items[i].JSON, err = ruleJSON(&listed[i]); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// inherited are the other units whose rules reach a unit's identity.
func (a *api) inherited(ctx context.Context, unitID, token string) ([]string, error) {
	doc, err := a.grants.Unit(ctx, unitID)
	if err != nil {
		return nil, err
	}
	u, err := doc.Value()
	if err != nil {
		return nil, err
	}
	state, err := a.state(ctx, token)
	if err != nil {
		return nil, err
	}
	ids, err := state.Reaching(engine.Identity{Type: u.Type, ID: u.IdentityID})
	return slices.DeleteFunc(ids, func(id string) bool { return id == unitID }), answerable(err)
}

// ruleJSON is a rule's record, with the unit that it is inherited from.
func ruleJSON(l *grant.Listed) ([]byte, error) {
	record, err := l.Rule.JSON()
	if err != nil || l.Unit == nil {
		return record, err
	}
	unit, err := l.Unit.JSON()
	if err != nil {
		return nil, err
	}
	body := append([]byte{}, record[:len(record)-1]...)
	return append(append(append(body, `,"inherited_from":`...), unit...), '}'), nil
}

// RuleOfUnit names a rule of an authorization unit.
type RuleOfUnit struct {
	OfUnit
	RuleID string `path:"tid" maxLength:"64" doc:"The rule's id" example:"1048600"`
}

func (a *api) getRule(ctx context.Context, in *RuleOfUnit) (rest.Record[AuthRule], error) {
	return rest.RecordOf[AuthRule](a.grants.Rule(ctx, in.UnitID, in.RuleID))
}

type replaceRuleInput struct {
	RuleOfUnit
	Body rest.JSON[AuthRuleInput]
}

func (a *api) replaceRule(ctx context.Context, in *replaceRuleInput) (rest.Empty, error) {
	var profile grant.RuleProfile
	if err := in.Body.Into(&profile); err != nil {
		return rest.Empty{}, err
	}
	_, err := a.grants.ReplaceRule(ctx, in.UnitID, in.RuleID, profile)
	return rest.Empty{}, err
}

type listRulesInput struct {
	docstore.Paging
	ApplicationID string `query:"application_id" maxLength:"64"`
	Type          string `query:"type" enum:"res,res_set,data,ui,api,app"`
	Code          string `query:"code" maxLength:"256"`
	Affect        string `query:"affect" enum:"affect,deny"`
	grant.IdentityFilter
}

func (a *api) listRules(ctx context.Context, in *listRulesInput) (rest.List[AuthRule], error) {
	page, err := a.grants.Rules(ctx, grant.RuleFilter{
		ApplicationID: in.ApplicationID, Type: in.Type, Code: in.Code, Affect: in.Affect, Identity: in.IdentityFilter,
	}, in.Paging)
	return rest.ListOf[AuthRule](in.Paging, page, err)
}

// answerable turns the engine's errors into those of the API.
func answerable(err error) error {
	switch {
	case errors.Is(err, engine.ErrReach):
		return apperr.New(apperr.InvalidState,
			"the identity belongs to more than %d nodes and groups: its permissions cannot be determined",
			engine.MaxReach)
	case errors.Is(err, engine.ErrSearch):
		return apperr.New(apperr.InvalidParameters,
			"more than %d rules or records must be examined for the answer: narrow the request", engine.MaxSearch)
	}
	return err
}
