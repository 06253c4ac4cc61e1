package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
)

func (a *api) registerTemplates(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-application-templates", Method: http.MethodGet, Path: "/v1/application-templates",
		Scope:   auth.ApplicationsRead,
		Summary: "List application templates", Response: []any{exampleTemplate},
	}, a.listTemplates)
	for _, parameter := range s.OpenAPI().Paths["/v1/application-templates"].Get.Parameters {
		parameter.Required = parameter.Required || parameter.Name == "name" // see Resolve
	}
}

type listTemplatesInput struct {
	Name string `query:"name" maxLength:"256" doc:"A part of the name; empty: all" example:"GitLab"`
}

// Resolve refuses a request without the parameter. The tag required would refuse an empty one, too.
func (*listTemplatesInput) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	if u.Query().Has("name") {
		return nil
	}
	return []error{&huma.ErrorDetail{Location: "query.name", Message: "is missing"}}
}

func (a *api) listTemplates(_ context.Context, in *listTemplatesInput) ([]rest.Raw[Template], error) {
	found := a.templates.Search(in.Name)
	raw := make([]rest.Raw[Template], len(found))
	for i, t := range found {
		var err error
		if raw[i].JSON, err = json.Marshal(t); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

var exampleTemplate = map[string]any{
	"template_id": "gitlab", "name": "GitLab", "version": "1", "protocol_type": "saml", "category": "1",
	"logo":          "data:image/svg+xml,%3Csvg…",
	"params_schema": map[string]any{"type": "object"},
	"defaults":      map[string]any{"login_url": "{base_url}/users/sign_in"},
}
