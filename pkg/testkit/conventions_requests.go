package testkit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
)

// bodies: which bodies every operation that takes JSON refuses. No error repeats a value.
func bodies(t *testing.T, s *Service, r Resource) {
	const value = "do-not-echo-me"
	for _, o := range s.operations() {
		c := s.As("acme", auth.PlatformAdmin)
		refused := func(a *Answer, status int, code string, locations ...string) {
			t.Helper()
			a.refusal(o, status, code, locations...)
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
		large := `{"` + strings.Repeat("x", cmp.Or(o.MaxBody, 1<<20)) + `":1}`
		refused(c.Do(o.Method, o.url(), large), http.StatusRequestEntityTooLarge, "too_large")
		if o.Lenient || o.scim() {
			continue
		}
		unknown(t, c, o, value)
		many := map[string]int{}
		for n := range 500 {
			many[fmt.Sprint("m", n)] = n
		}
		assert.LessOrEqual(t, len(c.Do(o.Method, o.url(), many).
			Problem(http.StatusBadRequest, "invalid_parameters").Errors), 101)
	}

	if r.Body == nil {
		return
	}
	// All faults together: unknown members, and those that only the domain finds.
	require.NotEmpty(t, r.Faulty)
	faulty := maps.Clone(r.Faulty)
	faulty["no_such_member"] = value
	answer := s.As("acme", auth.PlatformAdmin).Post(r.Collection, faulty)
	answer.Problem(http.StatusBadRequest, "invalid_parameters", append([]string{"body.no_such_member"}, r.Faults...)...)
	assert.NotContains(t, string(answer.Body), value)
}

// unknown: unknown members are refused wherever they are, and nothing else of the example, however its integers are
// written and whichever type a patch has.
func unknown(t *testing.T, c *Client, o operation, value string) {
	withUnknown, locations := unknownMembers(t, o, value)
	doc := c.Do(o.Method, o.url(), withUnknown).Problem(http.StatusBadRequest, "invalid_parameters")
	for _, location := range locations {
		assert.Contains(t, fmt.Sprint(doc.Errors), location, o.OperationID)
	}
	assert.NotContains(t, fmt.Sprint(doc), value, o.OperationID)
	written := c.Do(o.Method, o.url(), withPoints(withUnknown))
	assert.Equal(t, doc.Errors, written.Problem(http.StatusBadRequest, "invalid_parameters").Errors,
		"%s: 1.0 is an integer, too", o.OperationID)
	if o.Method == http.MethodPatch {
		assert.Equal(t, doc.Errors, c.With("Content-Type", "application/merge-patch+json").
			Do(o.Method, o.url(), withUnknown).Problem(http.StatusBadRequest, "invalid_parameters").Errors)
	}
}

// withPoints returns a JSON value whose integers are written as 1.0.
func withPoints(value any) any {
	switch v := value.(type) {
	case float64:
		if v == math.Trunc(v) {
			return json.RawMessage(strconv.FormatFloat(v, 'f', 1, 64))
		}
	case map[string]any:
		changed := map[string]any{}
		for name, member := range v {
			changed[name] = withPoints(member)
		}
		return changed
	case []any:
		changed := make([]any, len(v))
		for i, item := range v {
			changed[i] = withPoints(item)
		}
		return changed
	}
	return value
}

// unknownMembers returns the operation's example with an unknown member at the top and in each object of its lists, and
// the locations of these members.
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

// paths: unknown paths, and unknown methods of known paths.
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
