package testkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/problem"
)

// Resource describes a service to Conventions: one record type that can be created, read, changed, deleted and listed.
type Resource struct {
	Collection string          // its path, such as /v1/users
	Body       func(n int) any // a body that creates the n-th record
	Change     map[string]any  // a PATCH body that changes one
	Faulty     map[string]any  // a body with faults that only the domain finds
	Faults     []string        // the locations of the faults of Faulty, such as body.email
	Unique     []string        // members of Body that no two records share, such as username
	Read       auth.Scope
	Write      auth.Scope
	Unrelated  auth.Scope // a scope that gives no access to the service

	Open   []string // ids of the operations without a credential; all others must need one
	Sealed []string // members of Body that are secrets and never shown

	// Query is a query that its lists and deletes require, such as object_code=company. It must select the records that
	// Body makes, and no others. Empty: none is required.
	Query string
	Seeds int // number of events that a new service publishes by itself, before the first request
}

// list is the path of a list with a query.
func (r Resource) list(query string) string { return r.with(r.Collection + "?" + query) }

// with adds Query to a path.
func (r Resource) with(path string) string {
	switch {
	case r.Query == "":
	case strings.Contains(path, "?"):
		path += "&" + r.Query
	default:
		path += "?" + r.Query
	}
	return path
}

// Conventions checks what holds for every operation of every service, from its OpenAPI document and one of its
// resources. start must return a new service each time.
func Conventions(t *testing.T, start func(testing.TB) *Service, r Resource) {
	t.Run("document", func(t *testing.T) { t.Parallel(); documented(t, start(t), r) })
	t.Run("admission", func(t *testing.T) { t.Parallel(); admission(t, start(t), r) })
	t.Run("open operations", func(t *testing.T) { t.Parallel(); openOperations(t, start(t), r) })
	t.Run("forms", func(t *testing.T) { t.Parallel(); forms(t, start(t)) })
	t.Run("event streams", func(t *testing.T) { t.Parallel(); eventStreams(t, start(t)) })
	t.Run("secrets", func(t *testing.T) { t.Parallel(); secrets(t, start(t), r) })
	t.Run("bodies", func(t *testing.T) { t.Parallel(); bodies(t, start(t), r) })
	t.Run("unique members", func(t *testing.T) { t.Parallel(); uniqueMembers(t, start(t), r) })
	t.Run("paths", func(t *testing.T) { t.Parallel(); paths(t, start(t), r) })
	t.Run("request ids", func(t *testing.T) { t.Parallel(); requestIDs(t, start(t), r) })
	t.Run("tenants", func(t *testing.T) { t.Parallel(); tenants(t, start(t), r) })
	t.Run("events", func(t *testing.T) { t.Parallel(); events(t, start(t), r) })
	t.Run("conditions", func(t *testing.T) { t.Parallel(); conditions(t, start(t), r) })
	t.Run("dry run", func(t *testing.T) { t.Parallel(); dryRun(t, start(t), r) })
	t.Run("idempotency", func(t *testing.T) { t.Parallel(); idempotency(t, start, r) })
	t.Run("kept answers", func(t *testing.T) { t.Parallel(); keptAnswers(t, start(t)) })
	t.Run("paging", func(t *testing.T) { t.Parallel(); paging(t, start(t), r) })
}

