package operations

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type document struct {
	Paths      map[string]map[string]operation
	Components struct {
		Schemas    map[string]*schema
		Parameters map[string]parameter
	}
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Parameters                        []parameter
	RequestBody                       struct{ Content map[string]media }
	Responses                         map[string]struct{ Content map[string]media }
	Security                          []map[string][]string
	Scope                             string `json:"x-scope"`
	Momentary                         bool   `json:"x-momentary"`
}

type parameter struct {
	Ref         string `json:"$ref"`
	In, Name    string
	Description string
	Required    bool
	Schema      schema
}

type media struct{ Schema schema }

type schema struct {
	Ref         string `json:"$ref"`
	Type        types
	Enum        []any
	Description string
	ReadOnly    bool
	ChangedBy   []string `json:"x-changed-by"` // the only operations that change it
	Required    []string
	Items       *schema
	Properties  map[string]*schema
}

// types is a type, or in OpenAPI 3.1 a list of a type and "null".
type types string

func (t *types) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = types(one)
		return nil
	}
	var several []string
	if err := json.Unmarshal(text, &several); err != nil {
		return err
	}
	several = slices.DeleteFunc(several, func(s string) bool { return s == "null" })
	if len(several) == 1 {
		*t = types(several[0])
	}
	return nil
}

// Parse makes a table of an OpenAPI document.
func Parse(text []byte) (*Table, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	var all []*Operation
	for path, methods := range d.Paths {
		for method, o := range methods {
			if o.OperationID != "" {
				all = append(all, d.operation(strings.ToUpper(method), path, o))
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the OpenAPI document has no operations")
	}
	return NewTable(all), nil
}

// common are parameters that commands have for all operations.
var common = []string{"dry_run", "Idempotency-Key", "If-Match", "If-None-Match", "X-Tenant-Id", "X-Payload-Origin"}

func (d *document) operation(method, path string, o operation) *Operation {
	out := &Operation{
		ID: o.OperationID, Method: method, Path: path, Summary: o.Summary, Description: o.Description, Scope: o.Scope,
		Momentary: o.Momentary, Open: len(o.Security) == 0,
		Body:   slices.Sorted(maps.Keys(o.RequestBody.Content)),
		Answer: slices.Sorted(maps.Keys(o.Responses["200"].Content)),
	}
	if len(o.Tags) > 0 {
		out.Tag = o.Tags[0]
	}
	for _, p := range o.Parameters {
		if _, name, ok := strings.Cut(p.Ref, "#/components/parameters/"); ok {
			p = d.Components.Parameters[name]
		}
		out.Matches = out.Matches || p.Name == "If-Match"
		if !slices.Contains(common, p.Name) {
			made := p.Schema.parameter(p.Name)
			made.In, made.Required = p.In, p.Required
			made.Description = p.Description
			out.Parameters = append(out.Parameters, made)
		}
	}
	for _, kind := range []string{JSON, "application/x-www-form-urlencoded"} {
		if media, ok := o.RequestBody.Content[kind]; ok {
			out.Members = d.members(media.Schema)
		}
	}
	answer := d.resolve(o.Responses["200"].Content[JSON].Schema)
	out.List = answer.Properties["items"] != nil
	out.Paged = out.List && answer.Properties["next_page_token"] != nil
	return out
}

func (d *document) resolve(s schema) schema {
	if _, name, ok := strings.Cut(s.Ref, "#/components/schemas/"); ok && d.Components.Schemas[name] != nil {
		resolved := *d.Components.Schemas[name]
		if s.Description != "" {
			resolved.Description = s.Description
		}
		return resolved
	}
	return s
}

// members are the members of a body that a caller can set.
func (d *document) members(s schema) []Parameter {
	s = d.resolve(s)
	var out []Parameter
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := d.resolve(*s.Properties[name])
		if property.ReadOnly || len(property.ChangedBy) > 0 {
			continue
		}
		made := property.parameter(name)
		made.Required = slices.Contains(s.Required, name)
		out = append(out, made)
	}
	return out
}

func (s schema) parameter(name string) Parameter {
	p := Parameter{Name: name, Type: string(s.Type), Description: s.Description}
	if s.Items != nil {
		p.Items = string(s.Items.Type)
	}
	for _, value := range s.Enum {
		if text, ok := value.(string); ok {
			p.Values = append(p.Values, text)
		}
	}
	return p
}
