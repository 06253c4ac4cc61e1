package httpapi

import (
	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/identity-sources/internal/method"
)

func (a *api) registerMethods(s *rest.Server) {
	rest.Named[method.Method](s, "AuthMethod")
	methods := rest.Resource[method.Method, method.Profile, method.Filter]{
		Server: s, ID: "auth-method", One: "an authentication method",
		Many: "authentication methods", Path: "/v1/auth-methods",
		Read: auth.IdentitySourcesRead, Write: auth.IdentitySourcesWrite,
	}
	methods.Create(rest.Op{Errors: []apperr.Kind{apperr.AlreadyExists}}, a.methods.Create)
	methods.List(rest.Op{}, a.methods.List)
	methods.Get(rest.Op{}, a.methods.Get)
	methods.Update(rest.Op{
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InUse},
		Doc:     "JSON merge patch (RFC 7396). The code can't be changed while templates name the method.",
		Request: map[string]any{"policy": map[string]any{"max_age_seconds": 300}},
	}, a.methods.Update)
	methods.Delete(rest.Op{
		Errors: []apperr.Kind{apperr.InUse}, Doc: "Refused while templates name the method.",
	}, a.methods.Delete)
	methods.Switch(rest.Op{}, a.methods.SetStatus)
}
