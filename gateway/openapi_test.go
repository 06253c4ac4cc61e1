package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

func TestOpenAPIHasTheDeployedServices(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	answers := (&seen{}).ServeHTTP
	all := map[string]Upstream{}
	for _, name := range Services() {
		all[name] = local(answers)
	}
	paths := func(upstreams map[string]Upstream) map[string]any {
		var document struct{ Paths map[string]any }
		require.NoError(t, json.Unmarshal(get(newGateway(t, upstreams, nil), "/openapi.json").Body.Bytes(), &document))
		return document.Paths
	}
	var built struct{ Paths map[string]any }
	text, err := builtDocument()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &built))
	require.Equal(t, built.Paths, paths(all))

	some := paths(map[string]Upstream{Users: remote(t, answers), Console: local(answers)})
	require.Contains(t, some, "/v1/users/{id}")
	for path := range some {
		name, _ := routes.find(path)
		require.Equal(t, Users, name, path)
	}
	require.Empty(t, paths(nil))
}

func TestOpenAPIForms(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	g := newGateway(t, map[string]Upstream{Users: local((&seen{}).ServeHTTP)}, nil)
	const jsonType = "application/json; charset=utf-8"
	tags := map[string]bool{}
	forms := map[string]map[string]any{}
	for target, contentType := range map[string]string{
		"/openapi.json": jsonType, "/openapi.yaml": "application/yaml; charset=utf-8", "/openapi-3.0.json": jsonType,
	} {
		w := get(g, target)
		require.Equal(t, 200, w.Code)
		require.Equal(t, contentType, w.Header().Get("Content-Type"))
		require.Equal(t, "no-cache", w.Header().Get("Cache-Control"))
		tag := w.Header().Get("Etag")
		tags[tag] = true
		require.Equal(t, http.StatusNotModified, get(g, target, "If-None-Match", tag).Code)
		var form map[string]any
		require.NoError(t, yaml.Unmarshal(w.Body.Bytes(), &form)) // which reads JSON, too
		forms[target] = form

		post := httptest.NewRecorder()
		g.ServeHTTP(post, httptest.NewRequest(http.MethodPost, target, nil))
		requireProblem(t, 405, "method_not_allowed", post.Code, post.Header(), post.Body)
		require.Equal(t, "GET, HEAD", post.Header().Get("Allow"))
	}
	require.Len(t, tags, 3)
	require.Equal(t, "3.1.0", forms["/openapi.json"]["openapi"])
	require.Equal(t, forms["/openapi.json"], forms["/openapi.yaml"])
	require.Equal(t, "3.0.3", forms["/openapi-3.0.json"]["openapi"])
	require.Len(t, forms["/openapi-3.0.json"]["paths"], len(forms["/openapi.json"]["paths"].(map[string]any)))
}
