// Package provider is the built-in catalogue of identity providers: their names, the settings of a connection to each,
// and how these are tested. Each is one file in the folder catalogue; to add a provider, add a file.
package provider

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/monogram"
	"github.com/idplatform/idplatform/pkg/schema"
)

// NativeDatabase is the provider of the platform's own users. Every tenant has exactly one connection to it.
const NativeDatabase = "idp_native_db"

// Provider is a kind of login provider.
type Provider struct {
	ProviderID    string `json:"provider_id" doc:"Its id"` // never changes; a new provider gets the next number
	ProviderCode  string `json:"provider_code" doc:"Its code"`
	Name          string `json:"name" doc:"What people call it"`
	Type          string `json:"type" doc:"What it is for: social, database, mfa or enterprise"`
	Logo          string `json:"logo" doc:"A data URI of its initials: real logos are trademarks"`
	Documentation string `json:"documentation" doc:"Where its own documentation is"`
	// ConfigSchema is the JSON Schema (2020-12) of config_fields. Its writeOnly members are secrets. x-route of a
	// secret names the members that say where it is sent and how it is protected on its way: if one of them changes,
	// the secret must be given again.
	ConfigSchema json.RawMessage `json:"config_schema" doc:"JSON Schema (2020-12) of config_fields"`
	// SignIn, CallbackURL and LogoutURL are in no file: the URLs depend on the tenant.
	SignIn      string `json:"sign_in,omitempty" enum:"redirect,password" doc:"How people sign in: they go to the provider, or type their password there on a page of the platform. Absent: they cannot"`
	CallbackURL string `json:"callback_url,omitempty" doc:"The redirect URI to register, with {connection_id}. Absent: nobody goes there" example:"https://id.example.com/sign-in/acme/callback/{connection_id}"`
	LogoutURL   string `json:"logout_url,omitempty" doc:"The back-channel logout URI to register, with {connection_id}. Absent: the provider has none" example:"https://id.example.com/sign-in/acme/backchannel/{connection_id}"`

	Check   Check                      `json:"-"`
	Shapes  map[string]Shape           `json:"-"`
	Example map[string]json.RawMessage `json:"-"` // config_fields that meet the schema
	Secrets []string                   `json:"-"` // members of config_fields, sorted

	schema *schema.Schema
	routes map[string][]string // by secret
	absent map[string]any      // the schema's defaults
}

// The values of Provider.SignIn.
const (
	ByRedirect = "redirect"
	ByPassword = "password"
)

// Check is the way in which a connection is tested.
type Check string

// The checks.
const (
	NoCheck    Check = "none"  // nothing outside the platform is involved
	ShapeCheck Check = "shape" // only the provider can check its keys: their form is all that can be tested
	OIDCCheck  Check = "oidc"
	SAMLCheck  Check = "saml"
	LDAPCheck  Check = "ldap"
	CASCheck   Check = "cas"
	SMTPCheck  Check = "smtp"
)

// Shape is the usual form of a setting. A test of a connection reports a different form. It is not refused when it is
// written, because providers change their forms.
type Shape struct {
	Pattern *regexp.Regexp `json:"pattern"`
	Hint    string         `json:"hint"`
}

// file is a provider as it is stored in the catalogue.
type file struct {
	Provider
	Check   Check                      `json:"check"`
	Shapes  map[string]Shape           `json:"shapes"`
	Example map[string]json.RawMessage `json:"example"`
}

//go:embed catalogue/*.json
var files embed.FS

// Catalogue is the list of providers, in the order of their ids.
type Catalogue struct {
	list   []*Provider
	byCode map[string]*Provider
}

