package signin_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
)

// Attacks on second factors that worked once, or nearly did.

// addBob adds a colleague with an account of his own.
func (w *world) addBob() {
	w.change(func() {
		bob := ann(w.Clock.Now())
		bob.record["id"], bob.record["username"], bob.record["email"] = "21", "bob", "bob@acme.test"
		w.users["bob"] = bob
	})
}

// deletesFirst deletes the oldest factor, as an administrator does, and waits until what rests on it has ended.
func (w *world) deletesFirst(sessionsLeft int) {
	w.t.Helper()
	w.As("acme", auth.UsersSecrets).Delete("/v1/factors/"+w.factors()[0]["id"].(string), nil).OK(nil)
	wait.Until(w.t, func() bool { return len(w.sessions()) == sessionsLeft })
}

// withFactor is a world with mails in which ann has an app.
func withFactor(t testing.TB) (*world, *phone) {
	t.Helper()
	w := withMails(t)
	b := w.browser().get(base).signIn("ann", password)
	p, _ := b.factor("add", "").setUp("ann's")
	b.press("kept").shows(200, "The second factor is set up")
	return w, p
}

// A colleague who reads ann's mail and has an account of his own does not add his app to hers.
func TestAnAppForSomebodyElse(t *testing.T) {
	t.Parallel()
	w, _ := withFactor(t)
	w.addBob()
	b := w.browser().get(base).signIn("bob", password)
	b.factor("add", "").chooses("otp")
	b.send(url.Values{"action": {"forgot"}, "login_name": {"ann"}})
	at := b.at
	b.post(at, url.Values{"action": {"send-code"}, "login_name": {"ann"}})
	b.post(at, url.Values{"action": {"code"}, "code": {w.code(1)}})
	for _, action := range []string{"forgot", "back", "continue", "set-up"} {
		b.post(at, url.Values{"action": {action}, "method": {"otp"}})
	}
	if strings.Contains(b.body, "add-factor") {
		b.post(at, url.Values{"action": {"add-factor"}, "code": {b.phone().code()}, "name": {"bob's"}})
	}
	for _, f := range w.factors() {
		require.False(t, f["name"] == "bob's" && f["user_id"] == "20")
	}
}

// What was begun for one person is not shown to another who goes on in the same flow.
func TestASetUpOfSomebodyElse(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	w.addBob()
	w.demands("portal", func(c *questions.Client) { c.MFA = true })
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).chooses("otp")
	at := b.at
	b.post(at, url.Values{"action": {"forgot"}})
	b.post(at, url.Values{"action": {"send-code"}, "login_name": {"bob"}})
	b.post(at, url.Values{"action": {"code"}, "code": {w.code(1)}})
	b.choose("a new long password").shows(200, "Set up a second factor")
}

// Recovery codes stay on the page until they are kept, whatever forms come from before.
func TestCodesThatWait(t *testing.T) {
	t.Parallel()
	w := strict(t)
	w.addBob()
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	_, codes := b.setUp("Phone")
	require.Equal(t, "no-store", b.page.Header.Get("Cache-Control"))
	b.tab().signIn("ann", "wrong")
	b.tab().signIn("bob", password)
	b.tab().press("another")
	require.Equal(t, codes, b.get(b.at).codes())
	require.Empty(t, w.browser().get(b.at).codes(), "of another browser")
	at := b.at
	b.press("kept").answered(callback)
	require.Empty(t, b.get(at).codes())
}

