package httpapi

import (
	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/identity-sources/internal/method"
)

func (a *api) registerTemplates(s *rest.Server) {
	rest.Named[method.Step](s, "AuthStep")
	rest.Named[method.Template](s, "AuthTemplate")
	templates := rest.Resource[method.Template, method.TemplateProfile, method.TemplateFilter]{
		Server: s, ID: "auth-template", One: "an authentication template",
		Many: "authentication templates", Path: "/v1/auth-templates",
		Read: auth.IdentitySourcesRead, Write: auth.IdentitySourcesWrite,
	}
	templates.Create(rest.Op{Errors: []apperr.Kind{apperr.AlreadyExists}}, a.templates.Create)
	templates.List(rest.Op{}, a.templates.List)
	templates.Get(rest.Op{}, a.templates.Get)
	templates.Update(rest.Op{
		Errors:  []apperr.Kind{apperr.AlreadyExists},
		Doc:     "JSON merge patch (RFC 7396). `steps` is replaced as a whole.",
		Request: map[string]any{"name": "Staff"},
	}, a.templates.Update)
	templates.Delete(rest.Op{
		Errors: []apperr.Kind{apperr.InvalidState}, Doc: "The default template can't be deleted.",
	}, a.templates.Delete)
	templates.Action("default", rest.Op{
		ID: "set-default-auth-template", Summary: "Make an authentication template the default",
		Errors: []apperr.Kind{apperr.AlreadyExists}, Doc: "The previous default is no longer one.",
	}, a.templates.MakeDefault)
}
