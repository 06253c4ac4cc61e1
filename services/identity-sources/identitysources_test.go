package identitysources_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	identitysources "github.com/idplatform/idplatform/services/identity-sources"
)

// object is a JSON object.
type object = map[string]any

const (
	read  = auth.IdentitySourcesRead
	write = auth.IdentitySourcesWrite

	connectionsPath = "/v1/idp/connections"
	methodsPath     = "/v1/auth-methods"
	templatesPath   = "/v1/auth-templates"
)

func TestMain(m *testing.M) { basic.Main(m) }

func start(t testing.TB) *testkit.Service { return testkit.Start(t, identitysources.Spec()) }

// in returns a client of a tenant with all scopes of this service.
func in(s *testkit.Service, tenant string) *testkit.Client { return s.As(tenant, read, write) }

// secrets describes the sealed members to testkit.Conventions. TestSecretsStayOnTheirRoute has those of each provider.
var secrets = map[string]testkit.Secret{"connections": {
	Make: func(c *testkit.Client) string {
		return one(c.Post(connectionsPath, ldap(nil)).Object())
	},
	Reroutes: []testkit.Reroute{{
		Method: http.MethodPut, Body: ldap(object{"Url": "ldap://evil.test", "BindPassword": "******"}),
		Locations: []string{"body.config_fields.BindPassword"},
	}},
}}

// ldap is the body of a connection with a password, with changed config_fields.
func ldap(changes object) object {
	fields := object{
		"Url": "ldap://ldap.acme.test", "BaseDn": "dc=acme,dc=test", "BindDn": "cn=reader", "BindPassword": "sesame",
	}
	maps.Copy(fields, changes)
	return object{"provider_code": "ldap", "config_fields": fields}
}

func TestConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: methodsPath,
		Body: func(n int) any {
			return object{"code": fmt.Sprint("method-", n), "name": fmt.Sprint("Method ", n), "type": "password"}
		},
		Change: object{"name": "Another name"},
		Faulty: object{"code": "a b", "name": " ", "type": "otp"},
		Faults: []string{"body.code", "body.name"}, Unique: []string{"code"},
		Read: read, Write: write, Unrelated: auth.KVRead, Secrets: secrets,
	})
}

// startWithMethods starts the service with a method in each tenant that testkit.Conventions uses.
func startWithMethods(t testing.TB) *testkit.Service {
	s := start(t)
	for _, tenant := range []string{"acme", "globex"} {
		in(s, tenant).Post(methodsPath, object{"code": "pwd", "name": "Password", "type": "password"}).OK(nil)
	}
	s.Events(2)
	return s
}

func TestTemplatesKeepTheConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, startWithMethods, testkit.Resource{
		Collection: templatesPath,
		Body: func(n int) any {
			return object{"code": fmt.Sprint("template-", n), "name": fmt.Sprint("Template ", n), "steps": []any{
				object{"methods": []any{"pwd"}, "required": true},
			}}
		},
		Change: object{"name": "Another name"},
		Faulty: object{"code": "a b", "name": " ", "steps": []any{object{"methods": []any{"none"}, "required": true}}},
		Faults: []string{"body.code", "body.name"}, Unique: []string{"code"},
		Read: read, Write: write, Unrelated: auth.KVRead, Seeds: 2,
		Secrets: secrets,
	})
}

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	testkit.Document(t, start(t), "api/openapi.yaml")
}

// wechat is the body of a connection, with changes.
func wechat(more ...object) object {
	body := object{"provider_code": "wechat_scan_qr", "config_fields": object{
		"AppId": "wx8f3a2b1c0d9e7f65", "AppSecret": appSecret,
	}}
	for _, change := range more {
		for name, value := range change {
			body[name] = value
		}
	}
	return body
}

func id(record object) string { return record["id"].(string) }

// one is the path of a connection.
func one(record object) string { return connectionsPath + "/" + id(record) }

func TestProviders(t *testing.T) {
	t.Parallel()
	var providers []object
	in(start(t), "acme").Get("/v1/idp/providers").OK(&providers)
	require.GreaterOrEqual(t, len(providers), 20)
	for _, member := range []string{"provider_id", "provider_code", "name", "type", "logo", "config_schema"} {
		require.Contains(t, providers[0], member)
	}
	require.Equal(t, "wechat_scan_qr", providers[0]["provider_code"])
	require.NotContains(t, providers[0], "example")
}

// Every tenant has one native database connection, whichever request comes first.
func TestNativeDatabase(t *testing.T) {
	t.Parallel()
	s := start(t)
	acme, globex := in(s, "acme"), in(s, "globex")
	var list, other []object
	acme.Get(connectionsPath).OK(&list)
	require.Len(t, list, 1)
	native := list[0]
	require.Equal(t, "idp_native_db", native["provider_code"])
	require.Equal(t, "database", native["type"])
	require.Equal(t, object{}, native["config_fields"])
	globex.Get(connectionsPath).OK(&other)
	require.Len(t, other, 1)
	require.NotEqual(t, native["id"], other[0]["id"])

	acme.Delete(one(native), nil).Problem(http.StatusServiceUnavailable, "unavailable")
	others(s, 0, 0)
	acme.Delete(one(native), nil).Problem(http.StatusConflict, "invalid_state")
	acme.Do(http.MethodPut, one(native), wechat()).Problem(http.StatusConflict, "invalid_state")
	acme.Post(connectionsPath, object{"provider_code": "idp_native_db", "config_fields": object{}}).
		Problem(http.StatusConflict, "already_exists", "body.provider_code")
	acme.Post(one(native)+"/disable", nil).OK(nil)
	acme.Get(connectionsPath + "?status=0").OK(&list)
	require.Len(t, list, 1)
}
