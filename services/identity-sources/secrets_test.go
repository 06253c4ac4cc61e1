package identitysources_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/identity-sources/internal/provider"
)

// Whoever may write connections can't read their secrets by pointing them at himself: each member of a provider that
// says where a secret is sent, or how it is protected, keeps no mask when it changes.
func TestSecretsStayOnTheirRoute(t *testing.T) {
	t.Parallel()
	c := in(start(t), "acme")
	other := object{
		"Url": "ldaps://evil.test", "StartTls": false, "CaCertificate": "-----BEGIN CERTIFICATE-----\n", "Port": 25,
		"Host": "evil.test", "Security": "none", "Issuer": "https://evil.test", "EnterpriseUrl": "https://evil.test",
		"TenantId": "11111111-2222-3333-4444-555555555555", "Gateway": "twilio",
	}
	seen := map[string]bool{}
	for _, p := range provider.Builtin().List() {
		for _, secret := range p.Secrets {
			fields := object{}
			for name, value := range p.Example {
				fields[name] = value
			}
			if fields[secret] == nil {
				continue // the example of saml has none; its key is not sent
			}
			body := object{"provider_code": p.ProviderCode, "config_fields": fields}
			made := c.Post(connectionsPath, body).Object()
			fields[secret] = "******"
			c.Do(http.MethodPut, one(made), body).OK(nil)
			for member := range p.Route(secret, func(string) json.RawMessage { return nil }) {
				seen[member] = true
				before := fields[member]
				require.Contains(t, other, member)
				fields[member] = other[member]
				c.Do(http.MethodPut, one(made), body).
					Problem(http.StatusBadRequest, "invalid_parameters", "body.config_fields."+secret)
				if fields[member] = before; before == nil {
					delete(fields, member)
				}
			}
		}
	}
	for member := range other {
		require.True(t, seen[member], "%s is a member of some route", member)
	}
}

// A default that is written out is no change, and a secret that is given again goes wherever the change says.
func TestSecretGivenAgain(t *testing.T) {
	t.Parallel()
	c := in(start(t), "acme")
	made := c.Post(connectionsPath, ldap(nil)).Object()
	c.Do(http.MethodPut, one(made), ldap(object{"StartTls": true, "BindPassword": "******"})).OK(nil)
	c.Do(http.MethodPut, one(made), ldap(object{"Url": "ldap://other.test", "BindPassword": "sesame"})).OK(nil)
	without := ldap(object{"Url": "ldap://third.test"})
	delete(without["config_fields"].(object), "BindPassword")
	var list []object
	c.Do(http.MethodPut, one(made), without).OK(&list)
	require.False(t, slices.ContainsFunc(list, func(o object) bool {
		_, has := o["config_fields"].(object)["BindPassword"]
		return has
	}))
}
