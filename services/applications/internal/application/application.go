// Package application is the domain of applications: their records, secrets and configuration.
package application

import (
	"encoding/json"
	"net"
	"net/url"
	"strings"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// The values of on/off members.
const (
	On  = "1"
	Off = "0"
)

// The types: made from nothing, or from a template of the catalogue.
const (
	SelfBuilt    = "1"
	FromTemplate = "2"
)

// Service is the category of backend services, the machine clients: they alone get tokens.
const Service = "4"

// Application is an application record. Its JSON form is the API's, the events' and the store's.
type Application struct {
	docstore.Meta
	Profile
	ClientID            string   `json:"client_id"`
	Status              string   `json:"status"`
	SSOEnabled          string   `json:"sso_enabled"` // as in ConfigProp
	MFAEnabled          string   `json:"mfa_enabled"` // as in ConfigProp
	MultiAccountEnabled string   `json:"multi_account_enabled"`
	Secrets             []Secret `json:"secrets"`
	IDPs                []Source `json:"idps"`
}

// Profile holds the members that create and update may set.
type Profile struct {
	Name             string          `json:"name"`
	Type             string          `json:"type"`
	DomainSN         string          `json:"domain_sn"`
	TemplateID       string          `json:"template_id"`
	Category         string          `json:"category"`
	Descr            string          `json:"descr"`
	Logo             string          `json:"logo"`
	LoginURL         string          `json:"login_url"`
	RedirectURL      string          `json:"redirect_url"` // one or more, joined by commas
	LogoutURL        string          `json:"logout_url"`
	SubAccountPolicy string          `json:"sub_account_policy"`
	ProtocolType     string          `json:"protocol_type"`
	ConfigProp       ConfigProp      `json:"config_prop"`
	Scopes           []string        `json:"scopes"`
	SysExtProps      json.RawMessage `json:"sys_ext_props"`
	FreeExtProps     json.RawMessage `json:"free_ext_props"`
}

// ConfigProp is an application's configuration.
type ConfigProp struct {
	MFAEnabled string `json:"mfa_enabled"`
	SSOEnabled string `json:"sso_enabled"`
}

// Secret is what is shown of a client secret.
type Secret struct {
	ID          string     `json:"id"`
	Hint        string     `json:"hint"` // its last characters
	TimeCreated clock.Time `json:"time_created"`
	TimeExpires clock.Time `json:"time_expires"` // null: it does not end by itself
}

// Source is an attached authentication source: a connection of the identity-sources service.
type Source struct {
	ConfigID     string `json:"config_id"`
	ProviderCode string `json:"provider_code"`
}

// The indexes. Those that lists can be sorted by have the names of the members.
const (
	byName         = "name"
	byDomainSN     = "domain_sn"
	byClientID     = "client_id"
	byHost         = "host"
	byType         = "type"
	byStatus       = "status"
	byCategory     = "category"
	byTimeCreated  = "time_created"
	byTimeModified = "time_modified"
)

var applications = docstore.Define(docstore.Schema[Application]{
	Name: "applications", Noun: "application",
	Sortable: []string{byTimeCreated, byName, byTimeModified},
	Indexes: []docstore.Index[Application]{
		docstore.Unique(docstore.ByText(byName, func(a *Application) string { return textindex.Key(a.Name) }), "name"),
		docstore.Unique(docstore.ByText(byDomainSN, func(a *Application) string { return textindex.Key(a.DomainSN) }), "domain_sn"),
		docstore.Unique(docstore.ByText(byClientID, func(a *Application) string { return a.ClientID }), "client_id"),
		docstore.ByList(byHost, (*Application).hosts),
		docstore.ByText(byType, func(a *Application) string { return a.Type }),
		docstore.ByText(byStatus, func(a *Application) string { return a.Status }),
		docstore.ByText(byCategory, func(a *Application) string { return a.Category }),
		docstore.ByNumber(byTimeCreated, func(a *Application) docstore.Value { return docstore.Moment(a.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(a *Application) docstore.Value { return docstore.Moment(a.TimeModified) }),
	},
})

// hosts are the ways in which the host of the login URL can be written: with its port, and without.
func (a *Application) hosts() []string {
	u, err := url.Parse(a.LoginURL)
	if err != nil || u.Host == "" {
		return nil
	}
	host := strings.ToLower(u.Hostname())
	if u.Port() == "" {
		return []string{host}
	}
	return []string{host, net.JoinHostPort(host, u.Port())}
}