type operation struct {
	Method, Path string
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

// documented: the document has what readers and generators need; every operation has a summary, its noun, its scope,
// examples and its errors.
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
	assert.Equal(t, "3.0.3", older.Object()["openapi"])
	assert.NotContains(t, string(older.Body), `"type":[`, "what only 3.1 can say")
	operationIDs := map[string]bool{}
	for _, o := range s.operations() {
		assert.Regexp(t, `^[a-z]+(-[a-z]+)+$`, o.OperationID, "%s %s", o.Method, o.Path)
		assert.NotContains(t, operationIDs, o.OperationID)
		operationIDs[o.OperationID] = true
		assert.Regexp(t, `^[A-Z].*[^.]$`, o.Summary, o.OperationID)
		require.Len(t, o.Tags, 1, o.OperationID)
		assert.Contains(t, nouns, o.Tags[0], o.OperationID)
		parameters := map[parameter]bool{}
		for _, p := range o.Parameters {
			if p.Ref != "" {
				p = doc.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
			}
			assert.NotContains(t, parameters, p, "%s has a parameter twice", o.OperationID)
			parameters[p] = true
		}
		statuses := []string{"200", "400", "429", "500", "503"}
		if slices.Contains(r.Open, o.OperationID) {
			assert.Empty(t, o.Scope, o.OperationID)
			assert.Empty(t, o.Security, o.OperationID)
		} else {
			assert.NotEmpty(t, o.Scope, "%s is open, but not among Open", o.OperationID)
			assert.Contains(t, o.Security, map[string][]string{"bearer": strings.Fields(o.Scope)}, o.OperationID)
			statuses = append(statuses, "401", "403")
		}
		for _, status := range statuses {
			assert.Contains(t, o.Responses, status, o.OperationID)
		}
		if strings.Contains(o.Path, "{") {
			assert.Contains(t, o.Responses, "404", o.OperationID)
		}
		if o.takesJSON() {
			assert.Contains(t, o.Responses, "413", o.OperationID)
			if !o.Lenient {
				assert.Contains(t, o.Responses, "415", o.OperationID)
			}
			assert.NotEmpty(t, o.RequestBody.Content["application/json"].Example, "%s has no example of a request",
				o.OperationID)
		}
		assert.True(t, strings.Contains(string(o.Responses["200"]), `"example"`) ||
			strings.Contains(string(o.Responses["200"]), "image/"),
			"%s has no example of an answer", o.OperationID)
	}
}

// admission: no operation without a valid credential, its scope and the tenant.
func admission(t *testing.T, s *Service, r Resource) {
	for _, o := range s.operations() {
		if o.Scope == "" {
			continue // see openOperations
		}
		request := func(c *Client) *Answer { return c.Do(o.Method, o.url(), "{}") }
		answer := request(s.Stranger())
		answer.Problem(http.StatusUnauthorized, "unauthenticated")
		assert.Equal(t, "Bearer", answer.Header.Get("WWW-Authenticate"), o.OperationID)
		request(s.Stranger().With("Authorization", "Bearer nonsense")).
			Problem(http.StatusUnauthorized, "unauthenticated")
		request(s.Stranger().With("Authorization", "Basic dXNlcjpwdw==")).
			Problem(http.StatusUnauthorized, "unauthenticated")
		request(s.As("acme", r.Unrelated)).Problem(http.StatusForbidden, "forbidden")
		scopes := o.scopes()
		for i := range scopes { // each of them is needed
			others := slices.Delete(slices.Clone(scopes), i, i+1)
			request(s.As("acme", others...)).Problem(http.StatusForbidden, "forbidden")
		}
		if !slices.Contains(scopes, auth.PlatformAdmin) { // these callers may name every tenant
			request(s.As("acme", scopes...).With("X-Tenant-Id", "globex")).Problem(http.StatusForbidden, "forbidden")
		}
		request(s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "Not A Tenant")).
			Problem(http.StatusBadRequest, "invalid_parameters", "header.X-Tenant-Id")
		request(s.As("acme", scopes...).With("X-Payload-Origin", strings.Repeat("x", 4097))).
			Problem(http.StatusBadRequest, "invalid_parameters", "header.X-Payload-Origin")
	}
	old := s.As("acme", r.Read)
	s.Clock.Advance(2 * time.Hour)
	old.Get(r.list("")).Problem(http.StatusUnauthorized, "unauthenticated")
}

