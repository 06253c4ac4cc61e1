package grant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// Rule grants or denies something to an authorization unit. Its JSON form is the API's, the events' and the store's.
type Rule struct {
	docstore.Meta
	AuthUnitID string `json:"auth_unit_id" readOnly:"true" doc:"Who has it: the unit" example:"1048590"`
	RuleProfile
}

// RuleProfile holds the members that create and replace may set. A request names a resource or set by its id or by its
// code; the stored rule has both.
type RuleProfile struct {
	ApplicationID string     `json:"application_id" required:"true" doc:"The application" example:"2001"`
	Type          string     `json:"type" required:"true" enum:"res,res_set,data,ui,api,app" example:"data" doc:"data, ui, api: one resource; res: all of the application, or those whose code matches; res_set: a set; app: the use of the application"`
	Code          string     `json:"code" doc:"Of the resource or set; of type res a pattern, in which * stands for any number of characters and ? for one" example:"orders"`
	ResourceID    string     `json:"resource_id" doc:"Of one resource; empty: named by code" example:"1048578"`
	ResourceSetID string     `json:"resource_set_id" doc:"Of a set; empty: named by code" example:""`
	Actions       []string   `json:"actions" doc:"* means all actions" example:"[\"read\"]"`
	Affect        string     `json:"affect" enum:"affect,deny" doc:"affect allows; deny goes before every affect"`
	AllResources  string     `json:"resource_match_all_resources" enum:"1,0" example:"0" doc:"1: of type res, all resources of the application"`
	AllActions    string     `json:"resource_match_all_actions" enum:"1,0" example:"0" doc:"1: all actions, like * in actions"`
	Condition     string     `json:"condition" doc:"CEL over subject, resource, action, context and now; empty: none" example:"context.ip.startsWith('10.')"`
	ValidFrom     clock.Time `json:"valid_from" nullable:"true" doc:"null: from the beginning"`
	ValidTo       clock.Time `json:"valid_to" nullable:"true" doc:"null: without end. The rule is valid before this time, no longer at it"`
	Description   string     `json:"description" doc:"Up to 2000 characters"`
}

// The types of rules, beside ResourceTypes for rules about one resource.
const (
	typeWildcard = "res"
	typeSet      = "res_set"
	typeApp      = "app"
)

// RuleTypes are the types of rules.
var RuleTypes = []string{typeWildcard, typeSet, "data", "api", "ui", typeApp}

// The values of affect.
const (
	Allow = "affect"
	Deny  = "deny"
)

const byAffect = "affect"

