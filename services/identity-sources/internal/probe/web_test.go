package probe_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// issuer serves the documents of an OpenID provider, changed by change.
func issuer(t *testing.T, id identity, change func(document, keys object)) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	key, err := json.Marshal(jose.JSONWebKey{Key: public, KeyID: "1", Algorithm: "EdDSA", Use: "sig"})
	require.NoError(t, err)
	mux := http.NewServeMux()
	address := web(t, id, mux)
	document := object{
		"issuer": address, "authorization_endpoint": address + "/authorize", "token_endpoint": address + "/token",
		"jwks_uri": address + "/keys",
	}
	keys := object{"keys": []any{json.RawMessage(key)}}
	if change != nil {
		change(document, keys)
	}
	serve := func(content object) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if status, ok := content["status"].(int); ok {
				w.Header().Set("Location", "https://elsewhere.test")
				w.WriteHeader(status)
			}
			_ = json.NewEncoder(w).Encode(content)
		}
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", serve(document))
	mux.HandleFunc("GET /keys", serve(keys))
	return address
}

func TestOIDC(t *testing.T) {
	t.Parallel()
	id := good(t)
	requireSuccess(t, run(t, id, "oidc", object{"Issuer": issuer(t, id, nil)}), "discovery", "keys")
	requireSuccess(t, run(t, id, "gitlab", object{"Issuer": issuer(t, id, nil)}), "discovery", "keys")
	newer := issuer(t, id, func(_, k object) {
		k["keys"] = append(k["keys"].([]any), object{"kty": "AKP", "pub": "x"})
	})
	requireSuccess(t, run(t, id, "oidc", object{"Issuer": newer}), "discovery", "keys")
	for name, row := range map[string]struct {
		change        func(document, keys object)
		step, message string
	}{
		"another issuer": {func(d, _ object) { d["issuer"] = "https://other.test" }, "discovery", "another issuer"},
		"no endpoints":   {func(d, _ object) { delete(d, "jwks_uri") }, "discovery", "lacks"},
		"not found":      {func(d, _ object) { d["status"] = 404 }, "discovery", "status 404"},
		"redirect":       {func(d, _ object) { d["status"] = 302 }, "discovery", "redirects"},
		"endless":        {func(d, _ object) { d["x"] = strings.Repeat("x", 2<<20) }, "discovery", "too large"},
		"unknown keys":   {func(_, k object) { k["keys"] = []any{object{"kty": "AKP"}} }, "keys", "no key"},
		"a private key": {func(_, k object) { k["keys"] = []any{object{"kty": "AKP", "priv": "x"}} }, "keys",
			"not public"},
		"no keys":       {func(_, k object) { k["keys"] = []any{} }, "keys", "no key"},
		"broken keys":   {func(_, k object) { k["keys"] = "none" }, "keys", "can't be read"},
		"keys are away": {func(_, k object) { k["status"] = 503 }, "keys", "status 503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireFailure(t, run(t, id, "oidc", object{"Issuer": issuer(t, id, row.change)}), row.step, row.message)
		})
	}
	closed := web(t, id, http.NotFoundHandler())
	requireFailure(t, run(t, id, "oidc", object{"Issuer": strings.Replace(closed, "https", "http", 1)}), "discovery",
		"status 400")
	requireFailure(t, run(t, id, "oidc", object{"Issuer": "https://127.0.0.1:1"}), "discovery", "nothing listens")
	requireFailure(t, run(t, id, "oidc", object{"Issuer": "https://no-such-host.invalid"}), "discovery", "resolve")
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	trusted := good(t)
	for message, id := range map[string]identity{
		"has expired":       newIdentity(t, "127.0.0.1", -time.Hour),
		"another host name": newIdentity(t, "login.acme.test", time.Hour),
	} {
		requireFailure(t, run(t, id, "oidc", object{"Issuer": issuer(t, id, nil)}), "discovery", message)
	}
	requireFailure(t, run(t, trusted, "oidc", object{"Issuer": issuer(t, good(t), nil)}), "discovery",
		"authority that is not known")
}

func TestCAS(t *testing.T) {
	t.Parallel()
	id := good(t)
	answer := func(text string) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /cas/p3/serviceValidate",
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
		return mux
	}
	const failure = `<cas:serviceResponse xmlns:cas="http://www.yale.edu/tp/cas"><cas:authenticationFailure code="INVALID_TICKET">no</cas:authenticationFailure></cas:serviceResponse>`
	requireSuccess(t, run(t, id, "cas", object{"ServerUrl": web(t, id, answer(failure)) + "/cas/"}),
		"ticket validation")
	requireFailure(t, run(t, id, "cas", object{"ServerUrl": web(t, id, answer("<html>")) + "/cas"}),
		"ticket validation", "does not answer as CAS")
	requireFailure(t, run(t, id, "cas", object{"ServerUrl": web(t, id, answer(failure)) + "/cas", "Version": "2.0"}),
		"ticket validation", "status 404")
}

// metadata is that of an identity provider with a certificate.
func metadata(entity string, id identity) string {
	return `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="` + entity + `">` +
		`<IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><KeyDescriptor use="signing">` +
		`<KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>` +
		base64.StdEncoding.EncodeToString(id.der) +
		`</X509Certificate></X509Data></KeyInfo></KeyDescriptor><SingleSignOnService ` +
		`Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://login.acme.test/sso"/></IDPSSODescriptor></EntityDescriptor>`
}

func TestSAML(t *testing.T) {
	t.Parallel()
	id := good(t)
	const entity = "https://login.acme.test"
	valid := metadata(entity, id)
	requireSuccess(t, run(t, id, "saml", object{"Metadata": valid}), "identity provider", "signing certificates")
	several := `<EntitiesDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata">` + metadata("urn:other", id) + valid +
		`</EntitiesDescriptor>`
	requireSuccess(t, run(t, id, "saml", object{"Metadata": several, "EntityId": entity}), "identity provider",
		"signing certificates")
	fetched := web(t, id, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, valid) }))
	requireSuccess(t, run(t, id, "saml", object{"MetadataUrl": fetched}), "metadata", "identity provider",
		"signing certificates")
	missing := web(t, id, http.NotFoundHandler())
	requireFailure(t, run(t, id, "saml", object{"MetadataUrl": missing}), "metadata", "status 404")
	for name, row := range map[string]struct{ text, entity, step, message string }{
		"no XML":  {"{}", "", "identity provider", "not SAML 2.0 metadata"},
		"another": {valid, "urn:other", "identity provider", "EntityId"},
		"no IdP": {strings.ReplaceAll(valid, "IDPSSO", "SPSSO"), "", "identity provider",
			"no identity provider"},
		"no service": {strings.ReplaceAll(valid, "HTTP-Redirect", "SOAP"), "", "identity provider",
			"SingleSignOnService"},
		"expired": {metadata(entity, newIdentity(t, "x.test", -time.Hour)), "", "signing certificates",
			"has expired"},
		"no certificate": {strings.ReplaceAll(valid, `use="signing"`, `use="encryption"`), "", "signing certificates",
			"no signing certificate"},
		"broken": {metadata(entity, identity{der: []byte("x")}), "", "signing certificates", "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireFailure(t, run(t, id, "saml", object{"Metadata": row.text, "EntityId": row.entity}), row.step,
				row.message)
		})
	}
}
