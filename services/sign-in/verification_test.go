package signin_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unverified is a world in which ann is signed in, and her address is not verified. The browser shows her own page.
func unverified(t testing.TB) (*world, *browser) {
	t.Helper()
	w := withMails(t)
	w.users["ann"].record["email_verified"] = false
	b := w.browser().get(base).signIn("ann", password).shows(200, "not verified yet that ann@acme.test is yours")
	return w, b
}

// email sends a form of the person's own page about the address.
func (b *browser) email(action, code string) *browser {
	b.w.t.Helper()
	return b.post(base+"/email", url.Values{"action": {action}, "code": {code}})
}

func TestVerificationOfAnAddress(t *testing.T) {
	t.Parallel()
	w, b := unverified(t)
	require.NotContains(t, b.body, "Code from the email")
	b.email("send", "").shows(200, "The code is on its way")
	require.Contains(t, b.body, "Code from the email")
	b.get(base).shows(200, "Code from the email") // also after the page was left
	code := w.code(1)
	require.Contains(t, w.mails.Mails()[0].Data, "show that this address is yours")
	b.email("verify", "BCDF-GHJK").shows(200, "not right, or it has expired")
	b.email("verify", code).shows(200, "The address is verified")
	require.NotContains(t, b.body, "not verified yet")
	require.Equal(t, true, w.users["ann"].record["email_verified"])
	b.email("verify", code).shows(200, "not right, or it has expired") // once
	b.email("send", "").shows(200, "cannot be verified")
}

// A code belongs to one session and one address, and ends after ten minutes, five tries, or with a newer one.
func TestCodesOfVerificationsEnd(t *testing.T) {
	t.Parallel()
	w, b := unverified(t)
	b.email("send", "")
	first := w.code(1)
	other := w.browser().get(base).signIn("ann", password)
	other.email("verify", first).shows(200, "not right, or it has expired")
	other.email("send", "").shows(200, "The code is on its way")
	w.code(2)
	b.email("send", "")
	second := w.code(3)
	b.email("verify", first).shows(200, "not right, or it has expired")
	for range 4 {
		b.email("verify", "BBBB-BBBB")
	}
	b.email("verify", second).shows(200, "not right, or it has expired") // the sixth try
	b.email("send", "")
	third := w.code(4)
	w.Clock.Advance(10 * time.Minute)
	b.email("verify", third).shows(200, "not right, or it has expired")
	require.NotContains(t, b.get(base).body, "Code from the email")
	b.email("send", "")
	fifth := w.code(5)
	w.change(func() { w.users["ann"].record["email"] = "new@acme.test" })
	b.email("verify", fifth).shows(200, "cannot be verified")
	require.Equal(t, false, w.users["ann"].record["email_verified"])
	w.browser().email("send", "").shows(200, "Sign in") // nobody is signed in
}

// A browser that drops its cookie has the limits of strangers.
func TestLimitsOfVerifications(t *testing.T) {
	t.Parallel()
	w, b := unverified(t)
	limits := object{"per_hour": 3, "per_hour_of_address": 2}
	w.admin().Patch("/v1/sign-in/settings", object{"messages": limits}).OK(nil)
	at, err := url.Parse(base)
	require.NoError(t, err)
	known := b.client.Jar.Cookies(at)
	for range 5 {
		b.client.Jar, err = cookiejar.New(nil)
		require.NoError(t, err)
		for _, c := range known {
			if strings.Contains(c.Name, "session") {
				c.Path, c.Secure = "/", true
				b.client.Jar.SetCookies(at, []*http.Cookie{c})
			}
		}
		b.email("send", "")
	}
	b.shows(200, "in an hour")
	w.sendMails()
	require.Len(t, w.mails.Mails(), 2)
}

// What others have, too, is not offered, and no link says what is not so.
func TestNoticesOfVerifications(t *testing.T) {
	t.Parallel()
	w, b := unverified(t)
	for _, done := range []string{"code_sent", "email_verified"} {
		require.NotContains(t, b.get(base+"?done="+done).shows(200, "Change password").body, `class="notice`)
	}
	b.email("nonsense", "").shows(400, "This link does not work")
	b.email("send", "")
	w.code(1)
	for range 5 {
		b.email("verify", "BBBB-BBBB")
	}
	require.NotContains(t, b.body, "Code from the email", "no code can be right any more")
	w, b = withMails(t), nil
	w.users["ann"].record["email_verified"] = false
	w.users["ann"].record["shared_contacts"] = []string{"email"}
	b = w.browser().get(base).signIn("ann", password).shows(200, "Change password")
	require.NotContains(t, b.body, "not verified")
	b.email("send", "").shows(200, "cannot be verified")
}

// While the users service does not answer, no try counts, and the code stays.
func TestVerificationWhileUsersAreAway(t *testing.T) {
	t.Parallel()
	w, b := unverified(t)
	b.email("send", "")
	code := w.code(1)
	w.change(func() { w.away["users"] = true })
	for range 7 {
		b.email("verify", code).shows(200, "is not answering")
	}
	w.change(func() { w.away["users"] = false })
	b.email("verify", code).shows(200, "The address is verified")
}

// A browser gets five codes for an address in an hour. Without a mail server nothing is offered.
func TestVerificationsThatAreNotOffered(t *testing.T) {
	t.Parallel()
	w, b := unverified(t)
	for n := range 5 {
		b.email("send", "")
		w.code(n + 1)
	}
	b.email("send", "").shows(200, "in an hour")
	w.Clock.Advance(time.Hour)
	b.email("send", "").shows(200, "The code is on its way")

	w = newWorld(t)
	w.users["ann"].record["email_verified"] = false
	b = w.browser().get(base).signIn("ann", password).shows(200, "Change password")
	require.NotContains(t, b.body, "not verified")
	b.email("send", "").shows(200, "cannot be verified")
	w = withMails(t)
	require.NotContains(t, w.browser().get(base).signIn("ann", password).shows(200, "Change password").body, "verified")
}
