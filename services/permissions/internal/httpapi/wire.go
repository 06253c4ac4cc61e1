package httpapi

import (
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

// ResourceSetInput is a resource set to be created or replaced.
type ResourceSetInput struct {
	rest.MembersOf[grant.Set]
	ApplicationID string `json:"application_id,omitempty" doc:"Cannot be changed"`
	Code          string `json:"code"`
}

// ResourceSetMemberInput names a resource by resource_id, or by resource_code and resource_type.
type ResourceSetMemberInput struct {
	rest.MembersOf[grant.Member]
	Actions []string `json:"actions,omitempty" maxItems:"200" doc:"Absent: all"`
}

// NewResourceSetMembers is one member, or a list of them.
type NewResourceSetMembers struct {
	ResourceSetMemberInput
	Members []ResourceSetMemberInput `json:"members,omitempty" minItems:"1" maxItems:"1000" doc:"1…1000; instead of one"`
}

// AuthRule is the rule record, with the unit that a list has it from.
type AuthRule struct {
	grant.Rule
	InheritedFrom *grant.Unit `json:"inherited_from,omitempty" readOnly:"true" doc:"In lists with inherited rules: the unit that has the rule"`
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
