// Package connection is the domain of a tenant's connections to login providers.
package connection

import (
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/identity-sources/internal/provider"
)

// The values of status.
const (
	Enabled  = "1"
	Disabled = "0"
)

// MaxConnections is how many connections a tenant can have. The bound is low because a list is one array.
const MaxConnections = 200

const (
	maxDisplayName = 128 // characters
)

// Connection is a connection record. It has the same JSON form in the API, in events and in the store.
type Connection struct {
	docstore.Meta
	ProviderID   string `json:"provider_id" readOnly:"true" doc:"The id of the provider" example:"1"`
	ProviderCode string `json:"provider_code" doc:"Which provider, as list-providers has it" example:"wechat_scan_qr"`
	DisplayName  string `json:"display_name" doc:"Up to 128 characters" example:"微信"`
	ConfigFields Fields `json:"config_fields" doc:"As the provider's config_schema says; ****** for secrets" example:"{\"AppId\":\"wx8f3a2b1c0d9e7f65\",\"AppSecret\":\"******\",\"displayName\":\"微信\"}"`
	DeveloperID  string `json:"developer_id" readOnly:"true" doc:"The caller who created it" example:"admin"`
	Name         string `json:"name" readOnly:"true" doc:"The provider's" example:"WeChat"`
	Type         string `json:"type" readOnly:"true" doc:"The provider's" enum:"social,database,mfa,enterprise"`
	Logo         string `json:"logo" readOnly:"true" doc:"The provider's logo if the platform has one; otherwise empty, and list-providers has a monogram"`
	Status       string `json:"status" enum:"1,0" doc:"Changed by enable and disable"`
}

const (
	byProvider = "provider_code"
	byType     = "type"
	byStatus   = "status"
	byNative   = "native"
	byCreated  = "time_created"
)

var connections = outbox.Define("connection", "/idp/connections", docstore.Schema[Connection]{
	Name: "connections", Noun: "connection", Sortable: []string{byCreated},
	Indexes: slices.Concat([]docstore.Index[Connection]{
		docstore.ByText(byProvider, func(c *Connection) string { return c.ProviderCode }),
		docstore.ByText(byType, func(c *Connection) string { return c.Type }),
		docstore.ByText(byStatus, func(c *Connection) string { return c.Status }),
		docstore.Unique(docstore.ByText(byNative, (*Connection).native), "provider_code"),
		docstore.ByNumber(byCreated, func(c *Connection) docstore.Value { return docstore.Moment(c.TimeCreated) }),
	}, textindex.KeywordIndexes(func(c *Connection) []string {
		return []string{c.DisplayName, c.Name, c.ProviderCode}
	})),
	Sealed: (*Connection).sealed,
})

func (c *Connection) sealed() (members []docstore.Sealed) {
	p, ok := provider.Builtin().Find(c.ProviderCode)
	if !ok {
		return nil
	}
	for name, text := range c.ConfigFields.secrets(p) {
		route := docstore.Route{"provider_code": c.ProviderCode}
		for member, value := range p.Route(name, func(of string) json.RawMessage { return c.ConfigFields[of].json }) {
			route["config_fields."+member] = value
		}
		members = append(members, docstore.Seal(name, text, route).At("config_fields."+name))
	}
	return members
}

// native is the value of a native database connection in a unique index; other connections have none.
func (c *Connection) native() string {
	if c.ProviderCode == provider.NativeDatabase {
		return "1"
	}
	return ""
}

// Draft is what a client sends about a connection.
type Draft struct {
	ProviderCode string `json:"provider_code"`
	DisplayName  string `json:"display_name"`
	ConfigFields Fields `json:"config_fields"`
}

// NewConnection is what a client sends about a new connection.
type NewConnection struct {
	Draft
	Status string `json:"status"` // Enabled if empty
}

// check returns the provider and reports every fault of a draft. before is the connection that is replaced, nil for a
// new one.
func (d *Draft) check(before *Connection) (*provider.Provider, error) {
	var faults apperr.Faults
	if d.ConfigFields == nil {
		d.ConfigFields = Fields{}
	}
	p, ok := provider.Builtin().Find(d.ProviderCode)
	if ok {
		var kept Fields
		if before != nil && before.ProviderCode == d.ProviderCode {
			kept = before.ConfigFields
		}
		if err := d.ConfigFields.check(faults.Within("config_fields"), p, kept); err != nil {
			return nil, err
		}
		if d.DisplayName == "" {
			d.DisplayName = d.ConfigFields.text("displayName")
		}
	} else {
		faults.Add("provider_code", "must be the provider_code of one of GET /v1/idp/providers")
	}
	faults.Text("display_name", d.DisplayName, maxDisplayName)
	return p, faults.Err()
}

// apply writes a checked draft into the connection.
func (c *Connection) apply(d *Draft, p *provider.Provider) {
	c.ProviderID, c.ProviderCode, c.Name, c.Type, c.Logo = p.ProviderID, p.ProviderCode, p.Name, p.Type, p.OwnLogo()
	c.DisplayName, c.ConfigFields = d.DisplayName, d.ConfigFields
}
