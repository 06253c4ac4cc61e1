package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/template"
)

func (a *api) registerTemplates(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-application-templates", Method: http.MethodGet, Path: "/v1/application-templates",
		Scope:   auth.ApplicationsRead,
		Summary: "List application templates",
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

func (a *api) listTemplates(_ context.Context, in *listTemplatesInput) ([]*template.Template, error) {
	return a.templates.Search(in.Name), nil
}
