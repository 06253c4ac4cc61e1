package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

// PATCH distinguishes absent, null and a value, at every depth.
func TestPatch(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client()
	id := c.Post("/v1/things",
		`{"name":"one","count":7,"size":{"width":1,"height":2,"unit":"mm"},"tags":["a","b"],"props":{"a":{"b":1,"c":[1,null]},"d":"x"}}`).ID()
	for _, step := range []struct{ patch, want string }{
		{`{}`,
			`{"name":"one","count":7,"size":{"width":1,"height":2,"unit":"mm"},"tags":["a","b"],"props":{"a":{"b":1,"c":[1,null]},"d":"x"}}`},
		{`{"count":0,"tags":["c"]}`,
			`{"name":"one","count":0,"size":{"width":1,"height":2,"unit":"mm"},"tags":["c"],"props":{"a":{"b":1,"c":[1,null]},"d":"x"}}`},
		{`{"count":8,"tags":null}`,
			`{"name":"one","count":8,"size":{"width":1,"height":2,"unit":"mm"},"props":{"a":{"b":1,"c":[1,null]},"d":"x"}}`},
		{`{"count":null,"tags":[]}`,
			`{"name":"one","count":0,"size":{"width":1,"height":2,"unit":"mm"},"props":{"a":{"b":1,"c":[1,null]},"d":"x"}}`},
		{`{"size":{"width":3}}`,
			`{"name":"one","count":0,"size":{"width":3,"height":2,"unit":"mm"},"props":{"a":{"b":1,"c":[1,null]},"d":"x"}}`},
		{`{"size":{"unit":null}}`,
			`{"name":"one","count":0,"size":{"width":3,"height":2},"props":{"a":{"b":1,"c":[1,null]},"d":"x"}}`},
		{`{"size":null}`, `{"name":"one","count":0,"props":{"a":{"b":1,"c":[1,null]},"d":"x"}}`},
		{`{"size":{"height":5}}`,
			`{"name":"one","count":0,"size":{"width":0,"height":5},"props":{"a":{"b":1,"c":[1,null]},"d":"x"}}`},
		{`{"props":{"a":{"b":null,"n":{"deep":null,"kept":1}}}}`,
			`{"name":"one","count":0,"size":{"width":0,"height":5},"props":{"a":{"c":[1,null],"n":{"kept":1}},"d":"x"}}`},
		{`{"props":{"a":[{"b":null}],"d":{"e":1}}}`,
			`{"name":"one","count":0,"size":{"width":0,"height":5},"props":{"a":[{"b":null}],"d":{"e":1}}}`},
		{`{"props":null}`, `{"name":"one","count":0,"size":{"width":0,"height":5}}`},
	} {
		record := c.Patch("/v1/things/"+id, step.patch).Object()
		for _, meta := range []string{"id", "tenant_id", "version", "time_created", "time_modified"} {
			delete(record, meta)
		}
		got, err := json.Marshal(record)
		require.NoError(t, err)
		require.JSONEq(t, step.want, string(got), step.patch)
	}
	for patch, location := range map[string]string{
		`{"count":"7"}`: "body.count", `{"size":{"width":"x"}}`: "body.size.width", `{"size":[]}`: "body.size",
		`{"size":{"depth":1}}`:    "body.size.depth",
		`{"size":{"unit":"ell"}}`: "body.size.unit", `{"name":""}`: "body.name", `{"tags":[null]}`: "body.tags[0]",
		`{"no":1}`: "body.no", `[]`: "body", `null`: "body",
	} {
		c.Patch("/v1/things/"+id, patch).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
}

func TestPatchTellsWhatItNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		type input struct{ Body rest.MergePatch[ThingInput] }
		rest.Handle(s, rest.Op{ID: "has", Method: http.MethodPatch, Path: "/v1/has", Scope: auth.UsersWrite,
			Summary: "Has"},
			func(_ context.Context, in *input) ([]bool, error) {
				return []bool{in.Body.Has("name"), in.Body.Has("count"), in.Body.Has("tags")}, nil
			})
	})
	require.JSONEq(t, `[true,true,false]`, string(w.client().Patch("/v1/has", `{"name":null,"count":0}`).OK(nil).Body))
}