// bodies: what every operation with a JSON body refuses, without repeating values.
func bodies(t *testing.T, s *Service, r Resource) {
	const value = "do-not-echo-me"
	for _, o := range s.operations() {
		c := s.As("acme", auth.PlatformAdmin)
		refused := func(a *Answer, status int, code string, locations ...string) {
			t.Helper()
			a.Problem(status, code, locations...)
			assert.NotContains(t, string(a.Body), value, o.OperationID)
		}
		if !o.takesJSON() {
			continue
		}
		for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "application/jsonp",
			""} {
			client := c.With("Content-Type", contentType)
			if contentType == "" {
				client = c.With("Content-Type", " ")
			}
			if o.Lenient {
				refused(client.Do(o.Method, o.url(), "{}"), http.StatusBadRequest, "invalid_parameters")
			} else {
				refused(client.Do(o.Method, o.url(), "{}"), http.StatusUnsupportedMediaType, "unsupported_media_type")
			}
		}
		for _, body := range []string{"", "{", `{"a":`, `"` + value + `"`, "[]", "null", "nul", `{"a":"` + value +
			`"} trailing`, "\x00", "{\"a\":\"\xff\"}", strings.Repeat("[", 20000)} {
			refused(c.Do(o.Method, o.url(), body), http.StatusBadRequest, "invalid_parameters")
		}
		refused(c.Do(o.Method, o.url(), `{"`+strings.Repeat("x", 1<<20)+`":1}`), http.StatusRequestEntityTooLarge,
			"too_large")
		if o.Lenient {
			continue
		}
		withUnknown, locations := unknownMembers(t, o, value)
		doc := c.Do(o.Method, o.url(), withUnknown).Problem(http.StatusBadRequest, "invalid_parameters")
		for _, location := range locations {
			assert.Contains(t, fmt.Sprint(doc.Errors), location, o.OperationID)
		}
		assert.NotContains(t, fmt.Sprint(doc), value, o.OperationID)
		many := map[string]int{}
		for n := range 500 {
			many[fmt.Sprint("m", n)] = n
		}
		assert.LessOrEqual(t, len(c.Do(o.Method, o.url(), many).
			Problem(http.StatusBadRequest, "invalid_parameters").Errors), 101)
	}

	// All faults together: unknown members, and those that only the domain finds.
	require.NotEmpty(t, r.Faulty)
	faulty := maps.Clone(r.Faulty)
	faulty["no_such_member"] = value
	answer := s.As("acme", auth.PlatformAdmin).Post(r.Collection, faulty)
	answer.Problem(http.StatusBadRequest, "invalid_parameters", append([]string{"body.no_such_member"}, r.Faults...)...)
	assert.NotContains(t, string(answer.Body), value)
}

// uniqueMembers: a second record with the values of another is refused, and the error names all that are taken.
func uniqueMembers(t *testing.T, s *Service, r Resource) {
	require.NotEmpty(t, r.Unique)
	var taken []string
	for _, member := range r.Unique {
		taken = append(taken, "body."+member)
	}
	c := s.As("acme", r.Read, r.Write)
	first := c.Post(r.Collection, r.Body(1)).Object()
	second := c.Post(r.Collection, r.Body(2)).Object()
	refused := func(a *Answer) {
		t.Helper()
		a.Problem(http.StatusConflict, "already_exists", taken...)
		for _, member := range r.Unique {
			assert.NotContains(t, string(a.Body), fmt.Sprint(`"`, first[member], `"`), "no value is repeated")
		}
	}
	refused(c.Post(r.Collection, r.Body(1)))
	refused(c.Post(r.Collection+"?dry_run=true", r.Body(1)))
	change := map[string]any{}
	for _, member := range r.Unique {
		change[member] = first[member]
	}
	path := r.Collection + "/" + second["id"].(string)
	refused(c.Patch(path, change))
	assert.Equal(t, second, c.Get(path).Object())
	c.Delete(r.with(r.Collection+"/"+first["id"].(string)), nil).OK(nil)
	c.Patch(path, change).OK(nil)
}

// unknownMembers returns the operation's example with unknown members, in it and in the objects of its lists, and their
// locations.
func unknownMembers(t *testing.T, o operation, value string) (body map[string]any, locations []string) {
	require.NoError(t, json.Unmarshal(o.RequestBody.Content["application/json"].Example, &body), o.OperationID)
	for name, member := range body {
		items, _ := member.([]any)
		for i, item := range items {
			if object, ok := item.(map[string]any); ok {
				object["no_such_member"] = value
				locations = append(locations, fmt.Sprintf("body.%s[%d].no_such_member", name, i))
			}
		}
	}
	body["no_such_member"] = value
	return body, append(locations, "body.no_such_member")
}

