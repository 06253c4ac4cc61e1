package signin_test

import (
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
)

// withMails is a world whose tenant has a mail server.
func withMails(t testing.TB) *world {
	t.Helper()
	mails := mailtest.Start(t, mailtest.STARTTLS)
	w := newWorld(t)
	w.change(func() { w.mails = mails })
	return w
}

var mailedCode = regexp.MustCompile(`[BCDFGHJKMNPQRTVWXY346789]{4}-[BCDFGHJKMNPQRTVWXY346789]{4}`)

// code waits for the nth mail, and returns its code.
func (w *world) code(n int) string {
	w.t.Helper()
	w.sendMails()
	mails := w.mails.Wait(w.t, n)
	found := mailedCode.FindString(mails[n-1].Data)
	require.NotEmpty(w.t, found, "%s", mails[n-1].Data)
	return found
}

// sendMails carries out what is due now.
func (w *world) sendMails() {
	w.t.Helper()
	w.RunTask("send recovery codes")
	w.RunTask("send mails")
	w.RunTask("send invitations")
}

// advanceUntil lets time pass, with its attempts, until a condition holds.
func (w *world) advanceUntil(holds func() bool) {
	w.t.Helper()
	for n := 0; !holds(); n++ {
		require.Less(w.t, n, 100)
		w.sendMails()
		w.Clock.Advance(5 * time.Second)
	}
}

// told waits for the event about a message, and returns its reason.
func (w *world) told(event string, nth int) (reason string) {
	w.t.Helper()
	var record object
	n := 0
	w.EventsUntil(func(e stream.Event) bool {
		if e.Type != "idp."+event {
			return false
		}
		n++
		var data struct{ Record object }
		w.must(e.Read(&data))
		record = data.Record
		return n == nth
	})
	require.Equal(w.t, []any{"recovery", "20", "mail"}, []any{record["kind"], record["user_id"], record["channel"]})
	return record["reason"].(string)
}

// forgets asks for a code, on the page of an application's request.
func (b *browser) forgets(name string) *browser {
	b.w.t.Helper()
	b.get(b.w.authorize("portal")).shows(200, "Forgot your password?")
	b.send(url.Values{"action": {"forgot"}, "login_name": {name}}).shows(200, "We will email you a code")
	require.Contains(b.w.t, b.body, `value="`+name+`"`, "what was typed before")
	return b.send(url.Values{"action": {"send-code"}, "login_name": {name}}).shows(200, "Check your email")
}

func (b *browser) enter(code string) *browser {
	b.w.t.Helper()
	return b.send(url.Values{"action": {"code"}, "code": {code}})
}

func (b *browser) choose(password string) *browser {
	b.w.t.Helper()
	return b.send(url.Values{"action": {"new-password"}, "password": {password}, "repeated": {password}})
}

func TestAForgottenPassword(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	other := w.browser().get(w.authorize("portal")).signIn("ann", password)
	other.answered(callback)
	b := w.browser().forgets("ann")
	code := w.code(1)
	mail := w.mails.Mails()[0]
	require.Equal(t, "ann@acme.test", mail.To)
	require.Contains(t, mail.Data, "Hello Ann Lee,")
	require.NotContains(t, mail.Data, "http", "no link that a scanner follows")
	b.enter(" "+strings.ToLower(code)).shows(200, "The code is right")
	require.Len(t, w.sessions(), 1, "the code alone is no proof")
	b.choose("short").shows(200, "cannot be used")
	b.choose("a new battery staple").answered(callback)
	require.Equal(t, "a new battery staple", w.users["ann"].password)
	session := w.sessions()[0].(object)
	require.Equal(t, []any{"pwd"}, session["amr"])
	b.get(w.authorize("portal")).answered(callback)
	w.browser().get(w.authorize("portal")).signIn("ann", "a new battery staple").answered(callback)
}

// A code serves one flow, in one browser, once.
func TestACodeServesOnce(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	b := w.browser().forgets("ann")
	code := w.code(1)
	stranger := w.browser().forgets("ann")
	w.mails.Wait(t, 2)
	stranger.enter(code).shows(200, "not right, or it has expired")
	page := b.tab()
	b.enter(code).shows(200, "The code is right")
	page.enter(code).shows(200, "The code is right") // the flow's present step: nothing is proven again
	w.users["ann"].record["time_password_changed"] = w.Clock.Now().Add(time.Second)
	b.choose("a new battery staple").shows(200, "do not match") // somebody has set another password meanwhile
	b.get(b.at)
	require.Equal(t, password, w.users["ann"].password)
}

