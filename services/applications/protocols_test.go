package applications_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/applications"
)

// keyPair is a private key in PKCS #8 and its certificate.
func keyPair(t testing.TB, key crypto.Signer) (private, certificate, fingerprint string) {
	t.Helper()
	draft := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, draft, draft, key.Public(), key)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	sum := sha256.Sum256(cert)
	return text("PRIVATE KEY", pkcs8), text("CERTIFICATE", cert), hex.EncodeToString(sum[:])
}

func ecKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

const (
	signingKey  = "saml_response_signing_key"
	signingCert = "saml_response_signing_cert"
	fingerprint = "saml_response_signing_cert_fingerprint"
)

// addSAML creates an application with a signing key and a protocol's secret, and returns its path.
func addSAML(t testing.TB, c *testkit.Client, name string) string {
	t.Helper()
	key, cert, _ := keyPair(t, ecKey(t))
	app := addApp(t, c, name, object{
		"protocol_type": "saml", "protocol_prop": object{signingKey: key, signingCert: cert},
	})
	c.Post(path(app, "protocols/saml/secret"), nil).OK(nil)
	return path(app)
}

func TestSAMLKeys(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	app := addApp(t, c, "a")
	key, cert, sum := keyPair(t, ecKey(t))
	otherKey, otherCert, otherSum := keyPair(t, ecKey(t))
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	_, smallCert, _ := keyPair(t, small)
	saml := path(app, "protocols/saml")
	put := func(prop object) *testkit.Answer {
		return c.Do(http.MethodPut, saml, object{"protocol_prop": prop})
	}
	colons := func(sum string) string {
		var pairs []string
		for i := 0; i < len(sum); i += 2 {
			pairs = append(pairs, strings.ToUpper(sum[i:i+2]))
		}
		return strings.Join(pairs, ":")
	}

	assert.Equal(t, object{}, put(object{signingKey: key, signingCert: cert}).Object())
	prop := c.Get(saml).Object()["protocol_prop"].(object)
	assert.Equal(t, object{signingKey: "******", signingCert: cert, fingerprint: colons(sum)}, prop)
	put(prop).OK(nil) // the mask keeps the key
	put(object{signingKey: key, signingCert: cert, fingerprint: sum}).OK(nil)
	// a record that was read, with a new pair: the old fingerprint is ignored
	put(object{signingKey: otherKey, signingCert: otherCert, fingerprint: colons(sum)}).OK(nil)
	assert.Equal(t, colons(otherSum), c.Get(saml).Object()["protocol_prop"].(object)[fingerprint])

	for name, row := range map[string]struct {
		prop     object
		location string
	}{
		"the mask of another key": {object{signingKey: "******", signingCert: cert}, signingKey},
		"the key of another":      {object{signingKey: key, signingCert: otherCert}, signingKey},
		"no certificate":          {object{signingKey: key}, signingKey},
		"no PEM":                  {object{signingKey: "secret", signingCert: otherCert}, signingKey},
		"a key for a certificate": {object{signingCert: key}, signingCert},
		"broken":                  {object{signingCert: cert[:200] + cert[210:]}, signingCert},
		"two certificates":        {object{signingCert: cert + otherCert}, signingCert},
		"a weak key":              {object{signingCert: smallCert}, signingCert},
		"another fingerprint": {object{signingCert: cert, fingerprint: strings.Repeat("00:", 31) + "00"},
			fingerprint},
		"only a fingerprint": {object{fingerprint: sum}, fingerprint},
		"another kind of key": {object{signingCert: cert, "signature_algorithm": "rsa-sha256"},
			"signature_algorithm"},
		"SHA-1": {object{"signature_algorithm": "http://www.w3.org/2000/09/xmldsig#rsa-sha1"},
			"signature_algorithm"},
		"SHA-1 digest": {object{"digest_algorithm": "http://www.w3.org/2000/09/xmldsig#sha1"},
			"digest_algorithm"},
		"no algorithm":       {object{"digest_algorithm": "crc32"}, "digest_algorithm"},
		"one for tokens":     {object{"signature_algorithm": "RS256"}, "signature_algorithm"},
		"too short":          {object{"lifetime_in_seconds": 0}, "lifetime_in_seconds"},
		"too long":           {object{"lifetime_in_seconds": 86401}, "lifetime_in_seconds"},
		"a fraction":         {object{"lifetime_in_seconds": 1.5}, "lifetime_in_seconds"},
		"an http URL":        {object{"acs_url": "http://acme.test/acs"}, "acs_url"},
		"a format":           {object{"name_identifier_format": "email"}, "name_identifier_format"},
		"a context":          {object{"authn_context_class_ref": "x y"}, "authn_context_class_ref"},
		"an empty attribute": {object{"response_attr": []any{object{}}}, "response_attr"},
		"a number":           {object{"sp_entity": 1}, "sp_entity"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := put(row.prop)
			answer.Problem(http.StatusBadRequest, "invalid_parameters", "body.protocol_prop."+row.location)
			assert.NotContains(t, string(answer.Body), "MIG", "no answer contains a key")
		})
	}
}

