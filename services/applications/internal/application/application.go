// Package application is the domain of applications: their records, secrets, configuration and protocols.
package application

import (
	"encoding/json"
	"net"
	"net/url"
	"slices"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/dnsname"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/applications/internal/protocol"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
	"github.com/idplatform/idplatform/services/questions"
)

// The types: created without, or from, a template.
const (
	SelfBuilt    = "1"
	FromTemplate = "2"
)

// The categories. Backend services are the machine clients: only they get tokens.
const (
	StandardWeb    = questions.StandardWeb
	SinglePage     = questions.SinglePage
	ClientProgram  = questions.ClientProgram
	BackendService = questions.BackendService
)

// Application is an application record. It has the same JSON form in the API, in events and in the store.
type Application struct {
	docstore.Meta
	Profile
	ClientID            string   `json:"client_id" readOnly:"true" doc:"Its name at the token endpoint" example:"4mrhvkqtwz5c2d7ba3gxyun6ep"`
	Status              string   `json:"status" changedBy:"enable-application disable-application" enum:"1,0" doc:"Changed by enable and disable"`
	SSOEnabled          string   `json:"sso_enabled" enum:"1,0" doc:"The same as in config_prop"`
	MFAEnabled          string   `json:"mfa_enabled" enum:"1,0" doc:"The same as in config_prop"`
	MultiAccountEnabled string   `json:"multi_account_enabled" changedBy:"enable-multi-accounts disable-multi-accounts" enum:"1,0" doc:"Whether a user may have several sub-accounts"`
	Secrets             []Secret `json:"secrets" readOnly:"true" nullable:"false" doc:"What its client secrets are, without themselves"`
	IDPs                []Source `json:"idps" readOnly:"true" nullable:"false" doc:"Attached authentication sources"`
}

// Profile holds the members that create and update may set.
type Profile struct {
	Name             string          `json:"name" required:"true" doc:"1…128 characters; unique without regard to case and width" example:"Expenses"`
	Type             string          `json:"type" enum:"1,2" doc:"1 self-built, 2 made from a template" example:"1"`
	DomainSN         string          `json:"domain_sn" doc:"Domain; unique when not empty" example:"expenses"`
	TemplateID       string          `json:"template_id" doc:"Template of the catalogue; empty: self-built" example:""`
	Category         string          `json:"category" enum:"1,2,3,4" doc:"1 standard web, 2 single-page, 3 client, 4 backend service" example:"1"`
	Descr            string          `json:"descr" doc:"Up to 2000 characters" example:"Claims and receipts"`
	Logo             string          `json:"logo" doc:"Path or URL of the logo" example:""`
	LoginURL         string          `json:"login_url" doc:"Where its sign-in begins, and where the own page of people leads; absolute, http or https" example:"https://expenses.acme.test/login"`
	RedirectURL      string          `json:"redirect_url" doc:"One or more URLs, joined by commas" example:"https://expenses.acme.test/callback"`
	LogoutURL        string          `json:"logout_url" doc:"Where its sign-out is; absolute, http or https" example:""`
	SubAccountPolicy string          `json:"sub_account_policy" enum:"1,0" doc:"1: single sign-on returns sub-account information" example:"0"`
	ProtocolType     string          `json:"protocol_type" enum:"cas,oauth2,saml,oidc,sxp" doc:"How people sign in to it; oauth2 is oidc without ID tokens and userinfo; sxp is kept, and nothing speaks it" example:"oidc"`
	ProtocolProp     protocol.Prop   `json:"protocol_prop" doc:"The settings of the protocol of protocol_type" example:"{\"lifetime_in_seconds\":3600,\"signature_algorithm\":\"RS256\"}"` // also in the protocol's record, which alone has its secret
	ConfigProp       ConfigProp      `json:"config_prop" doc:"What people can do at its sign-in" example:"{\"mfa_enabled\":\"0\",\"sso_enabled\":\"1\"}"`
	SignInProp       SignInProp      `json:"sign_in_prop,omitzero" doc:"How people sign in to it, and out of it"`
	TemplateParams   TemplateParams  `json:"template_params,omitzero" doc:"What it was made from a template with"`
	Scopes           []string        `json:"scopes" maxItems:"100" nullable:"false" doc:"The most that its tokens can have"`
	JWKS             json.RawMessage `json:"jwks,omitempty" doc:"Public keys (RFC 7517) for private_key_jwt"`
	JWKSURI          string          `json:"jwks_uri,omitempty" doc:"URL of these keys, instead of jwks"`
	SysExtProps      json.RawMessage `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps     json.RawMessage `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
}

// TemplateParams are the version of the template and the values of its parameters.
type TemplateParams struct {
	Version string          `json:"version,omitempty" doc:"Version of the template" example:"1"`
	Params  json.RawMessage `json:"params,omitempty" doc:"They must match the template's params_schema"`
}

// IsZero is for encoding/json.
func (p TemplateParams) IsZero() bool { return p.Version == "" && len(p.Params) == 0 }

// Source is an attached authentication source: a connection of the identity-sources service.
type Source struct {
	ConfigID     string `json:"config_id" doc:"The id of the connection" example:"31"`
	ProviderCode string `json:"provider_code" doc:"The code of the provider" example:"wechat_scan_qr"`
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
	byOrigin       = "origin"
	byTimeCreated  = "time_created"
	byTimeModified = "time_modified"
)

var applications = outbox.Define("application", "/applications", docstore.Schema[Application]{
	Name: "applications", Noun: "application", Revision: 3,
	Sortable: []string{byTimeCreated, byName, byTimeModified},
	Due:      (*Application).due,
	ApplyDue: func(a *Application, now clock.Time) { a.removeExpiredSecrets(now) },
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
		docstore.ByList(byOrigin, (*Application).origins),
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
	host := dnsname.Key(u.Hostname())
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
