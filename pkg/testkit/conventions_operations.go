package testkit

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
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
	Lenient      bool                       `json:"x-lenient"`    // see rest.Op
	MaxBody      int                        `json:"x-max-body"`   // see rest.Op
	Page         bool                       `json:"x-page"`       // its answers are pages; see rest.Op.ErrorPage
	CrossSite    bool                       `json:"x-cross-site"` // other sites' pages may send it
	Fresh        string                     `json:"x-fresh"`      // see rest.Op
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

// open reports whether the operation needs no credential.
func (o operation) open() bool { return len(o.Security) == 0 }

// scopes are all scopes that the operation needs.
func (o operation) scopes() []auth.Scope {
	var scopes []auth.Scope
	for _, scope := range strings.Fields(o.Scope) {
		scopes = append(scopes, auth.Scope(scope))
	}
	return scopes
}

// asks reports whether the operation changes nothing, whatever its method: those who may only read may call it.
func (o operation) asks() bool {
	writes := func(scope string) bool {
		return !strings.HasSuffix(scope, ":read") && !strings.HasSuffix(scope, ":check")
	}
	scopes := strings.Fields(o.Scope)
	return o.Method == http.MethodGet || len(scopes) > 0 && !slices.ContainsFunc(scopes, writes)
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

// versioned reports whether the operation reads one record that has a version.
func (o operation) versioned(doc description) bool {
	var response struct {
		Content map[string]struct {
			Schema struct {
				Ref string `json:"$ref"`
			}
		}
	}
	_ = json.Unmarshal(o.Responses["200"], &response)
	schema := strings.TrimPrefix(response.Content["application/json"].Schema.Ref, "#/components/schemas/")
	members, _ := doc.Components.Schemas[schema].(map[string]any)
	properties, _ := members["properties"].(map[string]any)
	_, ok := properties["version"]
	return ok && o.Method == http.MethodGet && strings.HasSuffix(o.Path, "}")
}

// oauth reports whether the operation's errors are OAuth errors.
func (o operation) oauth() bool {
	return !o.Page && !o.scim() && !o.documents("400", problem.ContentType)
}

// scimType is rest.SCIMType.
const scimType = "application/scim+json"

// scim reports whether the operation is one of SCIM: its errors have the form of RFC 7644 §3.12.
func (o operation) scim() bool { return o.documents("400", scimType) }

// refusal is Problem for an operation whose errors may have another form.
func (a *Answer) refusal(o operation, status int, code string, locations ...string) {
	a.t.Helper()
	if !o.scim() {
		a.Problem(status, code, locations...)
		return
	}
	require.Equal(a.t, status, a.Status, "%s", a.Body)
	require.Equal(a.t, scimType, a.Header.Get("Content-Type"))
	var fault struct {
		Schemas []string `json:"schemas"`
		Status  string   `json:"status"`
		Type    string   `json:"scimType"`
		Detail  string   `json:"detail"`
	}
	dec := json.NewDecoder(bytes.NewReader(a.Body))
	dec.DisallowUnknownFields()
	require.NoError(a.t, dec.Decode(&fault), "%s", a.Body)
	require.Equal(a.t, []string{"urn:ietf:params:scim:api:messages:2.0:Error"}, fault.Schemas)
	require.Equal(a.t, strconv.Itoa(status), fault.Status)
	require.NotEmpty(a.t, fault.Detail)
}