// paths: unknown paths, and unknown methods of known ones.
func paths(t *testing.T, s *Service, r Resource) {
	c := s.As("acme", auth.PlatformAdmin)
	for _, path := range []string{"/", "/v1", r.Collection + "/", r.Collection + "/1/no-such-thing", "/V1/users",
		r.Collection + "//", "/v1/%2e%2e/x"} {
		c.Get(path).Problem(http.StatusNotFound, "not_found")
	}
	answer := c.Do(http.MethodTrace, r.Collection, nil)
	answer.Problem(http.StatusMethodNotAllowed, "method_not_allowed")
	assert.Contains(t, answer.Header.Get("Allow"), http.MethodGet)
	c.Do("BREW", r.Collection, nil).Problem(http.StatusMethodNotAllowed, "method_not_allowed")
	c.Get(r.Collection+"/1").Problem(http.StatusNotFound, "not_found")
	c.Get(r.Collection+"/"+strings.Repeat("9", 65)).Problem(http.StatusBadRequest, "invalid_parameters", "path.id")
	c.Get(r.Collection+"/%E6%9D%8E%2F%00").Problem(http.StatusNotFound, "not_found")
	c.Get(r.Collection+"/%ff").Problem(http.StatusBadRequest, "invalid_parameters", "path")
	for _, query := range []string{"page_token=%ff", "page_sort=%00%ff", "%ff=1", "x=%zz", "x=1;y=2"} {
		c.Get(r.list(query)).Problem(http.StatusBadRequest, "invalid_parameters", "query")
	}
}

// requestIDs: a valid id from the caller is kept, any other is replaced.
func requestIDs(t *testing.T, s *Service, r Resource) {
	c := s.As("acme", r.Read)
	answer := c.With("X-Request-Id", "mine-42").Get(r.list(""))
	assert.Equal(t, "mine-42", answer.Header.Get("X-Request-Id"))
	for _, insane := range []string{"with space", "quote\"", strings.Repeat("x", 129), "new\tline", "<script>"} {
		answer := c.With("X-Request-Id", insane).Get(r.list(""))
		assert.Regexp(t, `^[0-9a-z]{26}$`, answer.Header.Get("X-Request-Id"))
	}
	assert.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
	assert.NotEqual(t, c.Get(r.list("")).Header.Get("X-Request-Id"), c.Get(r.list("")).Header.Get("X-Request-Id"))
}

// tenants are separate: the same body is accepted in each, and one does not see the records of another.
func tenants(t *testing.T, s *Service, r Resource) {
	acme, globex := s.As("acme", r.Read, r.Write), s.As("globex", r.Read, r.Write)
	record := acme.Post(r.Collection, r.Body(1)).Object()
	id := record["id"].(string)
	assert.Equal(t, "acme", record["tenant_id"])
	other := globex.Post(r.Collection, r.Body(1)).Object()
	assert.NotEqual(t, id, other["id"])
	path := r.Collection + "/" + id
	globex.Get(path).Problem(http.StatusNotFound, "not_found")
	globex.Patch(path, r.Change).Problem(http.StatusNotFound, "not_found")
	globex.Delete(r.with(path), nil).Problem(http.StatusNotFound, "not_found")
	assert.EqualValues(t, 1, globex.Get(r.list("")).Object()["total"])
	assert.Equal(t, record, acme.Get(path).Object())
	admin := s.As("root", auth.PlatformAdmin)
	admin.Get(path).Problem(http.StatusNotFound, "not_found")
	assert.Equal(t, record, admin.With("X-Tenant-Id", "acme").Get(path).Object())
}

// events: each change of a record has an event with the changed record. EventsUntil checks that sequences grow.
func events(t *testing.T, s *Service, r Resource) {
	c := s.As("acme", r.Read, r.Write)
	record := c.Post(r.Collection, r.Body(1)).Object()
	path := r.Collection + "/" + record["id"].(string)
	changed := c.Patch(path, r.Change).Object()
	c.Delete(r.with(path), nil).OK(nil)
	var told []bus.Event
	s.EventsUntil(func(e bus.Event) bool {
		if e.Subject == record["id"] {
			told = append(told, e)
		}
		return e.Subject == record["id"] && strings.HasSuffix(e.Type, ".deleted")
	})
	assert.Equal(t, "created", told[0].Type[strings.LastIndexByte(told[0].Type, '.')+1:])
	for i, e := range told {
		var data struct {
			Record struct {
				ID       string `json:"id"`
				TenantID string `json:"tenant_id"`
				Version  int64  `json:"version"`
			} `json:"record"`
		}
		require.NoError(t, json.Unmarshal(e.Data, &data))
		want := changed["version"]
		if i == 0 {
			want = record["version"]
		}
		assert.EqualValues(t, want, data.Record.Version, "%s has the record's version", e.Type)
		assert.Equal(t, []any{record["id"], "acme"}, []any{data.Record.ID, data.Record.TenantID})
	}
}

