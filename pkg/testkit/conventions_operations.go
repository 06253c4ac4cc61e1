package testkit

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/problem"
)

type operation struct {
	Method, Path string
	Collection   bool                       `json:"-"` // a GET lists what is at the path, too
	Deprecated   bool                       `json:"deprecated"`
	OperationID  string                     `json:"operationId"`
	Summary      string                     `json:"summary"`
	Tags         []string                   `json:"tags"`
	Scope        string                     `json:"x-scope"` // or several, separated by spaces
	Momentary    bool                       `json:"x-momentary"`
	Lenient      bool                       `json:"x-lenient"` // see rest.Op
	Security     []map[string][]string      `json:"security"`
	Parameters   []parameter                `json:"parameters"`
	Responses    map[string]json.RawMessage `json:"responses"`
	RequestBody  *struct {
		Content map[string]struct {
			Schema  json.RawMessage `json:"schema"`
			Example json.RawMessage `json:"example"`
		} `json:"content"`
		Required bool `json:"required"`
	} `json:"requestBody"`
}

// url fills in the parameters of the path.
func (o operation) url() string { return regexp.MustCompile(`\{\w+\}`).ReplaceAllString(o.Path, "1") }

// scopes are all scopes that the operation needs.
func (o operation) scopes() []auth.Scope {
	var scopes []auth.Scope
	for _, scope := range strings.Fields(o.Scope) {
		scopes = append(scopes, auth.Scope(scope))
	}
	return scopes
}

func (o operation) takesJSON() bool {
	if o.RequestBody == nil || !o.RequestBody.Required {
		return false
	}
	_, ok := o.RequestBody.Content["application/json"]
	return ok
}

// description is the part of a service's document that Conventions reads.
type description struct {
	OpenAPI string `json:"openapi"`
	Info    struct {
		License struct{ Name, URL string }
		Contact struct{ Name, URL string }
	}
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas    map[string]any
		Parameters map[string]parameter
	}
}

// parameter is one of an operation's parameters: its name and place, or a reference to a shared one.
type parameter struct {
	Ref  string `json:"$ref"`
	Name string `json:"name"`
	In   string `json:"in"`
}

func (s *Service) description() (doc description) {
	s.Stranger().Get("/openapi.json").OK(&doc)
	return doc
}

// operations reads the service's document.
func (s *Service) operations() []operation {
	doc := s.description()
	var all []operation
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			o := operation{Method: strings.ToUpper(method), Path: path}
			require.NoError(s.t, json.Unmarshal(raw, &o))
			_, read := methods["get"]
			o.Collection = read && !strings.HasSuffix(path, "}")
			all = append(all, o)
		}
	}
	require.NotEmpty(s.t, all)
	return all
}

// documents reports whether the operation can answer with this status, with a body of this content type.
func (o operation) documents(status, contentType string) bool {
	var response struct{ Content map[string]json.RawMessage }
	_ = json.Unmarshal(o.Responses[status], &response)
	_, ok := response.Content[contentType]
	return ok
}

// oauth reports whether the operation's errors are OAuth errors.
func (o operation) oauth() bool { return !o.documents("400", problem.ContentType) }
