package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// operation is one of the document's.
type operation struct {
	id, method, path string
	open             bool // needs no credential
	parameters       []parameter
	bodies           []body
}

type parameter struct {
	Ref    string `json:"$ref"`
	Name   string `json:"name"`
	In     string `json:"in"`
	Schema schema `json:"schema"`

	Required bool `json:"required"`
}

type body struct {
	contentType string
	example     any
	schema      *schema
}

// schema is what requests are made from.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"`
	Format     string             `json:"format"`
	Enum       []any              `json:"enum"`
	Examples   []any              `json:"examples"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	WriteOnly  bool               `json:"writeOnly"`
	ReadOnly   bool               `json:"readOnly"`
}

type document struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas    map[string]*schema   `json:"schemas"`
		Parameters map[string]parameter `json:"parameters"`
	} `json:"components"`
}

type described struct {
	ID          string      `json:"operationId"`
	Page        bool        `json:"x-page"` // for a person's browser: its errors are HTML, which the tool does not read
	Security    *[]any      `json:"security"`
	Parameters  []parameter `json:"parameters"`
	RequestBody struct {
		Content map[string]struct {
			Example any     `json:"example"`
			Schema  *schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

// load reads the platform's OpenAPI document.
func (a *attack) load(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.address+"/openapi.json", nil)
	if err != nil {
		return err
	}
	answer, err := a.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return a.read(text)
}

func (a *attack) read(text []byte) error {
	if err := json.Unmarshal(text, &a.document); err != nil {
		return err
	}
	for path, methods := range a.document.Paths {
		for method, raw := range methods {
			if method == "parameters" {
				continue
			}
			var d described
			if err := json.Unmarshal(raw, &d); err != nil {
				return fmt.Errorf("%s %s: %w", method, path, err)
			}
			if !d.Page {
				a.operations = append(a.operations, a.operation(path, method, d))
			}
		}
	}
	slices.SortFunc(a.operations, func(x, y *operation) int { return strings.Compare(x.id, y.id) })
	return nil
}

func (a *attack) operation(path, method string, d described) *operation {
	o := &operation{id: d.ID, method: strings.ToUpper(method), path: path}
	o.open = d.Security != nil && len(*d.Security) == 0
	for _, p := range d.Parameters {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
			p = a.document.Components.Parameters[name]
		}
		o.parameters = append(o.parameters, p)
	}
	for contentType, c := range d.RequestBody.Content {
		o.bodies = append(o.bodies, body{contentType, atHome(c.Example), c.Schema})
	}
	slices.SortFunc(o.bodies, func(x, y body) int { return strings.Compare(x.contentType, y.contentType) })
	return o
}

// resolve follows references; nil if there is no schema.
func (a *attack) resolve(s *schema) *schema {
	for s != nil && s.Ref != "" {
		s = a.document.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

var (
	address = regexp.MustCompile(`://[^/?#]*`)
	host    = regexp.MustCompile(`^([a-z0-9-]+\.)+(com|example|io|net|org|test)(:\d+)?$`)
)

// atHome replaces the hosts in an example, so that nothing leaves the machine.
func atHome(v any) any {
	switch v := v.(type) {
	case string:
		if host.MatchString(v) {
			return "127.0.0.1"
		}
		return address.ReplaceAllString(v, "://127.0.0.1:9")
	case []any:
		for i := range v {
			v[i] = atHome(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = atHome(v[name])
		}
	}
	return v
}
