package httpapi

import (
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
)

func (a *api) registerGrants(s *rest.Server) {
	rest.Named[oidc.Grant](s, "LastingGrant")
	grants := rest.Resource[oidc.Grant, oidc.Grant, oidc.GrantFilter]{
		Server: s, ID: "grant", One: "a grant", Many: "grants", Path: "/v1/grants",
		Read: auth.SignInRead, Write: auth.SignInWrite,
	}
	grants.List(rest.Op{
		Doc: "Access that people have given applications and that goes on after the session (`offline_access`).",
	}, a.OIDC.Grants)
	grants.Get(rest.Op{}, a.OIDC.GetGrant)
	grants.Delete(rest.Op{
		Summary: "End a grant",
		Doc:     "Its tokens are good no more. The consent stays, so that the application can ask again.",
	}, a.OIDC.EndGrant)
}
