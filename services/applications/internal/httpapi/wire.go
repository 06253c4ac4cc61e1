package httpapi

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/application"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
)

// NewApplication is an application that was just created.
type NewApplication struct {
	application.Application
	ClientSecret string `json:"client_secret,omitempty" doc:"Shown only in this answer, to callers with the scope applications:secrets" format:"password" example:"5Jg…"`
}

// ProtocolInputProp are the settings of a protocol to be set.
type ProtocolInputProp struct {
	protocol.Prop
	SigningKey string `json:"saml_response_signing_key,omitempty" writeOnly:"true" doc:"PEM; ****** keeps it"`
}

// ConfigProp describes application.ConfigProp, of whose objects some members are known. All members are optional.
type ConfigProp struct {
	Status                     string               `json:"status,omitempty" enum:"1,0" doc:"Is kept, without effect: the application's own status decides"`
	TenantID                   string               `json:"tenant_id,omitempty" doc:"Is kept, without effect: the application's tenant"`
	MFAConfig                  MFAConfig            `json:"mfa_config,omitempty" doc:"Which second factors count while mfa_enabled is 1"`
	RegPolicy                  []string             `json:"reg_policy,omitempty" doc:"What registration asks for; without effect, since nobody can register yet"`
	MFAEnabled                 string               `json:"mfa_enabled,omitempty" enum:"1,0" doc:"1: people show two factors; who has no second one sets it up at the sign-in"`
	SSOEnabled                 string               `json:"sso_enabled,omitempty" enum:"1,0" doc:"1: who is signed in is not asked again"`
	DeveloperID                string               `json:"developer_id,omitempty" doc:"Is kept, without effect: who develops it"`
	AccessPolicy               AccessPolicy         `json:"access_policy,omitempty" doc:"What people may do by themselves"`
	AllowedRegMethod           map[string]any       `json:"allowed_reg_method,omitempty" doc:"How people may register. It has no effect: nobody can register yet"`
	DefaultRegMethod           string               `json:"default_reg_method,omitempty" doc:"What registration offers first; without effect, since nobody can register yet"`
	AllowedLoginMethod         LoginMethod          `json:"allowed_login_method,omitempty" doc:"name is the code of the login template; the other members are kept, without effect"`
	DefaultLoginMethod         string               `json:"default_login_method,omitempty" doc:"The code of the method that the sign-in page offers first, if the login template has it"`
	AllowedSocialLoginProvider SocialLoginProviders `json:"allowed_social_login_provider,omitempty" doc:"Codes of social-login providers, 1: people may sign in through connections to it. Where any is named, the others are not allowed"`
}

// MFAConfig is an object with known members.
type MFAConfig map[string]any

// Schema says what the known members must be.
func (MFAConfig) Schema(huma.Registry) *huma.Schema {
	return open(map[string]*huma.Schema{
		"methods": {
			Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Enum: factorTypes},
			Description: "Types of methods that count beside a password; left out or empty: all. If neither otp " +
				"nor webauthn is among them, nobody can sign in to the application yet. A recovery code counts as " +
				"what it takes the place of",
		},
		"enrol": {
			Type: huma.TypeString, Enum: []any{"demand", "offer", "off"},
			Description: "What becomes of those who have no second factor. demand, offer, or left out: they set one " +
				"up at the sign-in; off: they are refused until they have set one up on their own page",
		},
		"remember_days": {
			Type: huma.TypeInteger, Enum: []any{0},
			Description: "Only 0: a second factor is asked for at each sign-in",
		},
	})
}

// factorTypes are the types of methods that can be second factors.
var factorTypes = []any{"otp", "webauthn", "mail", "sms"}

// AccessPolicy is an object with one known member.
type AccessPolicy map[string]any

// Schema says what the known member must be.
func (AccessPolicy) Schema(huma.Registry) *huma.Schema {
	texts := &huma.Schema{
		Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString},
		Description: "Channels by which people who have forgotten their password prove who they are: mail. Others " +
			"have no effect. Left out: all; an empty list: none",
	}
	return open(map[string]*huma.Schema{"forget_password": texts})
}

// LoginMethod is an object with one known member.
type LoginMethod map[string]any

// Schema says what the known member must be.
func (LoginMethod) Schema(huma.Registry) *huma.Schema {
	return open(map[string]*huma.Schema{"name": {Type: huma.TypeString}})
}

// SocialLoginProviders says for each social-login provider, by code, whether it is allowed.
type SocialLoginProviders map[string]float64

// open is the schema of an object that may have other members, too.
func open(known map[string]*huma.Schema) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: known, AdditionalProperties: true}
	s.PrecomputeMessages()
	return s
}

// ApplicationInput is an application to be created, or the members to be changed. Read-only members may be sent back
// and are ignored.
type ApplicationInput struct {
	rest.MembersOf[application.Application]
	Name         string            `json:"name"`
	ProtocolProp ProtocolInputProp `json:"protocol_prop,omitzero"`
	ClientSecret string            `json:"client_secret,omitempty" readOnly:"true" doc:"Ignored"`
}

// ProtocolInput are the settings of a protocol. Other members of the record may be sent back and are ignored.
type ProtocolInput struct {
	rest.MembersOf[protocol.Protocol]
	ProtocolProp ProtocolInputProp `json:"protocol_prop,omitzero"`
}
