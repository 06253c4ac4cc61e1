package rest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

type rotateInput struct {
	Body struct {
		Rotate bool   `json:"rotate,omitempty"`
		To     string `json:"to,omitempty"`
	}
	Force docstore.Flag `query:"force"`
	Name  string        `query:"name"`
}

type bare struct{}

func registerFresh[I any](fresh rest.Freshness) func(*rest.Server, service.Deps) {
	return func(s *rest.Server, _ service.Deps) {
		rest.Handle(s, rest.Op{
			ID: "rotate-key", Method: http.MethodPost, Path: "/v1/keys", Scope: auth.UsersWrite, RecentSignIn: fresh,
		}, func(context.Context, *I) (rest.Removed, error) { return rest.Removed{}, nil })
	}
}

func TestFreshIsInTheDocument(t *testing.T) {
	t.Parallel()
	for fresh, want := range map[rest.Freshness]any{
		"": nil, rest.FreshAlways: "always", rest.FreshIf("rotate"): "body.rotate",
		rest.FreshIfQuery("force"): "query.force",
	} {
		w := newWorld(t, registerFresh[rotateInput](fresh))
		doc := w.Stranger().Get("/openapi.json").Object()
		operation := doc["paths"].(map[string]any)["/v1/keys"].(map[string]any)["post"].(map[string]any)
		require.Equal(t, want, operation["x-fresh"], fresh)
	}
}

// A condition that no request can meet would never be noticed.
func TestFreshNamesABoolean(t *testing.T) {
	t.Parallel()
	for _, fresh := range []rest.Freshness{
		"sometimes", "rotate", rest.FreshIf("to"), rest.FreshIf("other"), rest.FreshIf("force"),
		rest.FreshIfQuery("name"), rest.FreshIfQuery("rotate"),
	} {
		require.Panics(t, func() { newWorld(t, registerFresh[rotateInput](fresh)) }, fresh)
	}
	require.Panics(t, func() { newWorld(t, registerFresh[bare](rest.FreshIf("rotate"))) })
}
