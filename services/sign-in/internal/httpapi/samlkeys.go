package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

const samlKeysPath = "/v1/sign-in/saml-keys"

func (a *api) registerSAMLKeys(s *rest.Server) {
	rest.Named[saml.Key](s, "SAMLKey")
	keys := rest.Resource[saml.Key, saml.Key, docstore.Paging]{
		Server: s, ID: "saml-key", One: "a SAML key", Many: "SAML keys", Path: samlKeysPath,
		Read: auth.SignInRead, Write: auth.SignInWrite,
	}
	refused := []apperr.Kind{apperr.InvalidState}
	keys.List(rest.Op{
		Doc: "The active key signs what the tenant's applications are told by SAML, except those with a key of their " +
			"own. The metadata has the certificates of all keys.",
	}, a.SAML.Keys)
	keys.Get(rest.Op{}, a.SAML.GetKey)
	rest.Handle(s, rest.Op{
		ID: "create-saml-key", Method: http.MethodPost, Path: samlKeysPath, Scope: auth.SignInWrite,
		Summary: "Create the next SAML key", Errors: refused,
		Doc: "The metadata has its certificate from then on, after a minute at all replicas. It signs nothing before " +
			"it is activated. A tenant has one next key at most, and none before it has an active one.",
	}, func(ctx context.Context, _ *struct{}) (rest.Record[saml.Key], error) {
		return rest.RecordOf[saml.Key](a.SAML.CreateKey(ctx))
	})
	keys.Action("activate", rest.Op{
		Errors: refused,
		Doc: "The next or the previous key becomes the active one, within a minute at all replicas. Applications " +
			"that do not know its certificate refuse sign-ins from then on. The key that was active becomes the " +
			"previous one; an earlier previous one is deleted, a minute after the last activation at the " +
			"earliest. To activate the previous key is the way back.",
	}, a.SAML.ActivateKey)
	keys.Delete(rest.Op{
		Errors: refused,
		Doc: "The next or the previous key; the metadata no longer has its certificate. The previous key " +
			"stays for a minute after another one was activated: replicas may still sign with it.",
	}, a.SAML.DeleteKey)
}
