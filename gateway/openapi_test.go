package gateway

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the golden files")

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return b
}

// serving answers /openapi.json with a document.
func serving(document []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == openAPIPath {
			_, _ = w.Write(document)
		}
	}
}

func away(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }

func TestOpenAPIMergesAllServices(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{
		Users: local(serving(testdata(t, "users.json"))), Events: remote(t, serving(testdata(t, "events.json"))),
		Organization: local(away),
	}, nil)
	const jsonType = "application/json; charset=utf-8"
	for target, contentType := range map[string]string{
		"/openapi.json": jsonType, "/openapi.yaml": "application/yaml; charset=utf-8", "/openapi-3.0.json": jsonType,
	} {
		w := get(g, target)
		require.Equal(t, 200, w.Code)
		require.Equal(t, contentType, w.Header().Get("Content-Type"))
		etag := w.Header().Get("Etag")
		require.Equal(t, http.StatusNotModified, get(g, target, "If-None-Match", etag).Code)
		golden := filepath.Join("testdata", strings.Replace(target, "/openapi", "merged", 1))
		got := w.Body.Bytes()
		if filepath.Ext(target) == ".json" {
			var pretty bytes.Buffer
			require.NoError(t, json.Indent(&pretty, got, "", "  "))
			got = pretty.Bytes()
		}
		if *update {
			require.NoError(t, os.WriteFile(golden, got, 0o600))
		}
		require.Equal(t, string(testdata(t, filepath.Base(golden))), string(got))
	}
	post := httptest.NewRecorder()
	g.ServeHTTP(post, httptest.NewRequest(http.MethodPost, "/openapi.json", nil))
	requireProblem(t, 405, "method_not_allowed", post.Code, post.Header(), post.Body)
	require.Equal(t, "GET, HEAD", post.Header().Get("Allow"))
}

// These checks repeat what the golden files show, so that a wrong update of those does not go unnoticed.
func TestOpenAPIReferencesHold(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{
		Users: local(serving(testdata(t, "users.json"))), Events: local(serving(testdata(t, "events.json"))),
	}, nil)
	body := get(g, "/openapi.json").Body.Bytes()
	var doc map[string]any
	require.NoError(t, json.Unmarshal(body, &doc))
	require.Equal(t, "3.1.0", doc["openapi"])
	require.Equal(t, "idplatform", object(doc["info"])["title"])
	require.NotContains(t, doc, "x-missing-services")

	schemas := object(object(doc["components"])["schemas"])
	require.ElementsMatch(t, []string{"Problem", "User", "Meta", "Wrapper", "EventMeta", "EventWrapper", "Level"},
		keys(schemas))
	var refs []string
	collectReferences(doc, &refs)
	require.NotEmpty(t, refs)
	for _, ref := range refs {
		kind, rest, _ := strings.Cut(strings.TrimPrefix(ref, componentPrefix), "/")
		name, _, _ := strings.Cut(rest, "/")
		require.Contains(t, object(object(doc["components"])[kind]), name)
	}

	paths := object(doc["paths"])
	require.ElementsMatch(t, []string{"/v1/users/{id}", "/v1/event-types"}, keys(paths),
		"only the paths that the gateway routes to each service")
	user := object(paths["/v1/users/{id}"])
	require.Equal(t, "get", object(user["get"])["operationId"])
	require.Equal(t, "delete-user", object(user["delete"])["operationId"])
	security := func(op any) []string { return keys(object(array(object(op)["security"])[0])) }
	require.Equal(t, []string{"bearer"}, security(user["get"]), "the service's own default")
	require.ElementsMatch(t, []string{"bearer", "other"}, security(object(paths["/v1/event-types"])["get"]))

	var fromYAML any
	require.NoError(t, yaml.Unmarshal(get(g, "/openapi.yaml").Body.Bytes(), &fromYAML))
	again, err := json.Marshal(fromYAML)
	require.NoError(t, err)
	require.JSONEq(t, string(body), string(again))
	require.Contains(t, string(body), "9007199254740991")
}

func keys(m map[string]any) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	return list
}

const componentPrefix = "#/components/"

func collectReferences(v any, refs *[]string) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			collectReferences(e, refs)
		}
	case []any:
		for _, e := range v {
			collectReferences(e, refs)
		}
	case string:
		if strings.HasPrefix(v, componentPrefix) {
			*refs = append(*refs, v)
		}
	}
}

