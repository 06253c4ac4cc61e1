package httpapi

import (
	"time"

	"github.com/idplatform/idplatform/pkg/rest"
)

// The types below describe JSON for the OpenAPI document and for the validation of bodies. Records are stored in this
// very form and are not converted; a test holds the two against each other.

// Application is the application record.
type Application struct {
	rest.Meta
	Profile
	ClientID            string         `json:"client_id" readOnly:"true" example:"4mrhvkqtwz5c2d7ba3gxyun6ep"`
	Status              string         `json:"status" enum:"1,0" doc:"Changed by enable and disable"`
	SSOEnabled          string         `json:"sso_enabled" enum:"1,0" doc:"The one of config_prop"`
	MFAEnabled          string         `json:"mfa_enabled" enum:"1,0" doc:"The one of config_prop"`
	MultiAccountEnabled string         `json:"multi_account_enabled" enum:"1,0" doc:"Whether a user may have several sub-accounts"`
	Secrets             []ClientSecret `json:"secrets" readOnly:"true"`
	IDPs                []Source       `json:"idps" readOnly:"true" doc:"Attached authentication sources"`
}

// ClientSecret is what is shown of a client secret.
type ClientSecret struct {
	ID          string     `json:"id" example:"1048580"`
	Hint        string     `json:"hint" doc:"The last characters" example:"…a3f9"`
	TimeCreated time.Time  `json:"time_created"`
	TimeExpires *time.Time `json:"time_expires" nullable:"true" doc:"null: it does not end by itself"`
}

// Source is an attached authentication source.
type Source struct {
	ConfigID     string `json:"config_id" example:"31"`
	ProviderCode string `json:"provider_code" example:"wechat_scan_qr"`
}

// Profile is what create and change can set. Lengths and forms are the domain's to check, so that their faults are told
// in one voice.
type Profile struct {
	Name             string         `json:"name" doc:"1…128 characters; unique without regard to case and width" example:"Expenses"`
	Type             string         `json:"type" enum:"1,2" doc:"1 self-built, 2 made from a template" example:"1"`
	DomainSN         string         `json:"domain_sn" doc:"Domain; unique when not empty" example:"expenses"`
	TemplateID       string         `json:"template_id" example:""`
	Category         string         `json:"category" enum:"1,2,3,4" doc:"1 standard web, 2 single-page, 3 client, 4 backend service" example:"1"`
	Descr            string         `json:"descr" example:""`
	Logo             string         `json:"logo" doc:"Path or URL of the logo" example:""`
	LoginURL         string         `json:"login_url" example:"https://expenses.acme.test/login"`
	RedirectURL      string         `json:"redirect_url" doc:"One or more URLs, joined by commas" example:"https://expenses.acme.test/callback"`
	LogoutURL        string         `json:"logout_url" example:"https://expenses.acme.test/logout"`
	SubAccountPolicy string         `json:"sub_account_policy" enum:"1,0" doc:"1: single sign-on returns sub-account information" example:"0"`
	ProtocolType     string         `json:"protocol_type" enum:"cas,oauth2,saml,oidc,sxp" example:"oidc"`
	ConfigProp       ConfigProp     `json:"config_prop"`
	Scopes           []string       `json:"scopes" doc:"What its tokens may be good for; only scopes that the caller has can be given"`
	SysExtProps      map[string]any `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps     map[string]any `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
}

// ConfigProp is an application's configuration.
type ConfigProp struct {
	MFAEnabled string `json:"mfa_enabled,omitempty" enum:"1,0"`
	SSOEnabled string `json:"sso_enabled,omitempty" enum:"1,0"`
}

// ApplicationInput is an application to be created, or the members of one to be changed. Read-only members may be sent
// back and do not count.
type ApplicationInput struct {
	rest.MetaInput

	Name             string         `json:"name" example:"Expenses"`
	Type             string         `json:"type,omitempty" enum:"1,2"`
	DomainSN         string         `json:"domain_sn,omitempty"`
	TemplateID       string         `json:"template_id,omitempty"`
	Category         string         `json:"category,omitempty" enum:"1,2,3,4"`
	Descr            string         `json:"descr,omitempty"`
	Logo             string         `json:"logo,omitempty"`
	LoginURL         string         `json:"login_url,omitempty" example:"https://expenses.acme.test/login"`
	RedirectURL      string         `json:"redirect_url,omitempty"`
	LogoutURL        string         `json:"logout_url,omitempty"`
	SubAccountPolicy string         `json:"sub_account_policy,omitempty" enum:"1,0"`
	ProtocolType     string         `json:"protocol_type,omitempty" enum:"cas,oauth2,saml,oidc,sxp"`
	ConfigProp       ConfigProp     `json:"config_prop,omitzero"`
	Scopes           []string       `json:"scopes,omitempty"`
	SysExtProps      map[string]any `json:"sys_ext_props,omitempty"`
	FreeExtProps     map[string]any `json:"free_ext_props,omitempty"`

	ClientID            string         `json:"client_id,omitempty" readOnly:"true"`
	Status              string         `json:"status,omitempty" enum:"1,0"`
	SSOEnabled          string         `json:"sso_enabled,omitempty" enum:"1,0"`
	MFAEnabled          string         `json:"mfa_enabled,omitempty" enum:"1,0"`
	MultiAccountEnabled string         `json:"multi_account_enabled,omitempty" enum:"1,0"`
	Secrets             []ClientSecret `json:"secrets,omitempty" readOnly:"true"`
	IDPs                []Source       `json:"idps,omitempty" readOnly:"true"`
}
