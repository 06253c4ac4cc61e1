package browsertest

import (
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/console/issuertest"
)

// staff is an issuer on another site than the platform: Strict cookies do not come along from there.
type staff struct {
	*issuertest.Issuer
	nothing atomic.Bool // access tokens have no scopes
	ended   atomic.Bool // the next access token has ended when it arrives
	old     atomic.Bool // sign-ins are an hour old
}

func startIssuer(t *testing.T) *staff {
	t.Helper()
	i, err := issuertest.Start()
	require.NoError(t, err)
	t.Cleanup(i.Close)
	i.URL = strings.Replace(i.URL, "127.0.0.1", "localhost", 1)
	s := &staff{Issuer: i}
	i.Access = func(claims map[string]any) {
		claims["tenant"], claims["roles"] = "default", []string{"auditor", "platform:admin"}
		if s.nothing.Load() {
			claims["roles"] = []string{"auditor"}
		}
		if s.ended.CompareAndSwap(true, false) {
			claims["exp"] = claims["iat"]
		}
	}
	i.ID = func(claims map[string]any) {
		if s.old.Load() {
			claims["auth_time"] = time.Now().Add(-time.Hour).Unix()
		}
	}
	return s
}

// clickLink clicks as a mouse does: a browser opens new tabs for that alone.
func (b *browser) clickLink(text string) {
	b.t.Helper()
	link := fmt.Sprintf(`[...document.querySelectorAll('a')].findLast((a) => a.textContent.includes(%q))`, text)
	b.waitFor(link + "?.checkVisibility()")
	const middle = `((r) => [r.x + r.width / 2, r.y + r.height / 2])((%s).getBoundingClientRect())`
	at := eval[[]float64](b, fmt.Sprintf(middle, link))
	b.do(chromedp.MouseClickXY(at[0], at[1]))
}

// trusting starts a platform that trusts an issuer, and at which its people sign in.
func trusting(t *testing.T, i *staff) *platform {
	t.Helper()
	p, err := startPlatform(
		"IDP_AUTH_OIDC=issuer="+i.URL+";jwks="+i.URL+"/keys;audience=idplatform;tenant_claim=tenant;scope_claim=roles;"+
			"scopes=platform:admin",
		"IDP_CONSOLE_OIDC_ISSUER="+i.URL, "IDP_CONSOLE_OIDC_CLIENT_ID="+issuertest.ClientID,
		"IDP_CONSOLE_OIDC_CLIENT_SECRET="+issuertest.ClientSecret, "IDP_CONSOLE_OIDC_LABEL=Acme staff")
	require.NoError(t, err)
	return p
}

func TestSignInAtAnIssuer(t *testing.T) {
	i := startIssuer(t)
	b := trusting(t, i).openBrowser(t, sharedTenant)

	i.nothing.Store(true)
	axe := axeScript(b)
	b.open("users?q=wei")
	b.check(axe, "issuer")
	b.clickLink("Sign in with Acme staff")
	b.see("has no scope of the platform")
	for _, claim := range []string{"aud", "roles", "tenant"} {
		b.see(claim)
	}
	require.NotContains(t, eval[string](b, "document.body.innerText"), "auditor")
	b.size(390, 844)
	b.check(axe, "issuer-claims")
	b.size(1280, 800)
	require.Equal(t, "/console/default/users?q=wei", eval[string](b, "location.pathname + location.search"))
	i.nothing.Store(false)

	i.ended.Store(true)
	i.old.Store(true)
	b.clickLink("Sign in with Acme staff")
	b.waitFor(`location.search === '?q=wei' && document.querySelector('.screen h1')`)
	b.see("No record fits")
	require.Equal(t, 1, i.Renewals(), "the token had ended; all calls of the screen got one other")
	require.Empty(t, eval[string](b, "document.cookie"))

	b.open("apps?create=own")
	b.see("Redirect addresses")
	b.fill("Name *", "Payroll")
	b.press(kb.Enter)
	b.see("Sign in again for this")
	i.old.Store(false)
	b.check(axe, "issuer-again")
	b.clickLink("Sign in with Acme staff")
	b.see("It is shown once")
	require.Equal(t, "login", i.Asked().Get("prompt"))
	b.see("Payroll")
	require.True(t, eval[bool](b, "!dispatchEvent(new Event('beforeunload', {cancelable: true}))"),
		"leaving would lose the secret")
	b.click("I have stored it")
	require.True(t, eval[bool](b, "dispatchEvent(new Event('beforeunload', {cancelable: true}))"))

	b.open("start")
	b.click("Signed in as")
	b.click("Sign out")
	b.see("Sign in with Acme staff")
	require.Equal(t, "/console/sign-in", eval[string](b, "location.pathname"))
	require.Len(t, i.Revoked(), 4, "two of the sign-in without scopes, two of the last")
	require.Equal(t, int64(401), eval[int64](b, "fetch('/console/api/v1/users').then((r) => r.status)"))
	back, err := url.Parse(i.Asked().Get("redirect_uri"))
	require.NoError(t, err)
	require.Equal(t, "/console/~/oidc/callback", back.Path)
	b.clean()
}

// TestDeletesOfMany: 100 records are deleted by whoever is signed in, more by who has signed in just now.
func TestDeletesOfMany(t *testing.T) {
	i := startIssuer(t)
	i.old.Store(true)
	b := trusting(t, i).openBrowser(t, sharedTenant)
	b.call(t, b.tenant, "POST", "/v1/users/import", lines(201))
	remove := func(n int) {
		t.Helper()
		b.see(fmt.Sprintf("%d records", n))
		b.press("jx")
		b.click(fmt.Sprintf("Select all %d that match", n))
		b.clickIn(".bulk", "Delete…")
		b.fill(fmt.Sprintf("Type %d to confirm", n), fmt.Sprint(n))
		b.click(fmt.Sprintf("Delete %d users", n))
	}
	b.open("users?q=person.1")
	b.clickLink("Sign in with Acme staff")
	remove(100)
	b.see("100 users deleted", "Nothing matches") // until then the way to clear the search stands elsewhere
	b.click("Clear search and filters")
	remove(101)
	b.see("Sign in again for this")
	i.old.Store(false)
	b.clickLink("Sign in with Acme staff")
	b.see("101 users deleted", "No users yet")
	b.clean()
}