// A code ends when the person gets another mail address, or may not sign in any more.
func TestCodesOfPeopleWhoHaveChanged(t *testing.T) {
	t.Parallel()
	for member, value := range map[string]any{"email": "new@acme.test", "status": "0"} {
		t.Run(member, func(t *testing.T) {
			t.Parallel()
			w := withMails(t)
			b := w.browser().forgets("ann")
			code := w.code(1)
			w.change(func() { w.users["ann"].record[member] = value })
			b.enter(code).shows(200, "not right, or it has expired")
		})
	}
}

// While the users service does not answer, the code stays as it is.
func TestACodeWhileUsersAreAway(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	b := w.browser().forgets("ann")
	code := w.code(1)
	w.change(func() { w.away["users"] = true })
	for range 6 { // none of which counts
		b.enter(code).shows(503, "not answering")
		require.Contains(t, b.body, "Code from the email", "the form comes back")
	}
	w.change(func() { w.away["users"] = false })
	b.enter(code).shows(200, "The code is right")
}

// A code ends after ten minutes, five tries, or with a newer one of the flow.
func TestCodesEnd(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	b := w.browser().forgets("ann")
	first := w.code(1)
	require.NotContains(t, b.body, "Another code is on its way")
	b.send(url.Values{"action": {"send-code"}, "login_name": {"ann"}}).shows(200, "Another code is on its way")
	second := w.code(2)
	require.NotEqual(t, first, second)
	b.enter(first).shows(200, "not right, or it has expired")
	w.EventsUntil(func(e stream.Event) bool {
		return e.Type == "idp.sign_in.failed" && strings.Contains(string(e.Data), `"reason":"invalid_code"`)
	})
	for range 4 {
		b.enter("BBBB-BBBB").shows(200, "not right, or it has expired")
	}
	b.enter(second).shows(200, "not right, or it has expired") // the sixth try
	b.send(url.Values{"action": {"send-code"}, "login_name": {"ann"}})
	third := w.code(3)
	w.Clock.Advance(10 * time.Minute)
	b.enter(third).shows(200, "not right, or it has expired")
}

// What a stranger sees does not tell whether there is such a person, or whether the person may have a code.
func TestNobodyLearnsWhoIsThere(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	w.admin().Patch("/v1/sign-in/settings", object{"failures_per_minute": 1000}).OK(nil)
	w.users["bob"] = ann(w.Clock.Now())
	w.users["bob"].record["status"] = "0"
	pages := map[string]bool{}
	for _, name := range []string{"ann", "bob", "nobody"} {
		b := w.browser().forgets(name)
		if name == "ann" {
			w.code(1)
		}
		for range 7 {
			text := sealedRequest.ReplaceAllString(flowPath.ReplaceAllString(b.body, ""), "")
			pages[strings.NewReplacer(name, "", b.page.Header.Get("X-Request-Id"), "").Replace(text)] = true
			b.enter("BCDF-GHJK").shows(200, "not right, or it has expired")
		}
	}
	require.Len(t, pages, 2, "one before a wrong code, and one after it")
	require.Len(t, w.mails.Mails(), 1)
}

// Without a mail server, or where an application does not want it, nothing is offered and nothing is done.
func TestRecoveryThatIsNotOffered(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	portal := w.clients["portal"]
	portal.NoMailRecovery = true
	w.change(func() { w.clients["portal"] = portal })
	b := w.browser().get(w.authorize("portal")).shows(200, "to continue to Portal")
	require.NotContains(t, b.body, "Forgot")
	b.send(url.Values{"action": {"forgot"}, "login_name": {"ann"}}).shows(200, "to continue to Portal")
	b.send(url.Values{"action": {"send-code"}, "login_name": {"ann"}}).shows(200, "to continue to Portal")
	b.send(url.Values{"action": {"code"}, "code": {"BCDF-GHJK"}}).shows(200, "to continue to Portal")
	require.Contains(t, w.browser().get(w.authorize("wiki")).body, "Forgot")

	w = newWorld(t)
	b = w.browser().get(w.authorize("portal")).shows(200, "to continue to Portal")
	require.NotContains(t, b.body, "Forgot")
	b.send(url.Values{"action": {"send-code"}, "login_name": {"ann"}}).shows(200, "to continue to Portal")
	require.Zero(t, withMails(t).mails.Tried())
}

