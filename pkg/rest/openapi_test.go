package rest_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
)

// document is the part of the OpenAPI document that these tests check.
type document struct {
	OpenAPI string
	Info    struct{ Title string }
	Paths   map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Tags        []string
		Scope       string `json:"x-scope"`
		Security    []map[string][]string
		Parameters  []struct {
			Ref  string `json:"$ref"`
			Name string
			In   string
		}
		RequestBody *struct {
			Required bool
			Content  map[string]struct{ Schema map[string]any }
		}
		Responses map[string]struct {
			Description string
			Content     map[string]struct{ Schema map[string]any }
		}
	}
	Components struct {
		Schemas    map[string]map[string]any
		Parameters map[string]struct{ Name, In string }
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t, registerPoke, registerStream(nil))
	answer := w.Stranger().Get("/openapi.json").OK(nil)
	require.Equal(t, "application/openapi+json", answer.Header.Get("Content-Type"))
	var doc document
	require.NoError(t, json.Unmarshal(answer.Body, &doc))
	require.True(t, strings.HasPrefix(doc.OpenAPI, "3.1."))
	require.Equal(t, "Things", doc.Info.Title)

	list := doc.Paths["/v1/things"]["get"]
	require.Equal(t, "list-things", list.OperationID)
	require.Equal(t, string(auth.UsersRead), list.Scope)
	require.Equal(t, []map[string][]string{{"bearer": {string(auth.UsersRead)}}}, list.Security)
	require.Equal(t, "#/components/schemas/ThingList", list.Responses["200"].Content["application/json"].Schema["$ref"])
	parameters := func(path, method string) (names []string) {
		for _, p := range doc.Paths[path][method].Parameters {
			if shared, ok := doc.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]; ok {
				p.Name, p.In = shared.Name, shared.In
			}
			names = append(names, p.In+"."+p.Name)
		}
		slices.Sort(names)
		return names
	}
	require.Equal(t, []string{
		"header.X-Payload-Origin", "header.X-Tenant-Id", "query.count", "query.page_num", "query.page_size",
		"query.page_sort", "query.page_token",
	}, parameters("/v1/things", "get"))
	require.Equal(t, []string{"header.Idempotency-Key", "header.X-Payload-Origin", "header.X-Tenant-Id",
		"query.dry_run"}, parameters("/v1/things", "post"))
	require.Equal(t, []string{"header.If-None-Match", "header.X-Payload-Origin", "header.X-Tenant-Id", "path.id"},
		parameters("/v1/things/{id}", "get"))
	require.Equal(t, []string{"header.If-Match", "header.X-Payload-Origin", "header.X-Tenant-Id", "path.id",
		"query.dry_run"}, parameters("/v1/things/{id}", "patch"))
	require.NotContains(t, doc.Paths["/v1/things/{id}"], "head")

	codes := func(path, method string) (codes []string) {
		for code, response := range doc.Paths[path][method].Responses {
			codes = append(codes, code)
			if code >= "400" {
				require.Equal(t, map[string]any{"$ref": "#/components/schemas/Problem"},
					response.Content["application/problem+json"].Schema)
				require.NotEmpty(t, response.Description)
			}
		}
		slices.Sort(codes)
		return codes
	}
	require.Equal(t, []string{"200", "400", "401", "403", "429", "500", "503"}, codes("/v1/things", "get"))
	require.Equal(t, []string{"200", "400", "401", "403", "409", "413", "415", "422", "429", "500", "502", "503"},
		codes("/v1/things", "post"))
	require.Equal(t, []string{"200", "304", "400", "401", "403", "404", "429", "500", "503"},
		codes("/v1/things/{id}", "get"))
	require.Equal(t, []string{"200", "400", "401", "403", "404", "412", "413", "415", "429", "500", "502", "503"},
		codes("/v1/things/{id}", "patch"))
	require.Equal(t, "already_exists, request_in_progress",
		doc.Paths["/v1/things"]["post"].Responses["409"].Description)

	require.True(t, doc.Paths["/v1/things"]["post"].RequestBody.Required)
	require.False(t, doc.Paths["/v1/poke"]["post"].RequestBody.Required)
	require.Nil(t, doc.Paths["/v1/nudge"]["post"].RequestBody)
	require.Contains(t, doc.Paths["/v1/stream"]["post"].RequestBody.Content, "application/x-ndjson")
	require.Contains(t, doc.Paths["/v1/stream"]["post"].Responses["200"].Content, "application/x-ndjson")

	require.Equal(t, []any{"name"}, doc.Components.Schemas["ThingInput"]["required"])
	patch := doc.Components.Schemas["ThingPatch"]
	require.NotContains(t, patch, "required")
	size := patch["properties"].(map[string]any)["size"].(map[string]any)
	require.Equal(t, []any{"object", "null"}, size["type"])
	require.NotContains(t, size, "required", "a nested object is merged, too")
	require.Equal(t, []any{"width", "height"}, doc.Components.Schemas["Size"]["required"],
		"the schema of the whole object stays as it is")
	for name, schema := range doc.Components.Schemas {
		properties, _ := schema["properties"].(map[string]any)
		require.NotContains(t, properties, "$schema", name)
	}
	for _, reference := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllSubmatch(answer.Body, -1) {
		require.Contains(t, doc.Components.Schemas, string(reference[1]), "every reference has a target")
	}

	yaml := w.Stranger().Get("/openapi.yaml")
	require.Equal(t, http.StatusOK, yaml.Status)
	require.Equal(t, "application/openapi+yaml", yaml.Header.Get("Content-Type"))
	require.Contains(t, string(yaml.Body), "operationId: list-things")
}
