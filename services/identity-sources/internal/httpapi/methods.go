package httpapi

import (
	"context"
	"net/http"

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
	rest.Named[method.PolicySchema](s, "AuthPolicySchema")
	rest.Handle(s, rest.Op{
		ID: "list-auth-method-schemas", Method: http.MethodGet, Path: "/v1/auth-methods/schemas",
		Scope: auth.IdentitySourcesRead, Summary: "List the schemas of the policies of authentication methods",
		Doc:      "One for each type of method. The policy of a method must meet that of its type.",
		Response: []any{examplePolicySchema},
	}, func(context.Context, *struct{}) ([]method.PolicySchema, error) { return method.PolicySchemas(), nil })
	methods.Create(rest.Op{Errors: []apperr.Kind{apperr.AlreadyExists, apperr.Unavailable}}, a.methods.Create)
	methods.List(rest.Op{}, a.methods.List)
	methods.Get(rest.Op{}, a.methods.Get)
	methods.Update(rest.Op{
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InUse, apperr.Unavailable},
		Doc:     "JSON merge patch (RFC 7396). The code can't be changed while templates name the method.",
		Request: map[string]any{"policy": map[string]any{"digits": 8}},
	}, a.methods.Update)
	methods.Delete(rest.Op{
		Errors: []apperr.Kind{apperr.InUse}, Doc: "Refused while templates name the method.",
	}, a.methods.Delete)
	methods.Switch(rest.Op{}, a.methods.SetStatus)
}

var examplePolicySchema = map[string]any{
	"type": "otp", "policy_schema": map[string]any{"type": "object", "properties": map[string]any{}},
}