// A factor that was deleted after it was shown opens nothing any more.
func TestADeletedFactorOpensNothing(t *testing.T) {
	t.Parallel()
	stolen := func(t *testing.T) (*world, *phone) {
		w, p := withFactor(t)
		own := w.browser().get(base).signIn("ann", password).prove(p.next())
		own.factor("add", "").setUp("new")
		w.admin().Post("/v1/sessions/end", object{"user_ids": []string{"20"}}).OK(nil)
		return w, p
	}
	t.Run("a new password", func(t *testing.T) {
		t.Parallel()
		w, p := stolen(t)
		thief := w.browser().forgets("ann").enter(w.code(1)).prove(p.next()).shows(200, "Choose a new password")
		w.deletesFirst(0)
		thief.choose("a thief's password").shows(200, "Show that it is you")
		require.Equal(t, password, w.users["ann"].password)
	})
	for _, task := range []string{"add", "renew"} {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			w, p := stolen(t)
			thief := w.browser().get(base).signIn("ann", password).prove(p.next()).factor(task, "")
			w.deletesFirst(0)
			for _, fields := range []url.Values{
				{"action": {"set-up"}, "method": {"otp"}}, {"action": {"new-codes"}}, {"action": {"kept"}},
			} {
				thief.send(fields)
				require.Empty(t, thief.codes())
				require.NotContains(t, thief.body, "add-factor")
			}
		})
	}
	t.Run("a code that was given before", func(t *testing.T) {
		t.Parallel()
		w, p, codes := enrolled(t)
		rp := w.relyingParty("portal")
		rp.config.Scopes = []string{"openid", "offline_access"}
		b := w.browser().get(w.authorize("wiki")).signIn("ann", password).prove(p.next())
		b.get(rp.config.AuthCodeURL("s"))
		b.press("agree")
		code := b.answered(callback).Get("code")
		b.get(w.authorize("wiki", "prompt", "login")).signIn("ann", password).prove(codes[0]).
			answered("https://wiki.test/cb")
		b.get(base).factor("add", "").setUp("new phone")
		w.deletesFirst(1)
		_, err := rp.config.Exchange(rp.ctx, code)
		require.Error(t, err)
	})
	t.Run("a grant that goes on", func(t *testing.T) {
		t.Parallel()
		w, p, _ := enrolled(t)
		b := w.browser().get(w.authorize("wiki")).signIn("ann", password).prove(p.next())
		rp := w.relyingParty("portal")
		token := w.offline(rp, b)
		require.NoError(t, rp.refresh(token))
		w.deletesFirst(0)
		require.Error(t, rp.refresh(token))
		wait.Until(t, func() bool { return len(w.grants("")) == 0 })
	})
}

// A password that has to be changed is changed, and a mailed code signs nobody in, also where a step takes an app
// instead of a password.
func TestNothingGoesPastThePassword(t *testing.T) {
	t.Parallel()
	either := func(t *testing.T) (*world, *phone) {
		w := withMails(t)
		w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{{
			Required: true,
			Methods:  []questions.LoginMethod{{Code: "pw", Type: "password"}, {Code: "otp", Type: "otp"}},
		}}}
		b := w.browser().get(base).signIn("ann", password)
		p, _ := b.factor("add", "").setUp("")
		b.press("kept").shows(200, "The second factor is set up")
		return w, p
	}
	tries := func(b *browser) {
		b.w.t.Helper()
		at := b.at
		for _, action := range []string{
			"kept", "factor", "set-up", "add-factor", "new-codes", "continue", "back", "agree", "account", "code",
			"forgot", "kept", "send-code", "kept",
		} {
			b.post(at, url.Values{"action": {action}, "method": {"otp"}, "login_name": {"ann"}})
			require.NotContains(b.w.t, b.at, callback, action)
		}
	}
	t.Run("to be changed", func(t *testing.T) {
		t.Parallel()
		w, p := either(t)
		w.change(func() { w.users["ann"].mustChange = true })
		tries(w.browser().get(w.authorize("portal")).signIn("ann", password).prove(p.next()))
	})
	t.Run("forgotten", func(t *testing.T) {
		t.Parallel()
		w, p := either(t)
		tries(w.browser().forgets("ann").enter(w.code(1)).prove(p.next()))
	})
}

// Whoever has shown a factor after a mailed code and was too slow can have another code.
func TestTooSlowForANewPassword(t *testing.T) {
	t.Parallel()
	w, p := withFactor(t)
	lost := w.browser().forgets("ann").enter(w.code(1)).prove(p.next()).shows(200, "Choose a new password")
	w.Clock.Advance(11 * time.Minute)
	lost.choose("another horse").shows(200, "Forgot your password?")
}

// Whoever knows the password cannot keep the person out of a browser that is known, and guesses less and less.
func TestGuessesOfWhoKnowsThePassword(t *testing.T) {
	t.Parallel()
	w, p, _ := enrolled(t)
	mine := w.browser().get(w.authorize("portal")).signIn("ann", password).prove(p.next())
	mine.answered(callback)
	guesses, begun := 0, w.Clock.Now()
	other := w.browser().get(w.authorize("portal")).signIn("ann", password)
	for w.Clock.Now().Sub(begun) < 48*time.Hour {
		if other.prove("123456"); strings.Contains(other.body, "That code is not right") {
			guesses++
		}
		if !strings.Contains(other.body, "Show that it is you") { // the flow has ended
			other = w.browser().get(w.authorize("portal")).signIn("ann", password)
		}
		if strings.Contains(other.body, "too many wrong codes") {
			w.Clock.Advance(15 * time.Minute)
		}
	}
	require.Less(t, guesses, 60)
	mine.get(w.authorize("portal", "prompt", "login")).signIn("ann", password).prove(p.next()).answered(callback)
	for range 5 {
		mine.get(w.authorize("portal", "prompt", "login")).signIn("ann", password).prove("123456")
	}
	mine.prove(p.next()).shows(200, "too many wrong codes") // guesses in a known browser are guesses, too
}