var rules = docstore.Define(docstore.Schema[Rule]{
	Name: "auth_rules", Noun: "authorization rule",
	Sortable: []string{byTimeCreated, byTimeModified},
	Indexes: []docstore.Index[Rule]{
		docstore.Unique(docstore.ByText("content", (*Rule).content), "code"),
		docstore.Facet(docstore.ByText(byUnit, func(r *Rule) string { return r.AuthUnitID }), byTimeCreated),
		docstore.Facet(docstore.ByText(byApplication, func(r *Rule) string { return r.ApplicationID }), byTimeCreated),
		docstore.ByText(byType, func(r *Rule) string { return r.Type }),
		docstore.ByText(byCode, func(r *Rule) string { return r.Code }),
		docstore.ByText(byAffect, func(r *Rule) string { return r.Affect }),
		docstore.ByText(byResource, func(r *Rule) string { return r.ResourceID }),
		docstore.ByText(bySet, func(r *Rule) string { return r.ResourceSetID }),
		docstore.ByList(byAction, func(r *Rule) []string { return actionEntries(r.ResourceID, r.Actions) }),
		docstore.ByNumber(byTimeCreated, func(r *Rule) docstore.Value { return docstore.Moment(r.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(r *Rule) docstore.Value { return docstore.Moment(r.TimeModified) }),
	},
})

// RuleDoc is a rule as read or written.
type RuleDoc = docstore.Doc[Rule]

// content is the index entry that exact repeats of a rule have in common: the unit and a hash of the profile, whatever
// its description and the order of its actions.
func (r *Rule) content() string {
	profile := r.RuleProfile
	profile.Description = ""
	profile.Actions = slices.Sorted(slices.Values(profile.Actions))
	text, _ := json.Marshal(profile) // texts and times always marshal
	sum := sha256.Sum256(text)
	return place(r.AuthUnitID, hex.EncodeToString(sum[:16]))
}

// Engine is the rule in the form of the engine, without ids.
func (p *RuleProfile) Engine() *engine.Rule {
	rule := &engine.Rule{
		ApplicationID: p.ApplicationID, Type: p.Type, ResourceID: p.ResourceID, SetID: p.ResourceSetID,
		Actions: p.Actions, Deny: p.Affect == Deny,
	}
	if p.Type == engine.Wildcard {
		rule.Code = p.Code
	}
	if p.Condition != "" {
		rule.Condition = &engine.Condition{Text: p.Condition}
	}
	if !p.ValidFrom.IsZero() {
		rule.From = p.ValidFrom.Millis()
	}
	if !p.ValidTo.IsZero() {
		rule.To = p.ValidTo.Millis()
	}
	return rule
}

// check notes faults that can be found without the store, and fills in defaults.
func (p *RuleProfile) check(faults *apperr.Faults) {
	checkID(faults, "application_id", p.ApplicationID)
	if p.Affect == "" {
		p.Affect = Allow
	}
	faults.Check(p.Affect == Allow || p.Affect == Deny, "affect", "must be affect or deny")
	faults.Switch("resource_match_all_resources", &p.AllResources, Off)
	faults.Switch("resource_match_all_actions", &p.AllActions, Off)
	faults.Prose("description", p.Description, maxDescription)
	faults.Check(p.ValidFrom.IsZero() || p.ValidTo.IsZero() || p.ValidFrom.Before(p.ValidTo), "valid_to",
		"must be later than valid_from")
	if p.Condition != "" {
		if _, err := engine.Conditions.Cached(p.Condition); err != nil {
			faults.Add("condition", "%s", err)
		}
	}
	if !slices.Contains(RuleTypes, p.Type) {
		faults.Add("type", "must be one of res, res_set, data, api, ui, app")
		return
	}
	p.checkActions(faults)
	p.checkObject(faults)
}

// checkActions checks the actions. All actions may be given as "*" or by resource_match_all_actions; both are stored.
func (p *RuleProfile) checkActions(faults *apperr.Faults) {
	if p.Type == typeApp || p.AllActions == On && len(p.Actions) == 0 {
		p.Actions = []string{all}
	}
	faults.Check(len(p.Actions) > 0, "actions", "must have at least one action, unless resource_match_all_actions is 1")
	checkActions(faults, "actions", p.Actions)
	p.AllActions = Off
	if slices.Contains(p.Actions, all) {
		p.Actions, p.AllActions = []string{all}, On
	}
}

// checkObject checks how the rule names what it is about.
func (p *RuleProfile) checkObject(faults *apperr.Faults) {
	one := slices.Contains(ResourceTypes, p.Type)
	faults.Check(p.ResourceID == "" || one, "resource_id", "is only for type data, api or ui")
	faults.Check(p.ResourceSetID == "" || p.Type == typeSet, "resource_set_id", "is only for type res_set")
	faults.Check(p.AllResources == Off || p.Type == typeWildcard, "resource_match_all_resources",
		"is only for type res")
	switch {
	case one:
		faults.Check(p.ResourceID != "" || p.Code != "", "code", "must be given, or resource_id")
	case p.Type == typeSet:
		faults.Check(p.ResourceSetID != "" || p.Code != "", "code", "must be given, or resource_set_id")
	case p.Type == typeApp:
		faults.Check(p.Code == "", "code", "is not for type app")
	default:
		faults.Check((p.AllResources == On) != (p.Code != ""), "code",
			"must be given, unless resource_match_all_resources is 1: then it must be empty")
		fault := engine.ValidPattern(p.Code)
		faults.Check(fault == "", "code", "%s", fault)
	}
	faults.Check(len(p.Code) <= maxCode, "code", "must have at most %d characters", maxCode)
}
