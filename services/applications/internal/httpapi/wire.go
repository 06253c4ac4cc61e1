package httpapi

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/rest"
)

// The types below describe JSON for the OpenAPI document and for the validation of bodies. Records are stored in
// exactly this form and are not converted; a test compares the two.

// Application is the application record.
type Application struct {
	rest.Meta
	Name                string          `json:"name" doc:"1…128 characters; unique without regard to case and width" example:"Expenses"`
	Type                string          `json:"type" enum:"1,2" doc:"1 self-built, 2 made from a template" example:"1"`
	DomainSN            string          `json:"domain_sn" doc:"Domain; unique when not empty" example:"expenses"`
	TemplateID          string          `json:"template_id" doc:"Template of the catalogue; empty: self-built" example:""`
	Category            string          `json:"category" enum:"1,2,3,4" doc:"1 standard web, 2 single-page, 3 client, 4 backend service" example:"1"`
	Descr               string          `json:"descr" doc:"Up to 2000 characters" example:"Claims and receipts"`
	Logo                string          `json:"logo" doc:"Path or URL of the logo" example:""`
	LoginURL            string          `json:"login_url" doc:"Where its sign-in begins; absolute, http or https" example:"https://expenses.acme.test/login"`
	RedirectURL         string          `json:"redirect_url" doc:"One or more URLs, joined by commas" example:"https://expenses.acme.test/callback"`
	LogoutURL           string          `json:"logout_url" doc:"Where its sign-out is; absolute, http or https" example:""`
	SubAccountPolicy    string          `json:"sub_account_policy" enum:"1,0" doc:"1: single sign-on returns sub-account information" example:"0"`
	ProtocolType        string          `json:"protocol_type" enum:"cas,oauth2,saml,oidc,sxp" doc:"How people sign in to it" example:"oidc"`
	ProtocolProp        ProtocolProp    `json:"protocol_prop" doc:"The settings of the protocol of protocol_type"`
	ConfigProp          ConfigProp      `json:"config_prop" doc:"What people can do at its sign-in"`
	SignInProp          *SignInProp     `json:"sign_in_prop,omitempty" doc:"How people sign in to it, and out of it"`
	TemplateParams      *TemplateParams `json:"template_params,omitempty" doc:"What it was made from a template with"`
	Scopes              []string        `json:"scopes" nullable:"false" doc:"The most that its tokens can have"`
	JWKS                map[string]any  `json:"jwks,omitempty" doc:"Public keys (RFC 7517) for private_key_jwt"`
	JWKSURI             string          `json:"jwks_uri,omitempty" doc:"URL of these keys, instead of jwks"`
	SysExtProps         map[string]any  `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps        map[string]any  `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	ClientID            string          `json:"client_id" readOnly:"true" doc:"Its name at the token endpoint" example:"4mrhvkqtwz5c2d7ba3gxyun6ep"`
	Status              string          `json:"status" enum:"1,0" doc:"Changed by enable and disable"`
	SSOEnabled          string          `json:"sso_enabled" enum:"1,0" doc:"The same as in config_prop"`
	MFAEnabled          string          `json:"mfa_enabled" enum:"1,0" doc:"The same as in config_prop"`
	MultiAccountEnabled string          `json:"multi_account_enabled" enum:"1,0" doc:"Whether a user may have several sub-accounts"`
	Secrets             []ClientSecret  `json:"secrets" readOnly:"true" nullable:"false" doc:"What its client secrets are, without themselves"`
	IDPs                []Source        `json:"idps" readOnly:"true" nullable:"false" doc:"Attached authentication sources"`
}

// NewApplication is an application that was just created.
type NewApplication struct {
	Application
	ClientSecret string `json:"client_secret,omitempty" doc:"Shown only in this answer, to callers with the scope applications:secrets" format:"password" example:"5Jg…"`
}

// ClientSecret is the public description of a client secret.
type ClientSecret struct {
	ID          string     `json:"id" doc:"Of the secret" example:"1048580"`
	Hint        string     `json:"hint" doc:"The last characters" example:"…a3f9"`
	TimeCreated time.Time  `json:"time_created" doc:"When it was made"`
	TimeExpires *time.Time `json:"time_expires" nullable:"true" doc:"null: it does not expire"`
}

// Source is an attached authentication source.
type Source struct {
	ConfigID     string `json:"config_id" doc:"The id of the connection" example:"31"`
	ProviderCode string `json:"provider_code" doc:"The code of the provider" example:"wechat_scan_qr"`
}