// The claims that an application's settings add replace none of the protocol, and none that others rely on.
func TestClaimsAreNotReserved(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	oidc := path(addApp(t, c, "a"), "protocols/oidc")
	put := func(name, value string) *testkit.Answer {
		return c.Do(http.MethodPut, oidc, object{"protocol_prop": object{
			"response_attr": []any{object{"attribute": name, "value": value}}}})
	}
	put("staff", "employee_number").OK(nil)
	for _, name := range []string{"sub", "aud", "nonce", "email", "email_verified", "sid"} {
		put(name, "username").Problem(http.StatusBadRequest, "invalid_parameters", "body.protocol_prop.response_attr")
		put("", name).Problem(http.StatusBadRequest, "invalid_parameters", "body.protocol_prop.response_attr")
	}
	saml := path(addApp(t, c, "b", object{"protocol_type": "saml"}), "protocols/saml")
	c.Do(http.MethodPut, saml, object{"protocol_prop": object{
		"response_attr": []any{object{"attribute": "email", "value": "email"}}}}).OK(nil)
}

func TestAllowSHA1(t *testing.T) {
	t.Parallel()
	config := applications.DefaultConfig()
	config.AllowSHA1 = true
	s := testkit.Start(t, applications.Spec(config))
	addApp(t, in(s, "acme"), "a", object{"protocol_type": "saml",
		"protocol_prop": object{"digest_algorithm": "sha1", "signature_algorithm": "rsa-sha1"}})
}