// Open parses the built-in catalogue.
func Open() (*Catalogue, error) {
	names, err := fs.Glob(files, "catalogue/*.json")
	if err != nil {
		return nil, err
	}
	c := &Catalogue{byCode: map[string]*Provider{}}
	ids := map[string]bool{}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if ids[p.ProviderID] || "catalogue/"+p.ProviderCode+".json" != name {
			return nil, fmt.Errorf("%s: another file has its provider_id, or its provider_code is not the file's name",
				name)
		}
		ids[p.ProviderID], c.byCode[p.ProviderCode] = true, p
		c.list = append(c.list, p)
	}
	slices.SortFunc(c.list, func(a, b *Provider) int {
		return cmp.Or(cmp.Compare(len(a.ProviderID), len(b.ProviderID)), cmp.Compare(a.ProviderID, b.ProviderID))
	})
	return c, nil
}

func parse(text []byte) (*Provider, error) {
	var f file
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return nil, err
	}
	p := &f.Provider
	p.Check, p.Shapes, p.Example = f.Check, f.Shapes, f.Example
	p.Logo = cmp.Or(p.Logo, monogram.DataURI(p.Name))
	var err error
	if p.schema, err = schema.Compile(p.ConfigSchema, formats...); err != nil {
		return nil, fmt.Errorf("config_schema: %w", err)
	}
	if err := p.readMembers(); err != nil {
		return nil, fmt.Errorf("config_schema: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, p.ConfigSchema); err != nil {
		return nil, err
	}
	p.ConfigSchema = compact.Bytes()
	return p, nil
}

// readMembers finds the secrets in the schema, with their routes, and the defaults.
func (p *Provider) readMembers() error {
	var members struct {
		Properties map[string]struct {
			WriteOnly bool     `json:"writeOnly"`
			Route     []string `json:"x-route"`
			Default   any      `json:"default"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(p.ConfigSchema, &members); err != nil {
		return err
	}
	p.routes, p.absent = map[string][]string{}, map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(members.Properties)) {
		member := members.Properties[name]
		p.absent[name] = member.Default
		if !member.WriteOnly {
			continue
		}
		if member.Route == nil {
			return fmt.Errorf("the secret %s has no x-route", name)
		}
		for _, other := range member.Route {
			if of, known := members.Properties[other]; !known || of.WriteOnly {
				return fmt.Errorf("x-route of %s names %s, which is not a member that can be shown", name, other)
			}
		}
		p.Secrets, p.routes[name] = append(p.Secrets, name), member.Route
	}
	return nil
}

// Route returns the members of config_fields that say where a secret is sent and how it is protected on its way, with
// their values: the defaults for those that are absent.
func (p *Provider) Route(secret string, fields func(name string) json.RawMessage) map[string]any {
	route := map[string]any{}
	for _, name := range p.routes[secret] {
		value := p.absent[name]
		if text := fields(name); text != nil && json.Unmarshal(text, &value) != nil {
			value = string(text)
		}
		route[name] = value
	}
	return route
}

// List returns all providers.
func (c *Catalogue) List() []*Provider { return c.list }

// Find returns a provider by its code.
func (c *Catalogue) Find(code string) (*Provider, bool) {
	p, ok := c.byCode[code]
	return p, ok
}

// OwnLogo is the logo in the provider's file, "" if Logo is a monogram. Connections and events contain only this one.
func (p *Provider) OwnLogo() string {
	if p.Logo == monogram.DataURI(p.Name) {
		return ""
	}
	return p.Logo
}

// IsSecret reports whether a member of config_fields is one.
func (p *Provider) IsSecret(member string) bool { return slices.Contains(p.Secrets, member) }

// ShapeNames returns the names of the settings in Shapes, sorted.
func (p *Provider) ShapeNames() []string { return slices.Sorted(maps.Keys(p.Shapes)) }

// Validate reports every fault of config_fields, each at its member.
func (p *Provider) Validate(faults *apperr.Faults, fields json.RawMessage) {
	p.schema.Check(faults, fields)
}

// Builtin is the built-in catalogue, parsed once. It panics if a file is faulty; a test shows that none is.
var Builtin = sync.OnceValue(func() *Catalogue {
	c, err := Open()
	if err != nil {
		panic(err)
	}
	return c
})
