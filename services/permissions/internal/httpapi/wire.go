package httpapi

import (
	"time"

	"github.com/idplatform/idplatform/pkg/rest"
)

// The types below describe JSON for the OpenAPI document and for the validation of bodies. Records are stored in this
// form, so they are not converted.

// Resource is the resource record.
type Resource struct {
	rest.Meta
	ApplicationID string         `json:"application_id" example:"2001"`
	Type          string         `json:"type" enum:"data,api,ui"`
	Code          string         `json:"code" doc:"Unique with application_id and type" example:"orders"`
	Name          string         `json:"name" example:"Orders"`
	Description   string         `json:"description"`
	URI           string         `json:"uri" doc:"Of an api resource: a path, in which segments may be {name} or *, and the last one **" example:"/orders/{id}"`
	Actions       []Action       `json:"actions" doc:"What can be done with it; empty: any action"`
	IsGlobal      string         `json:"is_global" enum:"1,0" doc:"1: every application of the tenant may grant and group it"`
	SysExtProps   map[string]any `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps  map[string]any `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly; in conditions it overrides sys_ext_props"`
}

// Action is something that can be done with a resource.
type Action struct {
	Code        string `json:"code" example:"read"`
	Description string `json:"description,omitempty" example:"See orders"`
}

// ResourceInput is a resource to be created, or the members of one to be changed.
type ResourceInput struct {
	rest.MetaInput
	ApplicationID string         `json:"application_id" example:"2001"`
	Type          string         `json:"type" enum:"data,api,ui"`
	Code          string         `json:"code" doc:"1…256 letters, digits or . _ - : /" example:"orders"`
	Name          string         `json:"name,omitempty"`
	Description   string         `json:"description,omitempty"`
	URI           string         `json:"uri,omitempty"`
	Actions       []Action       `json:"actions,omitempty"`
	IsGlobal      string         `json:"is_global,omitempty" enum:"1,0"`
	SysExtProps   map[string]any `json:"sys_ext_props,omitempty"`
	FreeExtProps  map[string]any `json:"free_ext_props,omitempty"`
}

// ResourceSet is the resource set record.
type ResourceSet struct {
	rest.Meta
	ApplicationID string `json:"application_id" example:"2001"`
	Code          string `json:"code" doc:"Unique in the application" example:"sales"`
	Name          string `json:"name" example:"Sales"`
	Description   string `json:"description"`
	IsGlobal      string `json:"is_global" enum:"1,0" doc:"1: every application of the tenant may grant it"`
	MemberCount   int64  `json:"member_count" readOnly:"true" example:"0"`
}

// ResourceSetInput is a resource set to be created or replaced.
type ResourceSetInput struct {
	rest.MetaInput
	ApplicationID string `json:"application_id,omitempty" doc:"Cannot be changed" example:"2001"`
	Code          string `json:"code" example:"sales"`
	Name          string `json:"name,omitempty" example:"Sales"`
	Description   string `json:"description,omitempty"`
	IsGlobal      string `json:"is_global,omitempty" enum:"1,0"`
	MemberCount   int64  `json:"member_count,omitempty" readOnly:"true"`
}

// ResourceSetMember is a resource in a set.
type ResourceSetMember struct {
	rest.Meta
	SetID        string   `json:"set_id" readOnly:"true" example:"1048580"`
	ResourceID   string   `json:"resource_id" example:"1048578"`
	ResourceCode string   `json:"resource_code" example:"orders"`
	ResourceType string   `json:"resource_type" enum:"data,api,ui"`
	Actions      []string `json:"actions" doc:"Which of the resource's actions belong to the set; * means all" example:"[\"*\"]"`
}

// ResourceSetMemberInput names a resource by resource_id, or by resource_code and resource_type.
type ResourceSetMemberInput struct {
	rest.MetaInput
	SetID        string   `json:"set_id,omitempty" readOnly:"true"`
	ResourceID   string   `json:"resource_id,omitempty" example:"1048578"`
	ResourceCode string   `json:"resource_code,omitempty"`
	ResourceType string   `json:"resource_type,omitempty" enum:"data,api,ui"`
	Actions      []string `json:"actions,omitempty" maxItems:"200" doc:"Absent: all"`
}

// NewResourceSetMembers is one member, or a list of them.
type NewResourceSetMembers struct {
	ResourceSetMemberInput
	Members []ResourceSetMemberInput `json:"members,omitempty" minItems:"1" maxItems:"1000"`
}