// A session that ends while its password is changed takes its factor with it.
func TestASessionEndsDuringAChange(t *testing.T) {
	t.Parallel()
	w, p, _ := enrolled(t)
	b := w.browser().get(base).signIn("ann", password).prove(p.next()).shows(200, "My account")
	id := w.newest()["id"].(string)
	w.change(func() { w.afterVerify = func() { w.admin().Delete("/v1/sessions/"+id, nil).OK(nil) } })
	const next = "another horse"
	b.post(base+"/password", url.Values{"old": {password}, "password": {next}, "repeated": {next}})
	w.change(func() { w.afterVerify = nil })
	b.get(base)
	require.NotContains(t, b.body, "My account")
}

// A page of the own page's tasks is good for a quarter of an hour.
func TestATaskThatWaits(t *testing.T) {
	t.Parallel()
	w, p, _ := enrolled(t)
	b := w.browser().get(base).signIn("ann", password).prove(p.next())
	w.Clock.Advance(6 * time.Minute)
	b.factor("renew", "").signIn("ann", password).prove(p.next()).shows(200, "New recovery codes")
	w.Clock.Advance(16 * time.Minute)
	b.press("new-codes").shows(200, "Username, email or mobile number")
	require.Empty(t, b.codes())
	b.signIn("ann", password).prove(p.next()).press("new-codes")
	require.Len(t, b.codes(), 10)
}

// Whoever has no factor renews nothing, and reads so.
func TestNothingToRenew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(base).signIn("ann", password).factor("renew", "").press("new-codes").shows(200, "My account")
	require.NotContains(t, b.body, "You have new recovery codes")
}

// A thief who knows the password and waits at the page of the set-up adds nothing once the person has a factor, and
// only one of many who set up the first one at once does.
func TestFirstFactorsAtOnce(t *testing.T) {
	t.Parallel()
	w := strict(t)
	var all []*browser
	codes := map[*browser]string{}
	for range 6 {
		b := w.browser().get(w.authorize("portal")).signIn("ann", password).chooses("otp")
		codes[b], all = b.phone().code(), append(all, b)
	}
	together(all[1:], func(b *browser) { b.send(url.Values{"action": {"add-factor"}, "code": {codes[b]}}) })
	require.Len(t, w.factors(), 2)
	all[0].send(url.Values{"action": {"add-factor"}, "code": {codes[all[0]]}}).shows(200, "Show that it is you")
	require.Len(t, w.factors(), 2)
}

// Another person who signs in for a task does nothing.
func TestATaskOfSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addBob()
	b := w.browser().get(base).signIn("ann", password)
	w.Clock.Advance(6 * time.Minute)
	b.factor("add", "").signIn("bob", password).shows(200, "Nothing has changed")
	require.Empty(t, w.factors())
}

// A sign-in that is overtaken between its forms by a new password or by being disabled comes to nothing.
func TestOvertakenBetweenForms(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world){
		"disabled": func(w *world) {
			w.change(func() { w.users["ann"].record["status"] = "0" })
			w.tellUser("disabled", w.users["ann"])
		},
		"a new password": func(w *world) {
			w.change(func() { w.users["ann"].record["time_password_changed"] = w.Clock.Now() })
			w.tellUser("password_changed", w.users["ann"])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p, _ := enrolled(t)
			half := w.browser().get(w.authorize("portal")).signIn("ann", password)
			w.Clock.Advance(time.Second)
			change(w)
			wait.Until(t, func() bool { return len(w.sessions()) == 0 })
			half.prove(p.next()).shows(200, "Username, email or mobile number")
			require.Empty(t, w.sessions())
		})
	}
}

