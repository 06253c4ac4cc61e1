// Package component keeps components (reusable pieces of pages and flows, each with a JSON Schema for its
// configuration) and their published versions.
package component

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/schema"
	"github.com/idplatform/idplatform/pkg/textindex"
)

const (
	maxComponents = 1000     // of a tenant
	maxVersions   = 100      // of a component
	maxName       = 128      // characters
	maxSchema     = 16 << 10 // bytes
	maxConfig     = 64 << 10 // bytes
)

// Component is a component record. Its JSON form is the API's, the events' and the store's.
type Component struct {
	docstore.Meta
	Profile
	Status           string     `json:"status" enum:"1,0" doc:"1: people may use it; 1 if absent"`
	ComponentVersion int64      `json:"component_version" readOnly:"true" doc:"The last that was published; 0 for none"`
	TimePublished    clock.Time `json:"time_published" readOnly:"true" nullable:"true" doc:"When the last version was published; null: none is"`
}

// Profile holds the members that are published.
type Profile struct {
	Code   string          `json:"code" required:"true" doc:"1…64 letters, digits or . _ -; unique" example:"banner"`
	Name   string          `json:"name" required:"true" doc:"1…128 characters" example:"Banner"`
	Type   string          `json:"type" required:"true" doc:"What it is a piece of: 1…64 lower-case letters, digits, _ or -" example:"login_page"`
	Schema json.RawMessage `json:"schema" required:"false" doc:"A JSON Schema (2020-12) for config, without references; up to 16 KiB" example:"{\"type\":\"object\",\"required\":[\"title\"],\"properties\":{\"title\":{\"type\":\"string\",\"maxLength\":80}}}"`
	Config json.RawMessage `json:"config" required:"false" doc:"Must meet schema; up to 64 KiB" example:"{\"title\":\"Welcome\"}"`
}

// Version is a published version of a component.
type Version struct {
	docstore.Meta
	ComponentID      string `json:"component_id" doc:"The component" example:"1048577"`
	ComponentVersion int64  `json:"component_version" doc:"Counts the versions from 1" example:"1"`
	Profile
}

const (
	byCode         = "code"
	byName         = "name"
	byType         = "type"
	byStatus       = "status"
	byComponent    = "component"
	byVersion      = "component_version"
	byTimeCreated  = "time_created"
	byTimeModified = "time_modified"
)

var components = outbox.Define("component", "/components", docstore.Schema[Component]{
	Name: "components", Noun: "component",
	Sortable: []string{byTimeCreated, byCode, byName, byTimeModified},
	Indexes: slices.Concat([]docstore.Index[Component]{
		docstore.Unique(docstore.ByText(byCode, func(c *Component) string { return c.Code }), "code"),
		docstore.ByText(byName, func(c *Component) string { return textindex.Key(c.Name) }),
		docstore.ByText(byType, func(c *Component) string { return c.Type }),
		docstore.ByText(byStatus, func(c *Component) string { return c.Status }),
		docstore.ByNumber(byTimeCreated, func(c *Component) docstore.Value { return docstore.Moment(c.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(c *Component) docstore.Value { return docstore.Moment(c.TimeModified) }),
	}, textindex.KeywordIndexes(func(c *Component) []string { return []string{c.Name, c.Code} })),
})

var versions = docstore.Define(docstore.Schema[Version]{
	Name: "component_versions", Noun: "version", NoIfMatch: true,
	Sortable: []string{byVersion},
	Indexes: []docstore.Index[Version]{
		docstore.ByText(byComponent, func(v *Version) string { return v.ComponentID }),
		docstore.ByNumber(byVersion, func(v *Version) docstore.Value { return docstore.Number(v.ComponentVersion) }),
	},
})

// Doc is a component as read or written.
type Doc = docstore.Doc[Component]

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{components.Def(), versions.Def()} }

var typeName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// Draft holds the members that clients set.
type Draft struct {
	Profile
	Status string `json:"status"`
}

// complete sets absent members to their defaults.
func (d *Draft) complete() {
	for _, member := range []*json.RawMessage{&d.Schema, &d.Config} {
		if len(*member) == 0 || string(*member) == "null" {
			*member = json.RawMessage("{}")
		}
	}
	if d.Status == "" {
		d.Status = enabled
	}
}

const enabled = "1"

// check completes a draft and reports its faults. It can take a second, because a schema can be expensive.
func (d *Draft) check() error {
	d.complete()
	p := &d.Profile
	var faults apperr.Faults
	faults.Switch("status", &d.Status, enabled)
	faults.Code("code", p.Code)
	faults.Name("name", p.Name, maxName)
	faults.Check(typeName.MatchString(p.Type), "type",
		"must have 1…64 lower-case letters, digits, _ or -, and begin with a letter")
	faults.Props("schema", &p.Schema)
	faults.Check(len(p.Schema) <= maxSchema, "schema", "must have at most %d KiB", maxSchema>>10)
	faults.Props("config", &p.Config)
	if err := faults.Err(); err != nil {
		return err
	}
	if refers(p.Schema) {
		faults.Add("schema", "must not have references ($ref, $dynamicRef, $recursiveRef)")
		return faults.Err()
	}
	compiled, err := schema.Compile(p.Schema)
	if err != nil {
		faults.Add("schema", "must be a JSON Schema (draft 2020-12)")
		return faults.Err()
	}
	compiled.Check(faults.Within("config"), p.Config)
	return faults.Err()
}

// refers reports whether a schema has references. With them, a check by a short schema could take exponential time.
func refers(text json.RawMessage) bool {
	var found func(v any) bool
	found = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				_, isText := value.(string)
				if isText && (name == "$ref" || name == "$dynamicRef" || name == "$recursiveRef") || found(value) {
					return true
				}
			}
		case []any:
			for _, value := range v {
				if found(value) {
					return true
				}
			}
		}
		return false
	}
	var parsed any
	return json.Unmarshal(text, &parsed) == nil && found(parsed)
}

// same reports whether two profiles are equal.
func (p *Profile) same(q *Profile) bool {
	return p.Code == q.Code && p.Name == q.Name && p.Type == q.Type && bytes.Equal(p.Schema, q.Schema) &&
		bytes.Equal(p.Config, q.Config)
}
