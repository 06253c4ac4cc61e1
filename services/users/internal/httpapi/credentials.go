package httpapi

import (
	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/credential"
)

func (a *api) registerCredentials(s *rest.Server) {
	credentials := rest.Resource[credential.Credential, credential.Credential, credential.Filter]{
		Server: s, ID: "credential", One: "a stored credential", Many: "stored credentials",
		Path: "/v1/user-stored-credentials", Read: auth.UsersRead, Write: auth.UsersWrite,
	}
	taken := []apperr.Kind{apperr.AlreadyExists}
	credentials.Create(rest.Op{
		Summary: "Bind a social identity to a user", Errors: taken,
		Doc: "Unique: provider_code, idp_config_id and id1 together. The caller needs the scopes of this API that " +
			"rules give the user, because who has the identity can sign in as the user.",
	}, a.credentials.Create)
	credentials.List(rest.Op{Doc: "All filters are exact and must all hold."}, a.credentials.List)
	credentials.Get(rest.Op{}, a.credentials.Get)
	credentials.Update(rest.Op{
		Doc: "JSON merge patch (RFC 7396). The user can't be changed.", Errors: taken,
		Request: map[string]any{"status": "0"},
	}, a.credentials.Update)
	credentials.Delete(rest.Op{}, a.credentials.Delete)
}
