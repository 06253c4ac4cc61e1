package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

func TestConnections(t *testing.T) {
	play(t, "connections", func(b *browser) {
		b.open("connections")
		b.see("1 record") // every tenant begins with the platform’s own database
		b.clickIn(".actions", "New connection")
		b.see("Choose a provider")
		b.click("LDAP")
		b.fill("Server *", "ldap://127.0.0.1:1")
		b.fill("Base DN *", "dc=example,dc=org")
		b.click("Save, still disabled")
		b.see("LDAP is saved and disabled")
		b.clickIn(".panel-body", "Test")
		b.see("A step failed")
		b.clickIn(".panel-body", "Enable")
		b.see("LDAP is enabled")
		b.undo()
		b.waitFor("document.querySelector('.panel-head').textContent.includes('Disabled')")
		b.click("Overview")
		b.fill("Base DN *", "dc=example,dc=net")
		b.click("Save")
		b.see("LDAP was saved")
		b.undo()
		b.waitFor("input('Base DN *').value === 'dc=example,dc=org'")
		b.find("ldap")
		b.see("1 record")
		b.click("More actions")
		b.click("Delete…")
		b.fill("Type LDAP to confirm", "LDAP")
		b.clickIn("dialog", "Delete")
		b.see("LDAP was deleted")
	})
}

// TestUnnamedConnection: a connection without a name is called like its provider wherever it is shown.
func TestUnnamedConnection(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "unnamed")
	type body = map[string]any
	app := b.call(t, b.tenant, "POST", "/v1/applications", body{"name": "Books", "category": "4"})["id"].(string)
	made := b.call(t, b.tenant, "POST", "/v1/idp/connections", body{"provider_code": "ldap", "status": "0",
		"config_fields": body{"Url": "ldap://127.0.0.1:1", "BaseDn": "dc=acme"}})
	b.open("apps?tab=sources&open=" + app)
	b.waitFor("[...document.querySelectorAll('.panel option')].some((o) => o.text === 'LDAP (ldap)')")
	b.call(t, b.tenant, "POST", "/v1/applications/"+app+"/idp", body{"config_id": made["id"]})
	for _, status := range []int{200, 403} { // also for who may not read connections
		if status != 200 {
			b.proxy.fail(fault{call: "GET /v1/idp/connections", status: status, times: 1})
		}
		b.open("apps?tab=sources&open=" + app)
		b.waitFor("document.querySelector('.panel .card .clip')?.textContent === 'LDAP'")
		b.rest()
		b.waitFor("document.querySelector('.panel .card .clip')?.textContent === 'LDAP'")
	}
	b.open("connections")
	b.see("LDAP")
	b.press("k", chromedp.KeyModifiers(kb.ModifierCtrl))
	b.waitFor("document.activeElement.matches('.palette input')")
	b.press("ldap")
	b.waitFor("[...document.querySelectorAll('.palette [role=option]')].some((o) => o.innerText.startsWith('LDAP'))")
	b.clean()
}

func TestSettings(t *testing.T) {
	play(t, "settings", func(b *browser) {
		b.open("start")
		b.screen("Settings")
		b.see("platform:admin")
		b.click("This browser")
		b.choose("Theme", "Dark")
		b.waitFor("document.documentElement.dataset.theme === 'dark'")
		b.click("Platform")
		issuer := "/sign-in/" + b.tenant
		b.see("Version", "Sign-in of people: tenant "+b.tenant, "has no applications yet",
			issuer+"/.well-known/openid-configuration", issuer+"/saml/metadata", issuer+"/cas")
		b.call(b.t, b.tenant, "POST", "/v1/applications", map[string]any{"name": "Books", "category": "1"})
		b.click("Signing keys")
		b.click("Platform")
		b.see("Sign-in of people: tenant "+b.tenant, issuer+"/.well-known/openid-configuration")
		b.gone("has no applications yet")
		b.click("Signing keys")
		b.waitFor("location.pathname.endsWith('/settings/keys')")
	})
}

// TestSharedContacts: whoever lets users share an email or mobile has read what that does, and can take it back.
func TestSharedContacts(t *testing.T) {
	play(t, "shared-contacts", func(b *browser) {
		shared := func(is bool) {
			b.t.Helper()
			b.waitFor(fmt.Sprintf("input('Users may have the same e-mail or mobile').checked === %t", is))
			now := b.call(b.t, b.tenant, "GET", "/v1/users-settings", nil)
			require.Equal(b.t, is, now["shared_contacts"])
		}
		b.open("start")
		b.screen("Settings")
		b.clickIn("main", "Users")
		b.see("none of them signs in by it")
		shared(false)
		b.click("Users may have the same e-mail or mobile")
		b.see("Let users have the same e-mail or mobile?")
		b.clickIn("dialog", "Cancel")
		shared(false)
		b.click("Users may have the same e-mail or mobile")
		b.clickIn("dialog", "Allow")
		shared(true)
		b.undo()
		shared(false)
		b.call(b.t, b.tenant, "PATCH", "/v1/users-settings", map[string]bool{"shared_contacts": true})
		b.click("Users may have the same e-mail or mobile")
		b.clickIn("dialog", "Allow")
		b.see("The record has changed")
		shared(true)
		b.click("Users may have the same e-mail or mobile")
		b.see("go on sharing it")
		b.clickIn("dialog", "Forbid")
		shared(false)
	})
}

// TestTenantNames: a tenant may be named like a path of the console.
func TestTenantNames(t *testing.T) {
	t.Parallel()
	b := signedIn(t, sharedTenant)
	for _, name := range []string{"sign-in", "api"} {
		b.load("/console/=" + name + "/users")
		b.see("No users yet")
		b.waitFor(fmt.Sprintf("document.querySelector('nav a[href=\"/console/=%s/tree\"]')", name))
	}
}