// If two services use one name for different things, the document leaves one of them out and says which.
// TestDocumentsDoNotConflict makes sure that the platform's own services do not conflict.
func TestOpenAPIClashes(t *testing.T) {
	t.Parallel()
	users := testdata(t, "users.json")
	for what, document := range map[string]string{
		"components/schemas/Problem": `{"openapi":"3.1.0","components":{"schemas":{"Problem":{"type":"string"}}}}`,
		"the tag users":              `{"openapi":"3.1.0","tags":[{"name":"users","description":"Others"}]}`,
		"the operationId get":        `{"openapi":"3.1.0","paths":{"/v1/event-types":{"get":{"operationId":"get"}}}}`,
	} {
		upstreams := map[string]Upstream{Events: local(serving([]byte(document))), Users: local(serving(users))}
		g := newGateway(t, upstreams, nil)
		var doc map[string]any
		require.NoError(t, json.Unmarshal(get(g, "/openapi.json").Body.Bytes(), &doc))
		require.Equal(t, []any{"users"}, doc["x-missing-services"])
		require.Contains(t, g.logs.String(), what)
	}
}

func TestOpenAPINamesServicesThatAreAway(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{
		Users:        local(serving(testdata(t, "users.json"))),
		Events:       local(serving([]byte(`{"openapi": "3.0.3"}`))),
		Automation:   local(serving([]byte(`<html>`))),
		Organization: remote(t, away),
		IdentitySources: local(serving([]byte(`{"openapi":"3.1.0","paths":[1],` +
			`"components":{"schemas":7,"x":{"y":1e999}},"tags":{},"webhooks":null,"security":3}`))),
	}, nil)
	w := get(g, "/openapi.json")
	require.Equal(t, 200, w.Code)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
	require.Equal(t, []any{"automation", "events", "organization"}, doc["x-missing-services"],
		"an unusual document does not affect others")
	require.Contains(t, doc["paths"], "/v1/users/{id}")
}

func TestOpenAPIIsRebuiltInTheBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var down atomic.Bool
		down.Store(true)
		document := testdata(t, "users.json")
		g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if down.Load() {
				away(w, r)
				return
			}
			serving(document)(w, r)
		})}, nil)
		missing := func() bool { return strings.Contains(get(g, "/openapi.json").Body.String(), "x-missing-services") }
		require.True(t, missing())
		down.Store(false)
		for range 10 {
			require.True(t, missing(), "it is rebuilt at most every 30 s")
		}
		require.EqualValues(t, 1, asked.Load())
		time.Sleep(openAPIAge)
		require.True(t, missing(), "the present document is returned without waiting")
		synctest.Wait()
		require.EqualValues(t, 2, asked.Load())
		require.False(t, missing())
	})
}

func TestOpenAPIAsksOnlyForWhatChanged(t *testing.T) {
	t.Parallel()
	document := testdata(t, "users.json")
	var conditions []string
	o := newOpenAPI(map[string]Upstream{Users: remote(t, func(w http.ResponseWriter, r *http.Request) {
		conditions = append(conditions, r.Header.Get("If-None-Match"))
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"1"`)
		_, _ = w.Write(document)
	})}, http.DefaultClient, nil)
	defer o.close()
	first, err := o.build(nil)
	require.NoError(t, err)
	second, err := o.build(first)
	require.NoError(t, err)
	require.NotSame(t, first, second)
	require.Equal(t, first.json, second.json)
	require.Equal(t, first.etag, second.etag)
	require.Equal(t, []string{"", `"1"`}, conditions)
	third, err := o.build(first)
	require.NoError(t, err)
	require.Same(t, second, third, "another request has rebuilt it")
}

// FuzzMergeOpenAPI checks that documents of any content can be merged, and that the result is a valid document. Run
// it with -fuzzminimizetime=10x: maps are walked in random order, and the fuzzer would try for a minute to minimize
// what that changes in coverage.
func FuzzMergeOpenAPI(f *testing.F) {
	users, events := testdata(f, "users.json"), testdata(f, "events.json")
	f.Add(users, events)
	f.Add(users, []byte(`{"openapi":"3.1.0","components":`+
		`{"schemas":{"A":{"$ref":"#/components/schemas/A"},"B":{"$ref":"#/components/"}}}}`))
	f.Add([]byte(`{"openapi":"3.1.0","paths":{"/v1/users":{"get":[],"post":{"security":[[]],"operationId":1}}}}`),
		[]byte(`{"openapi":"3.1"}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		parts := map[string]map[string]any{}
		for service, body := range map[string][]byte{Users: a, Events: b} {
			if parsed, err := parseOpenAPI(body); err == nil {
				parts[service] = parsed
			}
		}
		merged, _ := mergeOpenAPI(parts, nil)
		document, err := merged.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseOpenAPI(document.json); err != nil {
			t.Fatal(err)
		}
	})
}