// One address gets five mails in an hour, whoever asks; a browser that its owner has used has five of its own.
func TestLimitsOfMails(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	w.admin().Patch("/v1/sign-in/settings", object{"failures_per_minute": 1000}).OK(nil)
	known := w.browser().get(w.authorize("portal")).signIn("ann", password)
	known.answered(callback)
	known.get("/logout").press("sign-out")
	strange := w.browser().forgets("ann")
	for n := 1; n < 5; n++ {
		w.code(n)
		strange.send(url.Values{"action": {"send-code"}, "login_name": {"ann"}})
	}
	w.code(5)
	strange.send(url.Values{"action": {"send-code"}, "login_name": {"ann"}}).shows(200, "Check your email")
	w.sendMails()
	require.Equal(t, "address_limit", w.told("message.refused", 1))
	known.forgets("ann")
	code := w.code(6)
	known.enter(code).shows(200, "The code is right")
	w.Clock.Advance(time.Hour)
	w.browser().forgets("ann")
	w.code(7)
}

// Strangers get so many mails of a tenant in an hour; known browsers go on.
func TestLimitOfAllMails(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	w.users["bob"] = ann(w.Clock.Now())
	w.users["bob"].record["id"], w.users["bob"].record["email"] = "21", "bob@acme.test"
	w.admin().Patch("/v1/sign-in/settings", object{"messages": object{"per_hour": 1}}).OK(nil)
	known := w.browser().get(w.authorize("portal")).signIn("ann", password)
	known.answered(callback)
	known.get("/logout").press("sign-out")
	w.browser().forgets("bob")
	w.code(1)
	w.browser().forgets("ann")
	w.sendMails()
	require.Equal(t, "tenant_limit", w.told("message.refused", 1))
	known.forgets("ann")
	w.code(2)
	w.Clock.Advance(time.Hour)
	w.browser().forgets("bob")
	w.code(3)
}

// A mail server that is away gets the mail when it is back; one that does not know the address ends it.
func TestMailServersThatFail(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	w.mails.Answer(func(string) error { return mailtest.Refused(451) })
	b := w.browser().forgets("ann")
	w.advanceUntil(func() bool { return w.mails.Tried() >= 2 })
	w.Clock.Advance(2 * time.Minute)
	w.mails.Answer(nil)
	w.advanceUntil(func() bool { return len(w.mails.Mails()) == 1 })
	b.enter(w.code(1)).shows(200, "The code is right")
	require.Contains(t, w.mails.Mails()[0].Data, "within 8 minutes", "it left later")

	w.mails.Answer(func(string) error { return mailtest.Refused(550) })
	w.browser().forgets("ann")
	w.sendMails()
	require.Equal(t, "address", w.told("message.failed", 1))
	w.mails.Answer(func(string) error { return mailtest.Refused(451) })
	w.browser().forgets("ann")
	tried := w.mails.Tried()
	for range 130 {
		w.sendMails()
		w.Clock.Advance(5 * time.Second)
	}
	require.Equal(t, tried+6, w.mails.Tried())
	require.Equal(t, "no_answer", w.told("message.failed", 2))
}

// The page says so where a service does not answer, and the person can go on when it is back.
func TestRecoveryWhileServicesAreAway(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	w.change(func() { w.away["users"] = true })
	b := w.browser().forgets("ann")
	w.change(func() { w.away["users"] = false })
	w.advanceUntil(func() bool { return len(w.mails.Mails()) == 1 })
	b.enter(w.code(1)).shows(200, "The code is right")
	w.change(func() { w.away["identity-sources"] = true })
	b = w.browser().forgets("ann")
	w.change(func() { w.away["identity-sources"] = false })
	w.advanceUntil(func() bool { return len(w.mails.Mails()) == 2 })
	b.enter(w.code(2)).shows(200, "The code is right")
}

// Codes are nowhere but in the mail: neither in the store nor in the log.
func TestCodesAreSecret(t *testing.T) {
	t.Parallel()
	var log basic.LogBuffer
	mails := mailtest.Start(t, mailtest.STARTTLS)
	w := newWorld(t, testkit.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		Level: slog.LevelDebug,
	}))})
	w.change(func() { w.mails = mails })
	mails.Answer(func(string) error { return mailtest.Refused(451) })
	b := w.browser().forgets("ann")
	w.sendMails()
	var stored []string
	for _, of := range []string{"messages", "recoveries", "flows"} {
		docs := slices.Collect(maps.Values(testkit.Stored(t, w.Service, "acme", of)))
		require.Len(t, docs, 1, of)
		stored = append(stored, docs...)
	}
	mails.Answer(nil)
	w.advanceUntil(func() bool { return len(mails.Mails()) == 1 })
	code := w.code(1)
	b.enter(code).shows(200, "The code is right")
	for _, text := range append(stored, log.String()) {
		require.NotContains(t, text, code)
		require.NotContains(t, text, strings.ReplaceAll(code, "-", ""))
	}
	require.Contains(t, log.String(), "an attempt has failed")
	require.NotContains(t, log.String(), "ann@acme.test", "no address is in the log")
}

