package questions

import (
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/secret"
)

// ConnectionID names a connection of the identity-sources service.
type ConnectionID struct {
	ID string `json:"id"`
}

// Exists says whether the tenant has the record.
type Exists struct {
	Exists bool `json:"exists"`
}

// ConnectionExists asks whether a connection exists. Without an answer, nothing that refers to it is stored.
var ConnectionExists = bus.Question[ConnectionID, Exists]{Service: "identity-sources", Name: "connection-exists"}

// ConnectionIDs is a list of 1…100 ids of connections.
type ConnectionIDs struct {
	IDs []string `json:"ids"`
}

// Connections are the connections that exist, of those asked for.
type Connections struct {
	Connections []Connection `json:"connections"`
}

// Connection is a connection. Name is what people see; empty from a service of an earlier version.
type Connection struct {
	ID           string `json:"id"`
	ProviderCode string `json:"provider_code"`
	Name         string `json:"name,omitempty"`
	Disabled     bool   `json:"disabled,omitempty"` // people cannot sign in through it
	// Domains are the verified mail domains whose login names lead to the connection. Only LoginTemplateOf has them.
	Domains []ConnectionDomain `json:"domains,omitempty"`
}

// ConnectionDomain is a verified mail domain of a connection.
type ConnectionDomain struct {
	Name string `json:"name"` // in the form of dnsname.Key
	// Enforced says that users whose username or address is of the domain sign in by no password, but for some.
	Enforced      bool     `json:"enforced,omitempty"`
	ExemptUserIDs []string `json:"exempt_user_ids,omitempty"`
}

// ExistingConnections asks which connections exist. Without an answer, no connection is attached to an application.
var ExistingConnections = bus.Question[ConnectionIDs, Connections]{
	Service: "identity-sources", Name: "existing", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// TemplateCode is the code of an authentication template; empty: the tenant's default template.
type TemplateCode struct {
	Code string `json:"code"`
}

// LoginTemplate are the steps of a login. Found is false if the tenant has no such template, or no default.
type LoginTemplate struct {
	Found bool        `json:"found"`
	ID    string      `json:"id,omitempty"`
	Code  string      `json:"code,omitempty"`
	Steps []LoginStep `json:"steps"`
}

// LoginStep is one step: any of its methods completes it. A step that is not required may be skipped.
type LoginStep struct {
	Required bool          `json:"required"`
	Methods  []LoginMethod `json:"methods"`
	// Enrol says what becomes of people who have no factor for the step: demand, offer or off; empty from a service of
	// an earlier version, which means demand for a required step and off for others.
	Enrol string `json:"enrol,omitempty"`
	// GraceDays is for how many days they can go on without one, with demand.
	GraceDays int `json:"grace_days,omitempty"`
	// When is the condition of the step (package loginstep); empty: it is always there.
	When string `json:"when,omitempty"`
}

// The values of LoginStep.Enrol.
const (
	EnrolDemand = "demand"
	EnrolOffer  = "offer"
	EnrolOff    = "off"
)

// LoginMethod is an enabled authentication method.
type LoginMethod struct {
	Code string `json:"code"`
	Type string `json:"type"`
	// Second says that no sign-in begins with it.
	Second bool `json:"second,omitempty"`
	// Policy is as the method's type demands (GET /v1/auth-methods/schemas); empty from a service of an earlier
	// version.
	Policy json.RawMessage `json:"policy,omitempty"`
	// Connections are the method's enabled connections, if its type is social or enterprise.
	Connections []Connection `json:"connections,omitempty"`
}

// SignInProviders are the codes of the providers that sign-in speaks with: through a connection to another one nobody
// can sign in yet.
var SignInProviders = []string{
	"oidc", "google", "microsoft", "gitlab", "github", "wechat_scan_qr", "dingding_scan_qr", "qywechat_scan_qr",
	"feishu_scan_qr", "ldap", "active_directory", "cas",
}

// LoginTemplateOf asks for the steps. Methods that are disabled are left out. Without an answer, the asking service
// uses an answer of the last ten minutes, if it has one.
var LoginTemplateOf = bus.Question[TemplateCode, LoginTemplate]{Service: "identity-sources", Name: "login-template"}

// SettingsQuestion asks for the settings of a connection that is enabled, sealed to the asking replica: of the one with
// an id, or of the tenant's oldest connection to a provider.
type SettingsQuestion struct {
	ConnectionID string            `json:"connection_id,omitempty"`
	ProviderCode string            `json:"provider_code,omitempty"`
	To           secret.TransitKey `json:"to"`
}

// SealedSettings are a connection's config_fields with its secrets: a JSON object, sealed (secret.TransitKey.Seal) for
// the use ForSettings.
type SealedSettings struct {
	ConnectionID string `json:"connection_id"`
	ProviderCode string `json:"provider_code"` // empty from a service of an earlier version
	Sealed       string `json:"sealed"`
}

// ForSettings is the use that settings of connections are sealed for.
const ForSettings = "identity-sources.settings"

// SettingsOfConnection asks for them; NotFound is the answer if no such connection is enabled. Without an
// answer, the asking service tries again later.
var SettingsOfConnection = bus.Question[SettingsQuestion, SealedSettings]{
	Service: "identity-sources", Name: "settings",
	Refusals: []apperr.Kind{apperr.NotFound, apperr.InvalidParameters},
}
