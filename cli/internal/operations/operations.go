// Package operations is the table of the platform's operations, made from its OpenAPI document: which there are, what
// they take, and what they answer.
package operations

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Operation is one operation.
type Operation struct {
	ID          string      `json:"id"`
	Method      string      `json:"method"`
	Path        string      `json:"path"` // with {names}
	Tag         string      `json:"tag"`
	Summary     string      `json:"summary"`
	Description string      `json:"description,omitempty"`
	Scope       string      `json:"scope,omitempty"`
	Parameters  []Parameter `json:"parameters,omitempty"`
	Body        []string    `json:"body,omitempty"` // its content types
	Members     []Parameter `json:"members,omitempty"`
	Answer      []string    `json:"answer,omitempty"` // its content types
	List        bool        `json:"list,omitempty"`   // the answer has items
	Paged       bool        `json:"paged,omitempty"`  // and page tokens
	Momentary   bool        `json:"momentary,omitempty"`
	Open        bool        `json:"open,omitempty"`    // it needs no token
	Matches     bool        `json:"matches,omitempty"` // it honours If-Match
}

// Parameter is a parameter of the path, the query or the header, or a member of the body.
type Parameter struct {
	Name        string   `json:"name"`
	In          string   `json:"in,omitempty"`   // path, query or header; "" for a member
	Type        string   `json:"type,omitempty"` // of the value: string, integer, boolean, array, object; "": any
	Items       string   `json:"items,omitempty"`
	Values      []string `json:"values,omitempty"` // the only ones that are allowed
	Description string   `json:"description,omitempty"`
	Required    bool     `json:"required,omitempty"`
}

// JSON is the content type of most bodies.
const JSON = "application/json"

// Changes reports whether the operation can change something.
func (o *Operation) Changes() bool {
	return o.Method != "GET" && !o.Momentary && !o.Open && !strings.HasSuffix(o.Scope, ":read")
}

// In returns the parameters of one place.
func (o *Operation) In(place string) []Parameter {
	return slices.DeleteFunc(slices.Clone(o.Parameters), func(p Parameter) bool { return p.In != place })
}

// Has reports whether there is a parameter of this name in one place.
func (o *Operation) Has(place, name string) bool {
	return slices.ContainsFunc(o.In(place), func(p Parameter) bool { return p.Name == name })
}

// TakesJSON reports whether the body is JSON.
func (o *Operation) TakesJSON() bool { return slices.Contains(o.Body, JSON) }

// Table has operations by their ids.
type Table struct {
	All  []*Operation // in the order of ids
	byID map[string]*Operation
}

// NewTable makes a table.
func NewTable(all []*Operation) *Table {
	slices.SortFunc(all, func(a, b *Operation) int { return strings.Compare(a.ID, b.ID) })
	t := &Table{all, map[string]*Operation{}}
	for _, o := range all {
		t.byID[o.ID] = o
	}
	return t
}

// Find returns the operation with the id; nil if there is none.
func (t *Table) Find(id string) *Operation { return t.byID[id] }

// Match returns the operation of a method and a path such as /v1/users/1048577; nil if there is none.
func (t *Table) Match(method, path string) *Operation {
	var found *Operation
	for _, o := range t.All {
		if o.Method == method && fits(o.Path, path) && (found == nil || !strings.Contains(o.Path, "{")) {
			found = o
		}
	}
	return found
}

func fits(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(w, g string) bool { return w == g || w != "" && w[0] == '{' && g != "" })
}

//go:embed operations.json
var compiledIn []byte

// CompiledIn is the table of the platform that this program was built with.
var CompiledIn = sync.OnceValue(func() *Table {
	var all []*Operation
	if err := json.Unmarshal(compiledIn, &all); err != nil {
		panic("operations.json: " + err.Error()) // make generate wrote it
	}
	return NewTable(all)
})
