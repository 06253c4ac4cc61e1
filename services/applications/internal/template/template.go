// Package template is the built-in catalogue of application templates: products and their settings, one file each in
// the folder catalogue. To add a product, add a file.
package template

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/monogram"
	"github.com/idplatform/idplatform/pkg/schema"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Template is a product that applications can be created from.
type Template struct {
	TemplateID   string          `json:"template_id" doc:"Its code" example:"gitlab"`
	Name         string          `json:"name" doc:"Of the product" example:"GitLab"`
	Version      string          `json:"version" doc:"Grows when the template changes" example:"1"`
	ProtocolType string          `json:"protocol_type" enum:"cas,oauth2,saml,oidc,sxp" doc:"How the product takes sign-ins" example:"saml"`
	Category     string          `json:"category" enum:"1,2,3,4" doc:"Of the applications made from it" example:"1"`
	Logo         string          `json:"logo" doc:"A data URI of its initials: real logos are trademarks" example:"data:image/svg+xml,%3Csvg…"`
	ParamsSchema json.RawMessage `json:"params_schema" doc:"JSON Schema (2020-12) of template_params.params" example:"{\"type\":\"object\"}"`
	Defaults     json.RawMessage `json:"defaults" doc:"Members of an application; {name} stands for the parameter of that name" example:"{\"login_url\":\"{base_url}/users/sign_in\"}"`

	schema *schema.Schema
}

// Catalogue is the list of templates, by name.
type Catalogue struct{ list []*Template }

//go:embed catalogue/*.json
var files embed.FS

// Open parses the catalogue.
func Open() (*Catalogue, error) {
	names, err := fs.Glob(files, "catalogue/*.json")
	if err != nil {
		return nil, err
	}
	c := &Catalogue{}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		t, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if "catalogue/"+t.TemplateID+".json" != name {
			return nil, fmt.Errorf("%s: the template is called %s", name, t.TemplateID)
		}
		c.list = append(c.list, t)
	}
	slices.SortFunc(c.list, func(a, b *Template) int {
		return strings.Compare(textindex.Key(a.Name), textindex.Key(b.Name))
	})
	return c, nil
}

func parse(text []byte) (*Template, error) {
	t := &Template{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(t); err != nil {
		return nil, err
	}
	var err error
	if t.schema, err = schema.Compile(t.ParamsSchema); err != nil {
		return nil, fmt.Errorf("params_schema: %w", err)
	}
	t.Logo = cmp.Or(t.Logo, monogram.DataURI(t.Name))
	return t, nil
}

// Find returns a template.
func (c *Catalogue) Find(id string) (*Template, bool) {
	i := slices.IndexFunc(c.list, func(t *Template) bool { return t.TemplateID == id })
	if i < 0 {
		return nil, false
	}
	return c.list[i], true
}

// Search lists the templates whose names contain a text, without regard to case and width.
func (c *Catalogue) Search(name string) []*Template {
	found := []*Template{}
	for _, t := range c.list {
		if strings.Contains(textindex.Key(t.Name), textindex.Key(name)) {
			found = append(found, t)
		}
	}
	return found
}

// Check reports faults of parameters. It returns true if there are none.
func (t *Template) Check(faults *apperr.Faults, params json.RawMessage) bool {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	return t.schema.Check(faults, params)
}

// Fill puts checked parameters into the template and returns the members that an application gets. A text with an
// absent parameter becomes empty.
func (t *Template) Fill(params json.RawMessage) (json.RawMessage, error) {
	values := map[string]any{}
	if len(params) > 0 {
		if err := json.Unmarshal(params, &values); err != nil {
			return nil, err
		}
	}
	var defaults any
	if err := json.Unmarshal(t.Defaults, &defaults); err != nil {
		return nil, err
	}
	return json.Marshal(filled(defaults, values))
}

var parameter = regexp.MustCompile(`\{([a-z_]+)\}`)

// filled replaces the parameters in all texts of a JSON value.
func filled(value any, params map[string]any) any {
	switch v := value.(type) {
	case string:
		whole := true
		text := parameter.ReplaceAllStringFunc(v, func(name string) string {
			given, ok := params[strings.Trim(name, "{}")].(string)
			whole = whole && ok
			return given
		})
		if !whole {
			return ""
		}
		return text
	case []any:
		for i := range v {
			v[i] = filled(v[i], params)
		}
	case map[string]any:
		for name := range v {
			v[name] = filled(v[name], params)
		}
	}
	return value
}