// ProtocolProp are the settings of a protocol. All are optional.
type ProtocolProp struct {
	ACSURL               string              `json:"acs_url,omitempty" doc:"SAML: assertion consumer service" example:"https://expenses.acme.test/saml/acs"`
	SPEntity             string              `json:"sp_entity,omitempty" doc:"SAML: entity id of the service provider" example:"https://expenses.acme.test"`
	ResponseAttr         []ResponseAttribute `json:"response_attr,omitempty" doc:"SAML: attributes of the response"`
	DigestAlgorithm      string              `json:"digest_algorithm,omitempty" doc:"Identifier of XML Signature, not with SHA-1" example:"http://www.w3.org/2001/04/xmlenc#sha256"`
	LifetimeInSeconds    float64             `json:"lifetime_in_seconds,omitempty" minimum:"1" maximum:"86400" doc:"How long an assertion holds" example:"3600"`
	SignatureAlgorithm   string              `json:"signature_algorithm,omitempty" doc:"Identifier of XML Signature; for oidc and oauth2, of JWS" example:"RS256"`
	NameIdentifierFormat string              `json:"name_identifier_format,omitempty" doc:"SAML: a URI"`
	AuthnContextClassRef string              `json:"authn_context_class_ref,omitempty" doc:"SAML: a URI"`
	SigningKey           string              `json:"saml_response_signing_key,omitempty" doc:"PEM; reads as ******, which keeps it when written back" example:"******"`
	SigningCert          string              `json:"saml_response_signing_cert,omitempty" doc:"PEM"`
	Fingerprint          string              `json:"saml_response_signing_cert_fingerprint,omitempty" doc:"SHA-256; computed, and checked if given"`
}

// ProtocolInputProp are the settings of a protocol to be set.
type ProtocolInputProp struct {
	ProtocolProp
	SigningKey string `json:"saml_response_signing_key,omitempty" writeOnly:"true" doc:"PEM; ****** keeps it"`
}

// ResponseAttribute is an attribute of a SAML response.
type ResponseAttribute struct {
	Value      string `json:"value,omitempty" doc:"The member of the user" example:"email"`
	Attribute  string `json:"attribute,omitempty" doc:"The attribute's name" example:"mail"`
	NameFormat string `json:"nameFormat,omitempty" doc:"SAML: NameFormat of the attribute" example:"urn:oasis:names:tc:SAML:2.0:attrname-format:basic"`
}

// ConfigProp is an application's configuration. All members are optional.
type ConfigProp struct {
	Status                     string               `json:"status,omitempty" enum:"1,0" doc:"1: the configuration is in use"`
	TenantID                   string               `json:"tenant_id,omitempty" doc:"A tenant, for its clients"`
	MFAConfig                  map[string]any       `json:"mfa_config,omitempty" doc:"Of the second factor"`
	RegPolicy                  []string             `json:"reg_policy,omitempty" doc:"What registration asks for"`
	MFAEnabled                 string               `json:"mfa_enabled,omitempty" enum:"1,0" doc:"1: a second factor is asked for"`
	SSOEnabled                 string               `json:"sso_enabled,omitempty" enum:"1,0" doc:"1: who is signed in is not asked again"`
	DeveloperID                string               `json:"developer_id,omitempty" doc:"Who develops it, for its clients"`
	AccessPolicy               AccessPolicy         `json:"access_policy,omitempty" doc:"What people may do by themselves"`
	AllowedRegMethod           map[string]any       `json:"allowed_reg_method,omitempty" doc:"How people may register"`
	DefaultRegMethod           string               `json:"default_reg_method,omitempty" doc:"What registration offers first"`
	AllowedLoginMethod         LoginMethod          `json:"allowed_login_method,omitempty" doc:"How people may sign in"`
	DefaultLoginMethod         string               `json:"default_login_method,omitempty" doc:"What sign-in offers first"`
	AllowedSocialLoginProvider SocialLoginProviders `json:"allowed_social_login_provider,omitempty" doc:"Codes of social-login providers, 1: allowed"`
}

// AccessPolicy is an object with one known member.
type AccessPolicy map[string]any

// Schema says what the known member must be.
func (AccessPolicy) Schema(huma.Registry) *huma.Schema {
	texts := &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}
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

// SignInProp says how people sign in to an application, and out of it. All members are optional.
type SignInProp struct {
	Consent               string   `json:"consent,omitempty" enum:"1,0" doc:"1: people agree to the scopes before it gets them"`
	Audiences             []string `json:"audiences,omitempty" maxItems:"20" doc:"OIDC: resources (RFC 8707) that its access tokens can be for" example:"[\"https://api.acme.test\"]"`
	PostLogoutURLs        []string `json:"post_logout_urls,omitempty" maxItems:"20" doc:"OIDC: where people may return to after a logout, besides logout_url" example:"[\"https://expenses.acme.test/bye\"]"`
	BackchannelLogoutURL  string   `json:"backchannel_logout_url,omitempty" doc:"OIDC: hears of the end of sessions (Back-Channel Logout)" example:"https://expenses.acme.test/backchannel"`
	FrontchannelLogoutURL string   `json:"frontchannel_logout_url,omitempty" doc:"OIDC: is loaded in a frame at a logout (Front-Channel Logout)"`
	SLOURL                string   `json:"slo_url,omitempty" doc:"SAML: single logout service"`
	ACSURLs               []string `json:"acs_urls,omitempty" maxItems:"20" doc:"SAML: further assertion consumer services, besides acs_url"`
	SPCerts               []string `json:"sp_certs,omitempty" maxItems:"10" doc:"SAML: certificates (PEM) by which its requests are signed"`
	SignedRequests        string   `json:"signed_requests,omitempty" enum:"1,0" doc:"SAML, 1: requests without a signature are refused"`
	IdPInitiated          string   `json:"idp_initiated,omitempty" enum:"1,0" doc:"SAML, 1: people may begin at the platform"`
}

