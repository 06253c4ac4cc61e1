package browsertest

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the algorithm of authenticator apps
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// freePort returns a port of this machine that was free when it looked.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// atDoor opens a browser with a device for passkeys, at the sign-in pages of a platform that is called localhost:
// browsers have no passkeys for addresses.
func atDoor(t *testing.T) (*browser, webauthn.AuthenticatorID) {
	t.Helper()
	port := freePort(t)
	p, err := startPlatform(fmt.Sprintf("IDP_LISTEN=127.0.0.1:%d", port),
		fmt.Sprintf("IDP_PUBLIC_URL=http://localhost:%d", port))
	require.NoError(t, err)
	b := p.openBrowser(t, sharedTenant)
	b.url = fmt.Sprintf("http://localhost:%d", port)
	_, err = chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{})
	require.NoError(t, err)
	device, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		},
	})
	require.NoError(t, err)
	return b, device.AuthenticatorID
}

// sends fills in fields by their names, and presses the button with a value.
func (b *browser) sends(button string, fields map[string]string) {
	b.t.Helper()
	for name, text := range fields {
		b.do(chromedp.SendKeys("[name="+name+"]:not([type=hidden])", text))
	}
	b.do(chromedp.Click("button[value=" + button + "]"))
}

// From a password to a passkey, and signed in with it, by the virtual authenticator of Chromium.
func TestPasskeys(t *testing.T) {
	b, device := atDoor(t)
	const password = "a-long-way-home"
	b.call(t, b.tenant, "POST", "/v1/users", map[string]any{
		"username": "li.wei", "display_name": "Li Wei", "email": "li.wei@acme.test", "password": password,
	})
	axe := axeScript(b)
	b.load("/sign-in/default")
	b.see("Sign in with a passkey")
	b.sends("sign-in", map[string]string{"login_name": "li.wei", "password": password})
	b.see("You sign in with a password only")
	b.sends("add", nil)
	b.see("Set up a second factor")
	b.check(axe, "factor-choose")
	b.sends("webauthn", nil)
	b.see("Your browser asks you where to keep the passkey")
	b.check(axe, "factor-passkey")
	b.sends("add-factor", map[string]string{"name": "Work laptop"})
	b.see("Keep your recovery codes")
	b.check(axe, "factor-codes")
	b.sends("kept", nil)
	b.see("The second factor is set up", "Work laptop")
	b.check(axe, "factor-own-page")

	b.load("/sign-in/default/logout")
	b.click("Sign out")
	b.see("You are signed out")
	b.load("/sign-in/default") // the browser offers the passkey by itself, and the device touches it
	b.see("Li Wei", "Second factors")
	factors := b.call(t, b.tenant, "GET", "/v1/factors?type=webauthn", nil)["items"].([]any)
	require.Len(t, factors, 1)
	require.Equal(t, "localhost", factors[0].(map[string]any)["site"])
	sessions := b.call(t, b.tenant, "GET", "/v1/sessions", nil)["items"].([]any)
	require.Equal(t, "phr", sessions[0].(map[string]any)["acr"])

	// As a second factor, by the button, after the password.
	b.load("/sign-in/default/logout")
	b.click("Sign out")
	b.see("You are signed out")
	b.touches(device, false)
	b.load("/sign-in/default")
	b.check(axe, "sign-in-passkey")
	b.sends("sign-in", map[string]string{"login_name": "li.wei", "password": password})
	b.see("Show that it is you")
	b.check(axe, "factor-enter")
	b.touches(device, true)
	b.sends("passkey", nil)
	b.see("Li Wei", "Second factors")
	b.clean()
}

// An administrator sees how a user signs in, gives new recovery codes, and removes a factor that is lost.
func TestSignInOfAUser(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "sign-in-of-a-user")
	const password = "a-long-way-home"
	b.call(t, b.tenant, "POST", "/v1/users", map[string]any{
		"username": "li.wei", "display_name": "Li Wei", "email": "li.wei@acme.test", "password": password,
	})
	b.load("/sign-in/" + b.tenant)
	b.sends("sign-in", map[string]string{"login_name": "li.wei", "password": password})
	b.see("You sign in with a password only")
	b.sends("add", nil)
	b.see("Set up a second factor")
	b.sends("otp", nil)
	b.see("Set up an authenticator app")
	key := eval[string](b, "document.querySelector('.key').textContent")
	b.sends("add-factor", map[string]string{"name": "Work phone", "code": codeOf(t, key)})
	b.see("Keep your recovery codes")
	b.sends("kept", nil)
	b.see("The second factor is set up")

	axe := axeScript(b)
	b.show("/console/"+b.tenant+"/users?q=li%20we&tab=sign-in", "document.querySelector('a.open').click()")
	b.see("Work phone", "Authenticator app", "10 left", "Two factors")
	b.check(axe, "user-sign-in")
	b.click("New codes…")
	b.click("Make new codes")
	b.see("Recovery codes of Li Wei")
	b.click("I have stored it")
	b.click("Remove Work phone")
	b.see("It is the last second factor of Li Wei")
	b.clickIn("dialog", "Remove")
	b.see("Li Wei has no second factor.", "Li Wei is signed in nowhere.")
	b.clean()
}

// codeOf is what an authenticator app with a key shows now (RFC 6238).
func codeOf(t *testing.T, key string) string {
	t.Helper()
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ReplaceAll(key, "-", ""))
	require.NoError(t, err)
	mac := hmac.New(sha1.New, secret)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(time.Now().Unix()/30)))
	sum := mac.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1_000_000)
}

// touches says whether a finger lies on the device.
func (b *browser) touches(device webauthn.AuthenticatorID, touches bool) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, webauthn.SetAutomaticPresenceSimulation,
		webauthn.SetAutomaticPresenceSimulationParams{AuthenticatorID: device, Enabled: touches})
	require.NoError(b.t, err)
}