// A step-up ends with its session, also when another person takes the browser over.
func TestTheSessionOfAStepUpIsAnothers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addBob()
	b := w.browser().get(base).signIn("ann", password)
	p, _ := b.factor("add", "").setUp("")
	b.press("kept")
	w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{
		{Required: true, Methods: []questions.LoginMethod{{Code: "pw", Type: "password"}}},
	}}
	w.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	w.demands("portal", func(c *questions.Client) { c.MFA = true })
	w.tell("application", "updated", "9", 2, object{"id": "9"})
	var mine *browser
	wait.Until(t, func() bool {
		mine = w.browser().get(w.authorize("wiki")).signIn("ann", password)
		return strings.HasPrefix(mine.at, "https://wiki.test/cb") &&
			strings.Contains(mine.get(w.authorize("portal")).body, "Show that it is you")
	})
	mine.prove("000000").shows(200, "not right")
	at := mine.at
	mine.tab().get(w.authorize("wiki", "prompt", "login")).signIn("bob", password).answered("https://wiki.test/cb")
	mine.post(at, url.Values{"action": {"factor"}, "code": {p.next()}})
	require.NotContains(t, mine.at, callback)
	for _, f := range []url.Values{{"action": {"continue"}}, {"action": {"set-up"}, "method": {"otp"}}} {
		mine.post(at, f)
		require.Equal(t, 200, mine.page.StatusCode)
	}
	if strings.Contains(mine.body, "add-factor") {
		mine.send(url.Values{"action": {"add-factor"}, "code": {mine.phone().code()}, "name": {"bob's"}})
		for _, f := range w.factors() {
			require.False(t, f["name"] == "bob's" && f["user_id"] == "20")
		}
	}
}

// With the password alone no pair of forms adds a factor, signs in, or breaks a page.
func TestPairsOfForms(t *testing.T) {
	t.Parallel()
	w, _, _ := enrolled(t)
	w.addBob()
	actions := []string{
		"kept", "set-up", "add-factor", "new-codes", "continue", "back", "forgot", "another", "agree", "account",
		"sign-in", "bob", "factor", "passkey",
	}
	for _, first := range actions {
		for _, second := range actions {
			b := w.browser().get(base).signIn("bob", password)
			b.get(w.authorize("portal", "prompt", "login")).signIn("ann", password).shows(200, "Show that it is you")
			at := b.at
			for _, action := range []string{first, second, "set-up", "kept"} {
				form := url.Values{"action": {action}, "login_name": {"ann"}, "password": {password}, "code": {"ABCD"},
					"method": {"otp"}}
				if action == "bob" {
					form.Set("action", "sign-in")
					form.Set("login_name", "bob")
				}
				b.post(at, form)
				require.Less(t, b.page.StatusCode, 500, "%s %s %s", first, second, action)
			}
		}
	}
	for _, s := range w.sessions() {
		require.True(t, s.(object)["user_id"] == "21" || s.(object)["acr"] == "urn:idplatform:aal:2")
	}
	require.Len(t, w.factors(), 2)
}

// A passkey of one person goes with nothing that another has shown in the flow before.
func TestAPasskeyAfterSomebodyElse(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	w.addBob()
	w.demands("portal", func(c *questions.Client) { c.MFA = true })
	b := w.browser().get(w.authorize("wiki")).signIn("bob", password)
	b.get(w.authorize("portal")).chooses("otp").shows(200, "Set up an authenticator app")
	w.admin().Post("/v1/sessions/end", object{"user_ids": []string{"20", "21"}}).OK(nil)
	b.get(b.at).shows(200, "Sign in with a passkey").uses(a).answered(callback)
	require.Equal(t, []any{"20", []any{"hwk", "mfa", "user"}}, []any{w.newest()["user_id"], w.newest()["amr"]})
}

// A form of an application that is switched off meanwhile signs nobody in: nothing is known of what it demands.
func TestAFormOfAnApplicationThatIsDisabled(t *testing.T) {
	t.Parallel()
	w, _, _ := enrolled(t)
	b := w.browser().get(w.authorize("portal"))
	w.demands("portal", func(c *questions.Client) { c.Enabled = false })
	w.tell("application", "disabled", "9", 2, object{"id": "9"})
	wait.Until(t, func() bool { return w.browser().get(w.authorize("portal")).page.StatusCode == 400 })
	b.signIn("ann", password).shows(400, "The application is not available")
	require.Len(t, w.sessions(), 1)
	b.get(w.authorize("wiki")).shows(200, "Username, email or mobile number")
}