// conditions: ETag, If-Match, If-None-Match, and versions.
func conditions(t *testing.T, s *Service, r Resource) {
	c := s.As("acme", r.Read, r.Write)
	answer := c.Post(r.Collection, r.Body(1))
	record := answer.Object()
	path := r.Collection + "/" + record["id"].(string)
	tag := answer.Header.Get("ETag")
	assert.Regexp(t, `^"1(-0)?"$`, tag, "the version, and something that stands for counts if there are any")
	assert.EqualValues(t, 1, record["version"])
	assert.Equal(t, record["time_created"], record["time_modified"])
	assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, record["time_created"])
	assert.Equal(t, "application/json; charset=utf-8", answer.Header.Get("Content-Type"))

	for _, named := range []string{tag, "W/" + tag, `"7", ` + tag, "*"} {
		unchanged := c.With("If-None-Match", named).Get(path)
		assert.Equal(t, http.StatusNotModified, unchanged.Status, named)
		assert.Empty(t, unchanged.Body)
		assert.Equal(t, tag, unchanged.Header.Get("ETag"))
	}
	assert.Equal(t, http.StatusOK, c.With("If-None-Match", `"2"`).Get(path).Status)
	assert.Equal(t, http.StatusOK, c.With("If-None-Match", `"1-7"`).Get(path).Status, "it depends on counts, too")
	for _, tag := range []string{`"2"`, `W/"1"`, "1", `""`, "nonsense", `"x"`, `"1-"`, `"1-x"`, `"2-0"`} {
		c.With("If-Match", tag).Patch(path, r.Change).Problem(http.StatusPreconditionFailed, "version_mismatch")
		c.With("If-Match", tag).Delete(r.with(path), nil).Problem(http.StatusPreconditionFailed, "version_mismatch")
	}
	assert.Equal(t, record, c.Get(path).Object(), "a refused change must change nothing")

	s.Clock.Advance(time.Second)
	for _, named := range []string{tag, `"1"`, `"1-7"`} {
		assert.Equal(t, http.StatusOK, c.With("If-Match", named).Patch(path+"?dry_run=true", r.Change).Status,
			"If-Match compares only the version")
	}
	changed := c.With("If-Match", tag).Patch(path, r.Change)
	assert.Equal(t, strings.Replace(tag, "1", "2", 1), changed.OK(nil).Header.Get("ETag"))
	after := changed.Object()
	assert.EqualValues(t, 2, after["version"])
	assert.NotEqual(t, after["time_created"], after["time_modified"])
	assert.Equal(t, after, c.Get(path).Object())
	same := c.With("If-Match", "*").Patch(path, r.Change).Object()
	assert.Equal(t, after, same, "a request without a change makes no new version")
	assert.Equal(t, after, c.Patch(path, after).Object(), "a record may be sent back as it is")

	c.With("If-Match", `"1"`).Delete(r.with(path), nil).Problem(http.StatusPreconditionFailed, "version_mismatch")
	assert.Equal(t, map[string]any{"id": record["id"]}, c.With("If-Match", `"2"`).Delete(r.with(path), nil).Object())
	c.Delete(r.with(path), nil).Problem(http.StatusNotFound, "not_found")
	assert.NotEqual(t, record["id"], c.Post(r.Collection, r.Body(1)).ID(), "ids are not used twice")
}

// dryRun: the answers are those of real requests, and nothing is changed.
func dryRun(t *testing.T, s *Service, r Resource) {
	c := s.As("acme", r.Read, r.Write)
	answer := c.Post(r.Collection+"?dry_run=true", r.Body(1))
	would := answer.Object()
	assert.Equal(t, "true", answer.Header.Get("Dry-Run"))
	assert.EqualValues(t, 0, c.Get(r.list("")).Object()["total"])
	c.Get(r.Collection+"/"+would["id"].(string)).Problem(http.StatusNotFound, "not_found")
	record := c.Post(r.Collection+"?dry_run=false", r.Body(1)).Object()
	path := r.Collection + "/" + record["id"].(string)
	c.Post(r.Collection+"?dry_run=1", r.Body(1)).Problem(http.StatusConflict, "already_exists")
	assert.EqualValues(t, 2, c.Patch(path+"?dry_run=true", r.Change).Object()["version"])
	c.Delete(r.with(path+"?dry_run=true"), nil).OK(nil)
	assert.Equal(t, record, c.Get(path).Object())
	c.Delete(r.with(path), nil).OK(nil)
	events := s.Events(r.Seeds + 2)
	assert.Regexp(t, `\.created$`, events[r.Seeds].Type, "a dry run has no events: only created and deleted")
	assert.Regexp(t, `\.deleted$`, events[r.Seeds+1].Type)
	assert.Equal(t, record["id"], events[r.Seeds+1].Subject)
}

