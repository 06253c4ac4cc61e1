package signin_test

import (
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	signin "github.com/idplatform/idplatform/services/sign-in"
)

func TestConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: "/v1/sessions", Read: auth.SignInRead, Write: auth.SignInWrite, Unrelated: auth.KVRead,
		Open: []string{
			"show-own-page", "return-from-provider", "log-out-from-provider", "log-out-from-cas", "change-own-links", "end-own-session", "withdraw-own-consent", "change-own-password", "get-sign-in-style",
			"end-own-grant",
			"get-sign-in-script", "get-sign-in-logo", "begin-sign-in", "continue-sign-in", "show-sign-in",
			"authorize-person", "authorize-person-by-form", "push-authorization-request", "grant-person-token",
			"introspect-person-token", "revoke-person-token", "get-userinfo", "post-userinfo", "sign-out",
			"sign-out-by-form", "confirm-sign-out", "get-openid-configuration", "get-tenant-oauth-metadata",
			"get-tenant-jwks", "authorize-device", "show-device-page", "enter-device-code", "get-saml-metadata",
			"show-invitation-page", "accept-invitation", "verify-own-email", "change-own-factors",
			"sign-in-by-saml", "sign-in-by-saml-by-form", "sign-out-by-saml", "sign-out-by-saml-by-form", "start-saml",
			"confirm-saml-sign-out", "resume-saml-sign-out", "continue-saml-sign-out", "sign-in-by-cas", "sign-out-by-cas", "validate-cas-ticket-one",
			"validate-cas-ticket-two", "validate-cas-ticket-three",
		},
		Secrets:   map[string]testkit.Secret{"oidc_keys": {NotSent: true}, "saml_keys": {NotSent: true}},
		OwnTokens: []string{"get-userinfo", "post-userinfo"},
	})
}

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	testkit.Document(t, start(t), "api/openapi.yaml")
}

// Settings that make no sense keep the service from starting.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*signin.Config){
		"no idle time":        func(c *signin.Config) { c.SessionIdle = 0 },
		"idle beyond the end": func(c *signin.Config) { c.SessionMax = c.SessionIdle / 2 },
		"tokens for a day":    func(c *signin.Config) { c.AccessTTL = 24 * c.AccessTTL },
	} {
		c := signin.DefaultConfig()
		change(&c)
		if c.Validate() == nil {
			t.Error(name)
		}
	}
}