// TemplateParams are the values of a template's parameters.
type TemplateParams struct {
	Version string         `json:"version,omitempty" doc:"Version of the template" example:"1"`
	Params  map[string]any `json:"params,omitempty" doc:"They must match the template's params_schema"`
}

// ApplicationInput is an application to be created, or the members to be changed. Read-only members may be sent back
// and are ignored.
type ApplicationInput struct {
	rest.MembersOf[Application]
	Name         string            `json:"name"`
	ProtocolProp ProtocolInputProp `json:"protocol_prop,omitzero"`
	ConfigProp   ConfigProp        `json:"config_prop,omitzero"`
	Scopes       []string          `json:"scopes,omitempty" maxItems:"100"`
	ClientSecret string            `json:"client_secret,omitempty" readOnly:"true" doc:"Ignored"`
}

// Protocol is the record of one protocol of an application.
type Protocol struct {
	rest.Meta
	AppID        string       `json:"app_id" readOnly:"true" doc:"The application" example:"1048577"`
	ProtocolType string       `json:"protocol_type" readOnly:"true" enum:"cas,oauth2,saml,oidc,sxp" doc:"Which protocol" example:"saml"`
	Status       string       `json:"status" readOnly:"true" enum:"1,0" doc:"1: people can sign in by it" example:"1"`
	ProtocolProp ProtocolProp `json:"protocol_prop" doc:"Its settings"`
	Secret       string       `json:"secret" readOnly:"true" doc:"****** if there is one" example:""`
	SecretHint   string       `json:"secret_hint" readOnly:"true" doc:"The secret's last characters" example:""`
}

// ProtocolInput are the settings of a protocol. Other members of the record may be sent back and are ignored.
type ProtocolInput struct {
	rest.MembersOf[Protocol]
	ProtocolProp ProtocolInputProp `json:"protocol_prop,omitzero"`
}

// Account is the sub-account record.
type Account struct {
	rest.Meta
	AppID        string         `json:"app_id" readOnly:"true" doc:"The application" example:"1048577"`
	UserID       string         `json:"user_id" doc:"Whose it is" example:"1048601"`
	Account      string         `json:"account" doc:"1…256 characters; unique in the application without regard to case and width" example:"liwei"`
	DisplayName  string         `json:"display_name" doc:"Up to 256 characters" example:"李伟"`
	Status       string         `json:"status" enum:"1,0" doc:"Changed by enable and disable" example:"1"`
	IsDefault    string         `json:"is_default" enum:"1,0" doc:"1 for exactly one of a user's sub-accounts in an application" example:"1"`
	Password     string         `json:"password" doc:"For form fill; reads as ****** if there is one, which keeps it when written back" example:""`
	SysExtProps  map[string]any `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps map[string]any `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
}

// AccountInput is a sub-account to be created or replaced. Read-only members may be sent back and are ignored.
type AccountInput struct {
	rest.MembersOf[Account]
	UserID   string `json:"user_id"`
	Account  string `json:"account"`
	Password string `json:"password,omitempty" writeOnly:"true" doc:"For form fill; ****** keeps it"`
}

// Template is a product that applications can be created from.
type Template struct {
	TemplateID   string         `json:"template_id" doc:"Its code" example:"gitlab"`
	Name         string         `json:"name" doc:"Of the product" example:"GitLab"`
	Version      string         `json:"version" doc:"Grows when the template changes" example:"1"`
	ProtocolType string         `json:"protocol_type" enum:"cas,oauth2,saml,oidc,sxp" doc:"How the product takes sign-ins" example:"saml"`
	Category     string         `json:"category" enum:"1,2,3,4" doc:"Of the applications made from it" example:"1"`
	Logo         string         `json:"logo" doc:"A data URI of its initials: real logos are trademarks"`
	ParamsSchema map[string]any `json:"params_schema" doc:"JSON Schema (2020-12) of template_params.params"`
	Defaults     map[string]any `json:"defaults" doc:"Members of an application; {name} stands for the parameter of that name"`
}