// The key is stored encrypted; neither records nor events contain it.
func TestSigningKeyIsSealed(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	key, cert, _ := keyPair(t, ecKey(t))
	line := strings.Split(key, "\n")[1]
	app := addApp(t, c, "a", object{"protocol_type": "saml",
		"protocol_prop": object{signingKey: key, signingCert: cert}})
	assert.Equal(t, "******", app["protocol_prop"].(object)[signingKey])
	assert.Equal(t, app["protocol_prop"], c.Get(path(app, "protocols/saml")).Object()["protocol_prop"],
		"both records show one value")
	changed := c.Patch(path(app), object{"protocol_prop": object{"sp_entity": "sp"}}).Object()["protocol_prop"].(object)
	assert.Equal(t, "******", changed[signingKey])
	key2, cert2, _ := keyPair(t, ecKey(t))
	c.Patch(path(app), object{"protocol_prop": object{signingKey: key2}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.protocol_prop."+signingKey)
	c.Patch(path(app), object{"protocol_prop": object{signingKey: key2, signingCert: cert2}}).OK(nil)
	c.Delete(path(app), nil).OK(nil)
	for _, e := range s.Events(5) {
		assert.NotContains(t, string(e.Data), line, e.Type)
	}
	assert.Empty(t, testkit.Stored(t, s, "acme", "sealed_values"), "the key is deleted with its protocol")
}

func TestProtocols(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "a")
	saml := path(app, "protocols/saml")
	types := func(query string) (list []any) {
		var records []object
		c.Get(path(app, "protocols"+query)).OK(&records)
		for _, r := range records {
			list = append(list, r["protocol_type"])
		}
		return list
	}
	c.Get(saml).Problem(http.StatusNotFound, "not_found")
	c.Post(saml+"/enable", nil).Problem(http.StatusNotFound, "not_found")
	c.Do(http.MethodPut, saml, object{"protocol_prop": object{"acs_url": "https://a.test/acs"}}).OK(nil)
	record := c.Get(saml).Object()
	assert.Equal(t, "0", record["status"], "disabled until it is enabled")
	assert.Equal(t, app["id"], record["app_id"])
	assert.Equal(t, []any{"oidc", "saml"}, types(""))
	assert.Equal(t, []any{"oidc"}, types("?status=1"))
	assert.Equal(t, []any{"saml"}, types("?status=0"))
	c.Get(path(app, "protocols?status=2")).Problem(http.StatusBadRequest, "invalid_parameters", "query.status")

	c.Post(saml+"/enable", nil).Problem(http.StatusBadRequest, "invalid_parameters", "body.protocol_prop.sp_entity")
	c.Do(http.MethodPut, saml, object{"protocol_prop": object{"acs_url": "https://a.test/acs",
		"sp_entity": "sp"}}).OK(nil)
	assert.Equal(t, "1", c.Post(saml+"/enable", nil).Object()["status"])
	c.Do(http.MethodPut, saml, c.Get(saml).Object()).OK(nil) // a record may be sent back as it is
	assert.Equal(t, "1", c.Get(saml).Object()["status"])
	assert.Equal(t, object{}, c.Post(saml+"/disable", nil).Object())
	assert.Equal(t, "0", c.Get(saml).Object()["status"])

	oidc := path(app, "protocols/oidc")
	c.Post(oidc+"/enable", nil).Problem(http.StatusBadRequest, "invalid_parameters", "body.redirect_url")
	c.Patch(path(app), object{"redirect_url": "https://a.test/cb"}).OK(nil)
	c.Post(oidc+"/enable", nil).OK(nil)
	c.Do(http.MethodPut, oidc, object{"protocol_prop": object{"signature_algorithm": "ES256"}}).OK(nil)
	assert.Equal(t, object{"signature_algorithm": "ES256"}, c.Get(path(app)).Object()["protocol_prop"],
		"both records show one value")
	c.Do(http.MethodPut, oidc, object{"protocol_prop": object{"signature_algorithm": "none"}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.protocol_prop.signature_algorithm")

	c.Get(path(app, "protocols/kerberos")).Problem(http.StatusBadRequest, "invalid_parameters", "path.protocol_type")
	c.Get("/v1/applications/1/protocols").Problem(http.StatusNotFound, "not_found")
	c.Do(http.MethodPut, "/v1/applications/1/protocols/saml", object{}).Problem(http.StatusNotFound, "not_found")
	for _, operation := range []string{"/enable", "/disable", "/secret"} {
		in(s, "globex").Post(oidc+operation, nil).Problem(http.StatusNotFound, "not_found")
	}
}

// Each protocol_type has its own settings, which return when the type is changed back.
func TestChangeOfProtocolType(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	app := addApp(t, c, "a", object{"protocol_type": "saml", "protocol_prop": object{"sp_entity": "sp"}})
	changed := c.Patch(path(app), object{"protocol_type": "oidc"}).Object()
	assert.Equal(t, object{"lifetime_in_seconds": 3600.0, "signature_algorithm": "RS256"}, changed["protocol_prop"])
	assert.Equal(t, "1", c.Get(path(app, "protocols/oidc")).Object()["status"])
	back := c.Patch(path(app), object{"protocol_type": "saml",
		"protocol_prop": object{"acs_url": "https://a.test/acs"}}).Object()
	assert.Equal(t, object{"sp_entity": "sp", "acs_url": "https://a.test/acs"}, back["protocol_prop"])
}

func TestProtocolSecret(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "a")
	oidc := path(app, "protocols/oidc")
	assert.Equal(t, "", c.Get(oidc).Object()["secret"])
	s.As("acme", auth.ApplicationsWrite).Post(oidc+"/secret", nil).Problem(http.StatusForbidden, "forbidden")
	made := c.Post(oidc+"/secret", nil).Object()
	assert.Regexp(t, `^[A-Za-z0-9_-]{43}$`, made["secret"])
	record := c.Get(oidc).Object()
	assert.Equal(t, "******", record["secret"])
	assert.Equal(t, made["secret_hint"], record["secret_hint"])
	c.Do(http.MethodPut, oidc, object{"protocol_prop": object{"signature_algorithm": "ES256"}}).OK(nil)
	assert.Equal(t, "******", c.Get(oidc).Object()["secret"], "a PUT keeps it")
	again := c.Post(oidc+"/secret", nil).Object()
	assert.NotEqual(t, made["secret"], again["secret"])
	c.Post(path(app, "protocols/saml/secret"), nil).Problem(http.StatusNotFound, "not_found")
}