// AuthUnit is the authorization unit record.
type AuthUnit struct {
	rest.Meta
	IdentityID   string `json:"identity_id" doc:"The id of the user, node, core object, application or group; * of everyone" example:"1048601"`
	IdentityType string `json:"identity_type" enum:"user,node,core_object,application,group,everyone"`
	IdentityName string `json:"identity_name" example:"Finance"`
	Description  string `json:"description"`
	RuleCount    int64  `json:"rule_count" readOnly:"true" doc:"The number of its own rules, without inherited ones" example:"1"`
}

// AuthUnitInput is an authorization unit to be created, or the members of one to be changed.
type AuthUnitInput struct {
	rest.MetaInput
	IdentityID   string `json:"identity_id" example:"1048601"`
	IdentityType string `json:"identity_type" enum:"user,node,core_object,application,group,everyone"`
	IdentityName string `json:"identity_name,omitempty" example:"Finance"`
	Description  string `json:"description,omitempty"`
	RuleCount    int64  `json:"rule_count,omitempty" readOnly:"true"`
}

// GroupMember says that a user belongs to a group.
type GroupMember struct {
	rest.Meta
	AuthUnitID string `json:"auth_unit_id" doc:"The group's unit" example:"1048590"`
	UserID     string `json:"user_id" example:"1048601"`
}

// AuthRule is the rule record.
type AuthRule struct {
	rest.Meta
	AuthUnitID string `json:"auth_unit_id" example:"1048590"`
	RuleProfile
	InheritedFrom *AuthUnit `json:"inherited_from,omitempty" readOnly:"true" doc:"In lists with inherited rules: the unit that has the rule"`
}

// RuleProfile holds the members of a rule that can be set.
type RuleProfile struct {
	ApplicationID string     `json:"application_id" example:"2001"`
	Type          string     `json:"type" enum:"res,res_set,data,ui,api,app" doc:"data, ui, api: one resource; res: all of the application, or those whose code matches; res_set: a set; app: the use of the application"`
	Code          string     `json:"code" doc:"Of the resource or set; of type res a pattern, in which * stands for any number of characters and ? for one" example:"orders"`
	ResourceID    string     `json:"resource_id" example:"1048578"`
	ResourceSetID string     `json:"resource_set_id" example:""`
	Actions       []string   `json:"actions" doc:"* means all actions" example:"[\"read\"]"`
	Affect        string     `json:"affect" enum:"affect,deny" doc:"affect allows; deny goes before every affect"`
	AllResources  string     `json:"resource_match_all_resources" enum:"1,0"`
	AllActions    string     `json:"resource_match_all_actions" enum:"1,0"`
	Condition     string     `json:"condition" doc:"CEL over subject, resource, action, context and now; empty: none" example:"context.ip.startsWith('10.')"`
	ValidFrom     *time.Time `json:"valid_from" nullable:"true" doc:"null: from the beginning"`
	ValidTo       *time.Time `json:"valid_to" nullable:"true" doc:"null: without end. The rule is valid before this time, no longer at it"`
	Description   string     `json:"description"`
}

// AuthRuleInput is a rule to be created, or one that replaces another.
type AuthRuleInput struct {
	rest.MetaInput
	AuthUnitID    string     `json:"auth_unit_id,omitempty" readOnly:"true"`
	ApplicationID string     `json:"application_id" example:"2001"`
	Type          string     `json:"type" enum:"res,res_set,data,ui,api,app"`
	Code          string     `json:"code,omitempty" doc:"Names the resource or set if no id is given"`
	ResourceID    string     `json:"resource_id,omitempty"`
	ResourceSetID string     `json:"resource_set_id,omitempty"`
	Actions       []string   `json:"actions,omitempty" maxItems:"200"`
	Affect        string     `json:"affect,omitempty" enum:"affect,deny" doc:"Absent: affect"`
	AllResources  string     `json:"resource_match_all_resources,omitempty" enum:"1,0"`
	AllActions    string     `json:"resource_match_all_actions,omitempty" enum:"1,0"`
	Condition     string     `json:"condition,omitempty"`
	ValidFrom     *time.Time `json:"valid_from,omitempty" nullable:"true"`
	ValidTo       *time.Time `json:"valid_to,omitempty" nullable:"true"`
	Description   string     `json:"description,omitempty"`

	InheritedFrom *AuthUnit `json:"inherited_from,omitempty" readOnly:"true"`
}