// Recovery codes take the place of a factor that the person has, and are not asked for once they are used up.
func TestRecoveryCodesAreNotUsedUp(t *testing.T) {
	t.Parallel()
	w, p, codes := enrolled(t)
	w.demands("portal", func(c *questions.Client) { c.MFAMethods = []string{"webauthn"} })
	w.tell("application", "updated", "9", 3, object{"id": "9"})
	wait.Until(t, func() bool {
		b := w.browser().get(w.authorize("portal")).signIn("ann", password).prove(p.next())
		return strings.Contains(b.body, "Set up a second factor")
	})
	for i, code := range codes {
		w.Clock.Advance(time.Minute)
		page := w.browser().get(w.authorize("wiki")).signIn("ann", password).shows(200, "Recovery code")
		page.prove(code).answered("https://wiki.test/cb")
		require.EqualValues(t, len(codes)-1-i, w.factors()[1]["codes_left"])
	}
	w.Clock.Advance(time.Minute)
	last := w.browser().get(w.authorize("wiki")).signIn("ann", password)
	require.NotContains(t, last.body, "Recovery code")
	last.prove(p.next()).answered("https://wiki.test/cb")
}

// A password is taken where it steps up a session that has begun with a passkey, also where nobody begins with one.
func TestAPasswordStepsUpAPasskey(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{UserNotVerified: true})
	var b *browser
	w.asks(func() bool {
		w.Clock.Advance(time.Second)
		b = w.browser().get(w.authorize("wiki")).uses(a)
		return strings.HasPrefix(b.at, "https://wiki.test/cb")
	}, []string{"webauthn"})
	w.demands("portal", func(c *questions.Client) { c.MFA = true })
	b.get(w.authorize("portal")).shows(200, `name="password"`).signIn("ann", password).answered(callback)
	w.addBob()
	thief := w.browser().get(w.authorize("wiki"))
	w.Clock.Advance(time.Second)
	require.NotContains(t, thief.signIn("bob", password).body, "Set up a second factor")
}

// What has become too old for max_age while the person sets up a factor is shown anew, once.
func TestMaxAgeDuringASetUp(t *testing.T) {
	t.Parallel()
	w, p, _ := enrolled(t)
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).prove(p.next())
	b.answered(callback)
	w.Clock.Advance(30 * time.Second)
	b.get(w.authorize("wiki", "max_age", "60", "claims", `{"id_token":{"acr":{"essential":true,"value":"phr"}}}`))
	at := b.chooses("webauthn").shows(200, "Set up a passkey").at
	w.Clock.Advance(50 * time.Second)
	b.get(at).shows(200, "Username, email or mobile number").signIn("ann", password)
	b.shows(200, "Show that it is you").prove(p.next()).shows(200, "Set up a second factor")
}

// Each refusal is told, also of a second person in the same flow.
func TestRefusalsOfTwoPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addBob()
	w.refused["9"] = "not_granted"
	w.browser().get(w.authorize("portal")).signIn("ann", password).press("another").signIn("bob", password).
		shows(403, "You cannot open Portal")
	refused := map[string]bool{}
	w.EventsUntil(func(e stream.Event) bool {
		if e.Type == "idp.sign_in.refused" {
			refused[e.Actor] = true
		}
		return len(refused) == 2
	})
}

// Forms that no page takes do not fill the store.
func TestFormsWhereNobodyBeginsWithAPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{
		{Required: true, Methods: []questions.LoginMethod{{Code: "key", Type: "webauthn"}}},
	}}
	page, status := w.from("203.0.113.9").get(w.authorize("portal")), 0
	for range 400 {
		if status = page.tab().signIn("ann", "wrong").page.StatusCode; status != 200 {
			break
		}
	}
	require.Equal(t, 429, status)
}

// A consent that no page has asked for is none.
func TestAConsentThatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	w, _, _ := enrolled(t)
	w.change(func() {
		w.templates = map[string]questions.LoginTemplate{"simple": {Found: true, Steps: []questions.LoginStep{
			{Required: true, Methods: []questions.LoginMethod{{Code: "pw", Type: "password"}}},
		}}}
	})
	w.demands("portal", func(c *questions.Client) { c.SignIn.Consent = true })
	w.tell("application", "updated", "9", 2, object{"id": "9"})
	w.demands("wiki", func(c *questions.Client) { c.LoginTemplate = "simple" })
	thief := w.browser().get(w.authorize("wiki")).signIn("ann", password)
	thief.answered("https://wiki.test/cb")
	thief.get(w.authorize("portal")).shows(200, "Show that it is you").press("agree").shows(200, "Show that it is you")

	own := w.browser().get(w.authorize("wiki")).signIn("ann", password)
	w.Clock.Advance(6 * time.Minute)
	own.get(base).factor("add", "").press("agree")
	require.Empty(t, w.admin().Get("/v1/consents").Object()["items"])
}