// A person who goes back to the password can still enter the code.
func TestBackFromTheCode(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	b := w.browser().forgets("ann")
	code := w.code(1)
	page := b.tab()
	b.signIn("an", "wrong").shows(200, "do not match")
	require.Contains(t, b.body, "Forgot your password?")
	page.enter(code).shows(200, "The code is right")
	page.press("back").shows(200, "The code is right")
}

// A request beyond the limit leaves the code that the person has.
func TestAnotherCodeBeyondTheLimit(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	w.admin().Patch("/v1/sign-in/settings", object{"messages": object{"per_hour_of_address": 1}}).OK(nil)
	b := w.browser().forgets("ann")
	code := w.code(1)
	b.send(url.Values{"action": {"send-code"}, "login_name": {"ann"}}).shows(200, "Check your email")
	w.sendMails()
	b.enter(code).shows(200, "The code is right")
}

// After the right code there are ten minutes for the new password, and the person must stay as they were.
func TestNewPasswordsThatComeTooLate(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"later":             func(w *world) { w.Clock.Advance(10 * time.Minute) },
		"with another mail": func(w *world) { w.change(func() { w.users["ann"].record["email"] = "new@acme.test" }) },
		"disabled":          func(w *world) { w.change(func() { w.users["ann"].record["status"] = "0" }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withMails(t)
			b := w.browser().forgets("ann")
			b.enter(w.code(1)).shows(200, "The code is right")
			change(w)
			b.choose("a new battery staple").shows(200, "not right, or it has expired")
			require.Equal(t, password, w.users["ann"].password)
			require.Empty(t, w.sessions())
		})
	}
}

// Many people of one office may ask at once; strangers cannot ask without end by inventing tenants.
func TestRequestsOfAnOffice(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	known := w.browser().get(w.authorize("portal")).signIn("ann", password)
	known.answered(callback)
	known.get("/logout").press("sign-out")
	accepted := 0
	for ; accepted < 500; accepted++ { // there is room again every five seconds
		b := w.browser().get(w.authorize("portal")).send(url.Values{"action": {"forgot"}}).
			send(url.Values{"action": {"send-code"}, "login_name": {"nobody"}})
		if b.page.StatusCode == http.StatusTooManyRequests {
			b.shows(429, "too many attempts")
			break
		}
		b.shows(200, "Check your email")
	}
	require.GreaterOrEqual(t, accepted, 60)
	require.Less(t, accepted, 500)
	known.forgets("ann")
	known.enter("BCDF-GHJK").shows(200, "not right, or it has expired")
}

// A connection that cannot work takes no page away.
func TestPagesWithABadMailConnection(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	w.change(func() { w.mails.CA = "not a certificate" })
	b := w.browser().get(w.authorize("portal")).shows(200, "Sign in")
	require.NotContains(t, b.body, "Forgot")
	b.signIn("ann", password).answered(callback)
}

// Chinese input methods write letters as wide as signs.
func TestWideCodes(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	b := w.browser().forgets("ann")
	b.enter(strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r + 0xfee0
		}
		return r
	}, w.code(1))).shows(200, "The code is right")
}

// The look-up of a person is tried again for ten minutes. Then an event says that it has failed.
func TestRequestsThatNobodyCanLookUp(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	w.change(func() { w.away["users"] = true })
	w.browser().forgets("ann")
	for range 110 {
		w.sendMails()
		w.Clock.Advance(5 * time.Second)
	}
	w.change(func() { w.away["users"] = false })
	w.advanceUntil(func() bool { return len(w.mails.Mails()) == 1 })
	w.change(func() { w.away["users"] = true })
	w.browser().forgets("ann")
	for range 125 {
		w.sendMails()
		w.Clock.Advance(5 * time.Second)
	}
	require.Len(t, w.mails.Mails(), 1)
	w.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.message.failed" })
}

// The tenant's mail server is dialled by the rules for what tenants name.
func TestMailServersOfTheNeighbours(t *testing.T) {
	t.Parallel()
	mails := mailtest.Start(t, mailtest.STARTTLS)
	w := newWorld(t, testkit.Options{Dialer: outbound.NewDialer(outbound.Config{})})
	w.change(func() { w.mails = mails })
	problem := w.admin().Post(messagesPath+"/test", object{"kind": "recovery", "to": "you@acme.test"}).
		Problem(http.StatusConflict, "invalid_state")
	require.Contains(t, problem.Detail, "private")
	require.Zero(t, mails.Tried())
}
