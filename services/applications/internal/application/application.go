// Package application is the domain of applications: their records, secrets, configuration and protocols.
package application

import (
	"encoding/json"
	"net"
	"net/url"
	"slices"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/domain"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
)

// The types: created without, or from, a template.
const (
	SelfBuilt    = "1"
	FromTemplate = "2"
)

// The categories. Backend services are the machine clients: only they get tokens.
const (
	StandardWeb    = "1"
	SinglePage     = "2"
	ClientProgram  = "3"
	BackendService = "4"
)

// Application is an application record. It has the same JSON form in the API, in events and in the store.
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
	ProtocolProp     protocol.Prop   `json:"protocol_prop"` // also in the protocol's record, which has the secret
	ConfigProp       ConfigProp      `json:"config_prop"`
	SignInProp       SignInProp      `json:"sign_in_prop,omitzero"`
	TemplateParams   TemplateParams  `json:"template_params,omitzero"`
	Scopes           []string        `json:"scopes"`
	JWKS             json.RawMessage `json:"jwks,omitempty"`     // public keys, RFC 7517
	JWKSURI          string          `json:"jwks_uri,omitempty"` // or their address, RFC 7591 §2
	SysExtProps      json.RawMessage `json:"sys_ext_props"`
	FreeExtProps     json.RawMessage `json:"free_ext_props"`
}

// TemplateParams are the version of the template and the values of its parameters.
type TemplateParams struct {
	Version string          `json:"version,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
}

// IsZero is for encoding/json.
func (p TemplateParams) IsZero() bool { return p.Version == "" && len(p.Params) == 0 }

// Source is an attached authentication source: a connection of the identity-sources service.
type Source struct {
	ConfigID     string `json:"config_id"`
	ProviderCode string `json:"provider_code"`
}

// Doc is an application as read or written.
type Doc = docstore.Doc[Application]

// The indexes. Those that lists can be sorted by are named like the members.
const (
	byName         = "name"
	byNameGram     = "name_gram"
	byDomainSN     = "domain_sn"
	byClientID     = "client_id"
	byHost         = "host"
	byKind         = "kind"
	byConnection   = "connection"
	byPlace        = "place"
	byTimeCreated  = "time_created"
	byTimeModified = "time_modified"
)

var applications = outbox.Define("application", "/applications", docstore.Schema[Application]{
	Name: "applications", Noun: "application", Revision: 2,
	Sortable: []string{byTimeCreated, byName, byTimeModified},
	Due:      (*Application).due,
	Settle:   func(a *Application, now clock.Time) { a.settle(now) },
	Indexes: slices.Concat([]docstore.Index[Application]{
		docstore.Unique(docstore.ByText(byName, func(a *Application) string { return textindex.Key(a.Name) }), "name"),
		docstore.ByList(byNameGram, func(a *Application) []string {
			return textindex.Grams("", textindex.Key(a.Name))
		}),
		docstore.Unique(docstore.ByText(byDomainSN, func(a *Application) string { return textindex.Key(a.DomainSN) }),
			"domain_sn"),
		docstore.Global(docstore.ByText(byClientID, func(a *Application) string { return a.ClientID }), "client_id"),
		docstore.ByList(byHost, (*Application).hosts),
		docstore.Facet(docstore.ByText(byKind, func(a *Application) string {
			return kind(a.Type, a.Category, a.Status)
		}), byTimeCreated, byName),
		docstore.ByList(byConnection, (*Application).connections),
		docstore.ByList(byPlace, (*Application).places),
		docstore.ByNumber(byTimeCreated, func(a *Application) docstore.Value { return docstore.Moment(a.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(a *Application) docstore.Value {
			return docstore.Moment(a.TimeModified)
		}),
	}, textindex.KeywordIndexes(func(a *Application) []string { return []string{a.Name, a.DomainSN, a.ClientID} })),
})

// kind is type, category and status in one text, so that one index serves lists by any of them.
func kind(typ, category, status string) string { return typ + category + status }

// hosts are the host of the login URL with and without its port.
func (a *Application) hosts() []string {
	u, err := url.Parse(a.LoginURL)
	if err != nil || u.Host == "" {
		return nil
	}
	host := domain.Key(u.Hostname())
	if u.Port() == "" {
		return []string{host}
	}
	return []string{host, net.JoinHostPort(host, u.Port())}
}

func (a *Application) connections() []string {
	ids := make([]string, len(a.IDPs))
	for i, source := range a.IDPs {
		ids[i] = source.ConfigID
	}
	return ids
}

// Enabled reports whether the application is enabled.
func (a *Application) Enabled() bool { return a.Status == toggle.On }