// idempotency: one key, one change, one answer.
func idempotency(t *testing.T, start func(testing.TB) *Service, r Resource) {
	t.Run("replay", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		c := s.As("acme", r.Read, r.Write).With("Idempotency-Key", "key-1")
		first := c.Post(r.Collection, r.Body(1)).OK(nil)
		again := c.Post(r.Collection, r.Body(1)).OK(nil)
		assert.JSONEq(t, string(first.Body), string(again.Body))
		assert.Equal(t, first.Header.Get("ETag"), again.Header.Get("ETag"))
		assert.Empty(t, first.Header.Get("Idempotent-Replayed"))
		assert.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		assert.EqualValues(t, 1, c.Get(r.list("")).Object()["total"])
		c.Post(r.Collection, r.Body(2)).Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")
		c.Post(r.Collection+"?other=query", r.Body(1)).Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")

		globex := s.As("globex", r.Read, r.Write).With("Idempotency-Key", "key-1")
		assert.Empty(t, globex.Post(r.Collection, r.Body(1)).OK(nil).Header.Get("Idempotent-Replayed"),
			"a key belongs to its caller")

		s.Clock.Advance(25 * time.Hour)
		fresh := s.As("acme", r.Read, r.Write).With("Idempotency-Key", "key-1")
		fresh.Post(r.Collection, r.Body(1)).Problem(http.StatusConflict, "already_exists")
	})
	t.Run("refusals", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		c := s.As("acme", r.Read, r.Write)
		for _, key := range []string{"", strings.Repeat("k", 256), "clé", "tab\there"} {
			client := &Client{c.t, c.handler, http.Header{"Authorization": c.header["Authorization"],
				"Idempotency-Key": {key}}}
			client.Post(r.Collection, r.Body(1)).Problem(http.StatusBadRequest, "invalid_parameters",
				"header.Idempotency-Key")
		}
		c.Post(r.Collection, r.Body(1)).OK(nil)
		conflicting := c.With("Idempotency-Key", "key-2")
		conflicting.Post(r.Collection, r.Body(1)).Problem(http.StatusConflict, "already_exists")
		replayed := conflicting.Post(r.Collection, r.Body(1))
		assert.Equal(t, http.StatusConflict, replayed.Status)
		assert.Equal(t, "true", replayed.Header.Get("Idempotent-Replayed"))
	})
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		c := s.As("acme", r.Read, r.Write)
		answers := make([]*Answer, 16)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = c.With("Idempotency-Key", "key-3").Post(r.Collection, r.Body(1)) })
		}
		all.Wait()
		ids := map[string]bool{}
		for _, a := range answers {
			if a.Status == http.StatusConflict {
				a.Problem(http.StatusConflict, "request_in_progress")
				assert.NotEmpty(t, a.Header.Get("Retry-After"))
				continue
			}
			ids[a.ID()] = true
		}
		assert.Len(t, ids, 1)
		assert.EqualValues(t, 1, c.Get(r.list("")).Object()["total"])
	})
}

// keptAnswers: every POST that is sent twice with one key gives its first answer again, except one whose answer holds
// only at the moment, which runs again.
func keptAnswers(t *testing.T, s *Service) {
	for i, o := range s.operations() {
		if o.Method != http.MethodPost || o.RequestBody == nil ||
			o.RequestBody.Content["application/json"].Example == nil {
			continue
		}
		c := s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "acme").
			With("Idempotency-Key", fmt.Sprint("kept-", i))
		body := string(o.RequestBody.Content["application/json"].Example)
		first, again, other := c.Post(o.url(), body), c.Post(o.url(), body), c.Post(o.url(), body+" ")
		assert.Empty(t, first.Header.Get("Idempotent-Replayed"), o.OperationID)
		if o.Momentary {
			assert.Empty(t, again.Header.Get("Idempotent-Replayed"), o.OperationID)
			assert.NotEqual(t, http.StatusUnprocessableEntity, other.Status, o.OperationID)
			continue
		}
		assert.Equal(t, first.Status, again.Status, o.OperationID)
		if first.Status < http.StatusInternalServerError {
			assert.Equal(t, "true", again.Header.Get("Idempotent-Replayed"), o.OperationID)
			other.Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")
		}
	}
}

