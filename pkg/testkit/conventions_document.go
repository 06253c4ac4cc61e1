package testkit

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/openapi"
	"github.com/idplatform/idplatform/pkg/schema"
)

// documented checks that the document has what readers and generators of clients need.
func documented(t *testing.T, s *Service, r Resource) {
	doc := s.description()
	assert.Equal(t, "3.1.0", doc.OpenAPI)
	assert.NotEmpty(t, doc.Info.License.Name)
	assert.NotEmpty(t, doc.Info.License.URL)
	assert.NotEmpty(t, doc.Info.Contact.Name)
	nouns := map[string]bool{}
	for _, tag := range doc.Tags {
		assert.Regexp(t, `^[A-Z][a-z]+( [a-z]+)*$`, tag.Name)
		assert.Regexp(t, `^[A-Z].*\.$`, tag.Description, "a sentence")
		assert.NotContains(t, nouns, tag.Name, "a noun has one sentence")
		nouns[tag.Name] = true
	}
	for name := range doc.Components.Schemas {
		assert.Regexp(t, `^([A-Z][a-z0-9]*)+$`, name, "schemas have UpperCamelCase names")
	}
	older := s.Stranger().Get("/openapi-3.0.json")
	for _, document := range []*Answer{s.Stranger().Get("/openapi.json"), older} {
		parsed, err := openapi.Parse(document.Body)
		require.NoError(t, err)
		assert.Empty(t, openapi.Faults(parsed))
	}
	tagged := s.tagged()
	assert.Equal(t, "3.0.3", older.Object()["openapi"])
	assert.NotContains(t, string(older.Body), `"type":[`, "only OpenAPI 3.1 has lists of types")
	operationIDs := map[string]bool{}
	for _, o := range s.operations() {
		assert.NotContains(t, operationIDs, o.OperationID)
		operationIDs[o.OperationID] = true
		require.Len(t, o.Tags, 1, o.OperationID)
		assert.Contains(t, nouns, o.Tags[0], o.OperationID)
		documentedOperation(t, doc, o, r)
		exampleFits(t, doc, o)
		if o.versioned(doc) {
			assert.Contains(t, tagged, o.Path, "%s answers a record with a version, but without an ETag", o.OperationID)
			assert.Contains(t, o.Parameters, parameter{Ref: "#/components/parameters/IfNoneMatch"}, o.OperationID)
		}
		if of := o.record(tagged); of != "" {
			assert.Contains(t, o.Parameters, parameter{Ref: "#/components/parameters/IfMatch"},
				"%s changes the record of GET %s, or acts on it", o.OperationID, of)
		}
		deprecated(t, s, o)
	}
	for name, schema := range doc.Components.Schemas {
		members, _ := schema.(map[string]any)["properties"].(map[string]any)
		for member, property := range members {
			operations, _ := property.(map[string]any)["x-changed-by"].([]any)
			for _, id := range operations {
				assert.Contains(t, operationIDs, id, "%s.%s", name, member)
			}
		}
	}
}

// deprecated: every answer of a deprecated operation says so, and what to use instead (RFC 9745).
func deprecated(t *testing.T, s *Service, o operation) {
	answer := s.Stranger().Do(o.Method, o.url(), "{}")
	if !o.Deprecated {
		assert.Empty(t, answer.Header.Get("Deprecation"), o.OperationID)
		return
	}
	assert.Regexp(t, `^@[0-9]+$`, answer.Header.Get("Deprecation"), o.OperationID)
	assert.Regexp(t, `^</v1/[^{}]+>; rel="successor-version"$`, answer.Header.Get("Link"), o.OperationID)
}

// exampleFits checks the example of an operation's JSON answer against its schema. That of its body is sent by others.
func exampleFits(t *testing.T, doc description, o operation) {
	var answer struct {
		Content map[string]struct {
			Schema  map[string]any
			Example json.RawMessage
		}
	}
	_ = json.Unmarshal(o.Responses["200"], &answer)
	body, ok := answer.Content["application/json"]
	if !ok {
		return
	}
	body.Schema["components"] = map[string]any{"schemas": doc.Components.Schemas}
	text, err := json.Marshal(body.Schema)
	require.NoError(t, err)
	compiled, err := schema.Compile(text)
	require.NoError(t, err, o.OperationID)
	var faults apperr.Faults
	compiled.Check(&faults, body.Example)
	assert.NoError(t, faults.Err(), "the example of the answer of %s", o.OperationID)
}

// documentedOperation checks an operation's id, summary, parameters, security, responses and examples.
func documentedOperation(t *testing.T, doc description, o operation, r Resource) {
	assert.Regexp(t, `^[a-z]+(-[a-z]+)+$`, o.OperationID, "%s %s", o.Method, o.Path)
	assert.Regexp(t, `^[A-Z].*[^.]$`, o.Summary, o.OperationID)
	parameters := map[parameter]bool{}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = doc.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
		}
		assert.NotContains(t, parameters, p, "%s has a parameter twice", o.OperationID)
		parameters[p] = true
	}
	statuses := []string{"200", "400", "429", "500", "503"}
	if o.scim() { // it may answer with 201 or 204
		statuses = statuses[1:]
	}
	if slices.Contains(r.Open, o.OperationID) {
		assert.Empty(t, o.Scope, o.OperationID)
		assert.Equal(t, []map[string][]string{}, o.Security, "%s has no security: []", o.OperationID)
	} else {
		assert.False(t, o.open(), "%s is open, but not among Open", o.OperationID)
		assert.Equal(t, slices.Contains(r.AnyToken, o.OperationID), o.Scope == "",
			"%s must have a scope, or be among AnyToken", o.OperationID)
		assert.Contains(t, o.Security, map[string][]string{"bearer": strings.Fields(o.Scope)}, o.OperationID)
		statuses = append(statuses, "401", "403")
	}
	if strings.Contains(o.Path, "{") {
		statuses = append(statuses, "404")
	}
	if o.takesJSON() {
		statuses = append(statuses, "413")
		if !o.Lenient {
			statuses = append(statuses, "415")
		}
		assert.NotEmpty(t, o.RequestBody.Content["application/json"].Example, "%s has no example of a request",
			o.OperationID)
	}
	for _, status := range statuses {
		assert.Contains(t, o.Responses, status, o.OperationID)
	}
	answer := string(o.Responses["200"])
	if o.scim() && answer == "" {
		return
	}
	assert.True(t, strings.Contains(answer, `"example"`) || strings.Contains(answer, "image/"),
		"%s has no example of an answer", o.OperationID)
}
