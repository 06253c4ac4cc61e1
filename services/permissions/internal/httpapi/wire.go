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
	ApplicationID string         `json:"application_id" doc:"The application that it is of" example:"2001"`
	Type          string         `json:"type" enum:"data,api,ui" doc:"data: what it keeps; api: a path; ui: a part of its pages"`
	Code          string         `json:"code" doc:"Unique with application_id and type" example:"orders"`
	Name          string         `json:"name" doc:"Up to 256 characters" example:"Orders"`
	Description   string         `json:"description" doc:"Up to 2000 characters"`
	URI           string         `json:"uri" doc:"Of an api resource: a path, in which segments may be {name} or *, and the last one **" example:"/orders/{id}"`
	Actions       []Action       `json:"actions" doc:"What can be done with it; empty: any action"`
	IsGlobal      string         `json:"is_global" enum:"1,0" doc:"1: every application of the tenant may grant and group it"`
	SysExtProps   map[string]any `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps  map[string]any `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly; in conditions it overrides sys_ext_props"`
}

// Action is something that can be done with a resource.
type Action struct {
	Code        string `json:"code" doc:"1…64 letters, digits or . _ - : /" example:"read"`
	Description string `json:"description,omitempty" doc:"What it does" example:"See orders"`
}

// ResourceInput is a resource to be created, or the members of one to be changed.
type ResourceInput struct {
	rest.MembersOf[Resource]
	ApplicationID string `json:"application_id"`
	Type          string `json:"type" enum:"data,api,ui"`
	Code          string `json:"code"`
}

// ResourceSet is the resource set record.
type ResourceSet struct {
	rest.Meta
	ApplicationID string `json:"application_id" doc:"The application that it is of" example:"2001"`
	Code          string `json:"code" doc:"Unique in the application" example:"sales"`
	Name          string `json:"name" doc:"Up to 256 characters" example:"Sales"`
	Description   string `json:"description" doc:"Up to 2000 characters"`
	IsGlobal      string `json:"is_global" enum:"1,0" doc:"1: every application of the tenant may grant it"`
	MemberCount   int64  `json:"member_count" readOnly:"true" doc:"Resources in it" example:"0"`
}

// ResourceSetInput is a resource set to be created or replaced.
type ResourceSetInput struct {
	rest.MembersOf[ResourceSet]
	ApplicationID string `json:"application_id,omitempty" doc:"Cannot be changed"`
	Code          string `json:"code"`
}

// ResourceSetMember is a resource in a set.
type ResourceSetMember struct {
	rest.Meta
	SetID        string   `json:"set_id" readOnly:"true" doc:"The set" example:"1048580"`
	ResourceID   string   `json:"resource_id" doc:"The resource" example:"1048578"`
	ResourceCode string   `json:"resource_code" doc:"Of the resource" example:"orders"`
	ResourceType string   `json:"resource_type" enum:"data,api,ui" doc:"Of the resource"`
	Actions      []string `json:"actions" doc:"Which of the resource's actions belong to the set; * means all" example:"[\"*\"]"`
}

// ResourceSetMemberInput names a resource by resource_id, or by resource_code and resource_type.
type ResourceSetMemberInput struct {
	rest.MembersOf[ResourceSetMember]
	Actions []string `json:"actions,omitempty" maxItems:"200" doc:"Absent: all"`
}

// NewResourceSetMembers is one member, or a list of them.
type NewResourceSetMembers struct {
	ResourceSetMemberInput
	Members []ResourceSetMemberInput `json:"members,omitempty" minItems:"1" maxItems:"1000" doc:"1…1000; instead of one"`
}

// AuthUnit is the authorization unit record.
type AuthUnit struct {
	rest.Meta
	IdentityID   string `json:"identity_id" doc:"The id of the user, node, core object, application or group; * of everyone" example:"1048601"`
	IdentityType string `json:"identity_type" enum:"user,node,core_object,application,group,everyone" doc:"Who it is: what identity_id is the id of"`
	IdentityName string `json:"identity_name" doc:"How it is shown" example:"Finance"`
	Description  string `json:"description" doc:"Up to 2000 characters"`
	RuleCount    int64  `json:"rule_count" readOnly:"true" doc:"The number of its own rules, without inherited ones" example:"1"`
}

// AuthUnitInput is an authorization unit to be created, or the members of one to be changed.
type AuthUnitInput struct {
	rest.MembersOf[AuthUnit]
	IdentityID   string `json:"identity_id"`
	IdentityType string `json:"identity_type" enum:"user,node,core_object,application,group,everyone"`
}

// GroupMember says that a user belongs to a group.
type GroupMember struct {
	rest.Meta
	AuthUnitID string `json:"auth_unit_id" doc:"The group's unit" example:"1048590"`
	UserID     string `json:"user_id" doc:"The user" example:"1048601"`
}

// AuthRule is the rule record.
type AuthRule struct {
	rest.Meta
	AuthUnitID string `json:"auth_unit_id" readOnly:"true" doc:"Who has it: the unit" example:"1048590"`
	RuleProfile
	InheritedFrom *AuthUnit `json:"inherited_from,omitempty" readOnly:"true" doc:"In lists with inherited rules: the unit that has the rule"`
}

// RuleProfile holds the members of a rule that can be set.
type RuleProfile struct {
	ApplicationID string     `json:"application_id" doc:"The application" example:"2001"`
	Type          string     `json:"type" enum:"res,res_set,data,ui,api,app" doc:"data, ui, api: one resource; res: all of the application, or those whose code matches; res_set: a set; app: the use of the application"`
	Code          string     `json:"code" doc:"Of the resource or set; of type res a pattern, in which * stands for any number of characters and ? for one" example:"orders"`
	ResourceID    string     `json:"resource_id" doc:"Of one resource; empty: named by code" example:"1048578"`
	ResourceSetID string     `json:"resource_set_id" doc:"Of a set; empty: named by code" example:""`
	Actions       []string   `json:"actions" doc:"* means all actions" example:"[\"read\"]"`
	Affect        string     `json:"affect" enum:"affect,deny" doc:"affect allows; deny goes before every affect"`
	AllResources  string     `json:"resource_match_all_resources" enum:"1,0" doc:"1: of type res, all resources of the application"`
	AllActions    string     `json:"resource_match_all_actions" enum:"1,0" doc:"1: all actions, like * in actions"`
	Condition     string     `json:"condition" doc:"CEL over subject, resource, action, context and now; empty: none" example:"context.ip.startsWith('10.')"`
	ValidFrom     *time.Time `json:"valid_from" nullable:"true" doc:"null: from the beginning"`
	ValidTo       *time.Time `json:"valid_to" nullable:"true" doc:"null: without end. The rule is valid before this time, no longer at it"`
	Description   string     `json:"description" doc:"Up to 2000 characters"`
}

// AuthRuleInput is a rule to be created, or one that replaces another.
type AuthRuleInput struct {
	rest.MembersOf[AuthRule]
	ApplicationID string   `json:"application_id"`
	Type          string   `json:"type" enum:"res,res_set,data,ui,api,app"`
	Code          string   `json:"code,omitempty" doc:"Names the resource or set if no id is given"`
	Actions       []string `json:"actions,omitempty" maxItems:"200"`
	Affect        string   `json:"affect,omitempty" enum:"affect,deny" doc:"Absent: affect"`
}