// paging: by number and by token, sorted, counted.
func paging(t *testing.T, s *Service, r Resource) {
	c := s.As("acme", r.Read, r.Write)
	empty := c.Get(r.list("")).Object()
	assert.Equal(t, map[string]any{"items": []any{}, "total": 0.0, "page_num": 1.0, "page_size": 20.0}, empty)
	var ids []string
	for n := range 25 {
		s.Clock.Advance(time.Millisecond)
		ids = append(ids, c.Post(r.Collection, r.Body(n)).ID())
	}
	idsOf := func(page map[string]any) []string {
		var list []string
		for _, item := range page["items"].([]any) {
			list = append(list, item.(map[string]any)["id"].(string))
		}
		return list
	}
	first := c.Get(r.list("")).Object()
	assert.Equal(t, ids[:20], idsOf(first))
	assert.EqualValues(t, 25, first["total"])
	second := c.Get(r.list("page_num=2")).Object()
	assert.Equal(t, ids[20:], idsOf(second))
	assert.NotContains(t, second, "next_page_token")
	beyond := c.Get(r.list("page_num=9")).Object()
	assert.Empty(t, beyond["items"])
	assert.EqualValues(t, 25, beyond["total"])
	assert.NotContains(t, c.Get(r.list("count=false")).Object(), "total")

	for _, size := range []int{1, 7, 25, 200} {
		for _, sort := range []string{"", "&page_sort=time_created[desc]", "&page_sort=time_created"} {
			var walked []string
			path := r.list(fmt.Sprintf("page_size=%d%s", size, sort))
			for token := ""; ; {
				page := c.Get(path + "&page_token=" + token).Object()
				walked = append(walked, idsOf(page)...)
				token, _ = page["next_page_token"].(string)
				if token == "" {
					break
				}
			}
			want := slices.Clone(ids)
			if strings.Contains(sort, "desc") {
				slices.Reverse(want)
			}
			assert.Equal(t, want, walked, "%d %s", size, sort)
		}
	}
	refusedPaging(s, r, c, first["next_page_token"].(string))
	assert.EqualValues(t, 25, c.Get(r.list("unknown_parameter=1")).Object()["total"], "an unknown parameter is ignored")
}

// refusedPaging: impossible pages, and a token of another list.
func refusedPaging(s *Service, r Resource, c *Client, token string) {
	c.Get(r.list("page_sort=time_created[desc]&page_token="+token)).Problem(http.StatusBadRequest, "invalid_parameters",
		"query.page_token")
	s.As("globex", r.Read).Get(r.list("page_token="+token)).Problem(http.StatusBadRequest, "invalid_parameters",
		"query.page_token")
	for query, location := range map[string]string{
		"page_num=0": "query.page_num", "page_num=-1": "query.page_num", "page_num=x": "query.page_num",
		"page_num=9223372036854775807":  "query.page_num",
		"page_num=99999999999999999999": "query.page_num",
		"page_size=0":                   "query.page_size", "page_size=201": "query.page_size",
		"page_size=1.5":       "query.page_size",
		"page_token=nonsense": "query.page_token", "page_sort=no_such_field": "query.page_sort",
		"page_sort=time_created[up]":          "query.page_sort",
		"page_sort=time_created,time_created": "query.page_sort", "page_sort=,": "query.page_sort",
		"count=maybe": "query.count",
	} {
		c.Get(r.list(query)).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	unsortable := c.Get(r.list("page_sort=no_such_field")).Problem(http.StatusBadRequest, "invalid_parameters")
	assert.Contains(s.t, unsortable.Detail, "time_created")
	c.Get(r.list("page_num=x&page_size=0")).Problem(http.StatusBadRequest, "invalid_parameters", "query.page_num",
		"query.page_size")
}
