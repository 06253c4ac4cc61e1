package testkit

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Records make what Matching needs.
type Records struct {
	// Make makes the n-th record of the GET operation with this path, such as /v1/users/{id}, and returns the record's
	// path, with the query that reading it requires. One with an operation's id makes those of this operation.
	Make map[string]func(c *Client, n int) string

	// Bodies replace the examples of operations, by id, whose examples name records that do not exist.
	Bodies map[string]any
}

// Matching checks If-Match for every operation that changes a record for which a GET answers with an ETag, or acts on
// it. It finds them in the service's document. c may do everything.
func Matching(t *testing.T, s *Service, c *Client, records Records) {
	t.Helper()
	n := 0
	for _, o := range s.operations() {
		of := o.record(s.tagged())
		if of == "" {
			continue
		}
		make, ok := records.Make[o.OperationID]
		if !ok {
			make, ok = records.Make[of]
		}
		if !assert.True(t, ok, "%s: nothing makes a record of GET %s", o.OperationID, of) {
			continue
		}
		t.Run(o.OperationID, func(t *testing.T) {
			n++
			c := &Client{t, c.handler, c.header}
			path := make(c, n)
			plain, query, _ := strings.Cut(path, "?")
			url := plain + operation{Path: strings.TrimPrefix(o.Path, of)}.url()
			if query != "" {
				url += "?" + query
			}
			body, contentType := o.exampleBody()
			ask := func(tag string) *Answer {
				c := c.With("If-Match", tag)
				if own, ok := records.Bodies[o.OperationID]; ok {
					return c.Do(o.Method, url, own)
				}
				if contentType != "" {
					c = c.With("Content-Type", contentType)
				}
				return c.Do(o.Method, url, body)
			}
			before := c.Get(path)
			require.Equal(t, http.StatusOK, before.Status, "%s", before.Body)
			tag := before.Header.Get("ETag")
			require.NotEmpty(t, tag, path)
			for _, other := range []string{`"999"`, `"999-0"`, `W/` + tag} {
				ask(other).Problem(http.StatusPreconditionFailed, "version_mismatch")
			}
			after := c.Get(path)
			assert.JSONEq(t, string(before.Body), string(after.Body), "a refused request changes nothing")
			assert.NotEqual(t, http.StatusPreconditionFailed, ask(tag).Status, "its tag is the current one")
		})
	}
}

// tagged are the paths of records for which a GET answers with an ETag.
func (s *Service) tagged() []string {
	paths := map[string]bool{}
	for _, o := range s.operations() {
		if o.Method == http.MethodGet && strings.HasSuffix(o.Path, "}") && strings.Contains(string(o.Responses["200"]),
			"#/components/headers/ETag") {
			paths[o.Path] = true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// record returns the path of the record that a writing operation changes or acts on, one of paths; "" if there is none.
// A collection below a record is not the record: what is made there has a version of its own.
func (o operation) record(paths []string) (of string) {
	if o.asks() {
		return ""
	}
	for _, path := range paths {
		rest, ok := strings.CutPrefix(o.Path, path)
		if ok && (rest == "" || rest[0] == '/') && !o.Collection && len(path) > len(of) {
			of = path
		}
	}
	return of
}
