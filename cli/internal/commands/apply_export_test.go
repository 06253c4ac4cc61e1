package commands

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// keyAndCertificate are a private key and its certificate, as PEM.
func keyAndCertificate(t *testing.T) (key, certificate string, public *ecdsa.PublicKey) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "crm"}, NotAfter: time.Now().AddDate(10, 0, 0),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})), &private.PublicKey
}

// TestExportOfOptionalMembers exports what is easily lost: keys and certificates, JWK sets, filters, headers,
// conditions, times. The files meet the schema of apply, change nothing here, and make the same in an empty tenant.
func TestExportOfOptionalMembers(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	key, certificate, public := keyAndCertificate(t)
	point, err := public.Bytes() // 4, x, y (SEC 1, 2.3.3)
	require.NoError(t, err)
	x, y := base64.RawURLEncoding.EncodeToString(point[1:33]), base64.RawURLEncoding.EncodeToString(point[33:])
	p.env["SAML_KEY"] = key
	indented := strings.ReplaceAll(strings.TrimSpace(certificate), "\n", "\n        ")
	file := p.file(fmt.Sprintf(`kind: Application
name: crm
category: 4
scopes: [users:read]
jwks: {keys: [{kty: EC, crv: P-256, kid: a, use: sig, alg: ES256, x: %q, y: %q}]}
config_prop: {access_policy: {forget_password: [mail]}, mfa_config: {b: [1, null]}, reg_policy: [a]}
login_url: https://crm.acme.test/login
descr: |
  two
  lines
protocols:
- type: saml
  status: 1
  protocol_prop:
    acs_url: https://crm.acme.test/acs
    sp_entity: crm
    lifetime_in_seconds: 300
    response_attr: [{value: email, attribute: mail, nameFormat: "urn:oasis:names:tc:SAML:2.0:attrname-format:basic"}]
    saml_response_signing_key: {from: env:SAML_KEY}
    saml_response_signing_cert: |
        %s
---
{kind: Resource, application: crm, type: data, code: invoice, actions: [{code: read}], sys_ext_props: {a: {b: 1e400}}}
---
kind: Rule
application: crm
type: data
code: invoice
actions: [read]
affect: deny
condition: 'context.ip.startsWith("10.") && now < timestamp("2099-01-01T00:00:00Z")'
valid_from: "2026-01-31T00:00:00Z"
valid_to: "2099-01-31T23:59:59.999Z"
description: from the office
identity: {type: group, name: auditors}
---
kind: Connection
provider_code: ldap
display_name: 目录
config_fields: {Url: "ldaps://ldap.acme.test:636", BindDn: "cn=idp,dc=acme", BindPassword: {from: env:GITHUB},
  BaseDn: "dc=acme", UserFilter: "(uid={username})"}
---
kind: Subscription
name: HR
event_types: [user.*, node.moved]
filter: 'event.data.record.status == "1"'
status: 0
delivery: {type: webhook, url: "https://hr.acme.test/hook", headers: {X-Api-Key: {from: env:GITHUB}}}
---
{kind: Subscription, name: nats, event_types: ["*.deleted"], delivery: {type: nats}}
`, x, y, indented))
	got := p.run("apply", "-f", file, "--yes")
	require.Equal(t, 0, got.code, got.err+got.out)
	folder, again := t.TempDir(), t.TempDir()
	require.Equal(t, 0, p.run("export", "-f", folder).code)
	p.meetSchema(folder)
	got = p.run("diff", "-f", folder)
	require.Equal(t, 0, got.code, got.err+got.out)

	p.inTenant("empty")
	for line := range strings.Lines(exportedSecrets(t, folder)) {
		switch name := strings.TrimSpace(line); {
		case strings.Contains(name, "SIGNING_KEY"):
			p.env[name] = key
		case strings.HasSuffix(name, "DELIVERY_SECRET"):
			p.env[name] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		default:
			p.env[name] = "s3cret"
		}
	}
	got = p.run("apply", "-f", folder, "--yes")
	require.Equal(t, 0, got.code, got.err+got.out)
	require.Equal(t, 0, p.run("export", "-f", again).code)
	assert.Equal(t, contents(t, folder), contents(t, again))
}

// meetSchema compares every document of a folder with what apply --schema prints.
func (p *play) meetSchema(folder string) {
	p.t.Helper()
	printed, err := jsonschema.UnmarshalJSON(strings.NewReader(p.done("apply", "--schema").out))
	require.NoError(p.t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(p.t, compiler.AddResource("schema.json", printed))
	schema, err := compiler.Compile("schema.json")
	require.NoError(p.t, err)
	documents := 0
	for name, text := range contents(p.t, folder) {
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for {
			var document any
			if decoder.Decode(&document) != nil {
				break
			}
			encoded, err := json.Marshal(document)
			require.NoError(p.t, err, name)
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(encoded)))
			require.NoError(p.t, err)
			require.NoError(p.t, schema.Validate(value), name)
			documents++
		}
	}
	require.NotZero(p.t, documents)
}
