package signin_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
)

// wikiCallback is where the wiki gets its answers.
const wikiCallback = "https://wiki.test/cb"

const day = 24 * time.Hour

// secondStep is a world whose template asks for a password, and then for a second step.
func secondStep(t testing.TB, step questions.LoginStep, options ...testkit.Options) *world {
	t.Helper()
	w := newWorld(t, options...)
	if len(step.Methods) == 0 {
		step.Methods = []questions.LoginMethod{{Code: "otp", Type: "otp"}}
	}
	w.template = questions.LoginTemplate{Found: true, Code: "staff", Steps: []questions.LoginStep{
		{Required: true, Methods: []questions.LoginMethod{{Code: "pwd", Type: "password"}}, Enrol: "demand"}, step,
	}}
	return w
}

func TestAFactorIsOffered(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Enrol: questions.EnrolOffer})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.shows(200, "You can also set one up later").shows(200, "Not now")
	require.Empty(t, w.sessions())
	b.chooses("otp").shows(200, "Set up an authenticator app").shows(200, "Not now")
	b.press("later").answered(callback)
	require.Equal(t, "urn:idplatform:aal:1", w.newest()["acr"])
	b.get(w.authorize("wiki")).answered(wikiCallback)
	w.browser().get(w.authorize("portal")).signIn("ann", password).answered(callback)

	w.Clock.Advance(30*day + time.Second)
	b = w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Not now")
	p, _ := b.setUp("")
	require.NotContains(t, b.body, "Not now")
	b.press("kept").answered(callback)
	require.Equal(t, "urn:idplatform:aal:2", w.newest()["acr"])

	b = w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Show that it is you")
	b.press("later").shows(200, "Show that it is you")
	b.prove(p.next()).answered(callback)
}

// Nobody is kept by an offer: not a program that asks without showing a page, and not a person who has lost a factor.
func TestAnOfferKeepsNobody(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).arrives(callback)
	b.factor("add", "").setUp("Phone")
	b.press("kept")

	w.change(func() {
		w.template.Steps[1].Enrol = questions.EnrolOffer
		w.template.Steps[1].Methods = []questions.LoginMethod{{Code: "key", Type: "webauthn"}}
	})
	w.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	b.untilShows(w.authorize("portal"), "Not now")
	b.get(w.authorize("portal", "prompt", "none")).answered(callback)

	b = w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Not now")
	b.chooses("webauthn").shows(200, "Show that it is you").shows(200, "Not now")
	b.send(url.Values{"action": {"add-factor"}, "passkey": {"{}"}}).shows(200, "Show that it is you")
	require.Len(t, w.factors(), 2)
	b.press("later").answered(callback)
}

// A running session goes on until the days of grace are over, and is asked once a day meanwhile.
func TestGrace(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Required: true, Enrol: questions.EnrolDemand, GraceDays: 7})
	until := w.Clock.Now().Add(7 * day).Std().Format(time.DateOnly)
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.shows(200, "asks for a second factor from "+until+" on").press("later").answered(callback)
	b.get(w.authorize("wiki")).answered(wikiCallback)

	w.Clock.Advance(day + time.Second)
	b = w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "from "+until+" on")
	b.press("later").answered(callback)
	w.Clock.Advance(6*day - time.Minute)
	b = w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "from "+until+" on")
	b.get(w.authorize("portal", "prompt", "none")).answered(callback)
	b = w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.press("later").answered(callback)
	b.get(w.authorize("wiki")).answered(wikiCallback)

	w.Clock.Advance(time.Minute)
	b.get(w.authorize("wiki")).shows(200, "Wiki asks for more than a password")
	require.NotContains(t, b.body, "Not now")
	b.press("later").shows(200, "Wiki asks for more than a password")
	b.setUp("")
	b.press("kept").answered(wikiCallback)
}

// A session that began before the step is asked for it, too; putting it off needs no new sign-in.
func TestARunningSessionPutsOff(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Enrol: questions.EnrolOff})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).arrives(callback)
	w.change(func() {
		w.template.Steps[1].Required, w.template.Steps[1].Enrol = true, questions.EnrolDemand
		w.template.Steps[1].GraceDays = 1
	})
	w.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	b.untilShows(w.authorize("wiki"), "Not now")
	b.press("later").answered(wikiCallback)
	require.Len(t, w.sessions(), 1)
	w.Clock.Advance(time.Hour)
	b.get(w.authorize("wiki")).answered(wikiCallback)
}

func TestNobodySetsUpAFactorAtTheStep(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Required: true, Enrol: questions.EnrolOff})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.shows(403, "You can set one up on your own page")
	b.chooses("otp").shows(403, "You can set one up on your own page")
	require.Empty(t, w.sessions())
}

// A step is there where its condition holds.
func TestConditionsOfSteps(t *testing.T) {
	t.Parallel()
	for when, asks := range map[string]bool{
		`"company/rd-20" in groups`:                          true,
		`"company/rd-21" in groups`:                          false,
		`user.email.endsWith("@acme.test")`:                  true,
		`user.username == "bob"`:                             false,
		`user.nothing`:                                       true,
		`!cidr("10.0.0.0/8").containsIP(address)`:            false,
		`cidr("10.0.0.0/8").containsIP(address)`:             true,
		`application.client_id == "portal"`:                  true,
		`application.id == "8"`:                              false,
		`"urn:idplatform:aal:2" in acr`:                      false,
		`!known_browser`:                                     true,
		`application.category == "1" && groups.size() == 99`: false,
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := secondStep(t, questions.LoginStep{Required: true, Enrol: questions.EnrolDemand, When: when})
			b := w.from("10.1.2.3").get(w.authorize("portal")).signIn("ann", password)
			if asks {
				b.shows(200, "Portal asks for more than a password")
				return
			}
			b.answered(callback)
		})
	}
}

// A condition that must be decided by another service is not left out while that does not answer.
func TestAConditionNeedsItsAnswer(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{
		Required: true, Enrol: questions.EnrolDemand, When: `"company/hr" in groups`,
	})
	w.change(func() { w.away["organization"] = true })
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(503, "not answering")
	require.Empty(t, w.sessions())
	w.change(func() { w.away["organization"] = false })
	b.get(b.at).shows(200, "You have shown that it is you").press("kept").answered(callback)
}

// A browser is known once its person has signed in there with two factors: a password that somebody else knows makes
// no browser known. That ends after 90 days, and with the factor.
func TestKnownBrowsers(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{
		Required: true, Enrol: questions.EnrolDemand, When: `!known_browser && application.client_id != "wiki"`,
	})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	p, _ := b.setUp("")
	b.press("kept").answered(callback)
	b.get("/logout").press("").shows(200, "signed out")
	b.get(w.authorize("portal")).signIn("ann", password).answered(callback)
	require.Equal(t, "urn:idplatform:aal:1", w.newest()["acr"])

	thief := w.browser().get(w.authorize("wiki")).signIn("ann", password).arrives(wikiCallback)
	thief.get(w.authorize("portal")).shows(200, "Show that it is you")

	w.Clock.Advance(90 * day)
	b.get(w.authorize("portal")).signIn("ann", password).shows(200, "Show that it is you")
	b.prove(p.next()).answered(callback)
	w.Clock.Advance(day)
	b.get(w.authorize("portal")).signIn("ann", password).answered(callback)
	w.Clock.Advance(time.Minute)
	w.As("acme", auth.UsersSecrets).Delete("/v1/factors/"+w.factors()[0]["id"].(string), nil).OK(nil)
	wait.Until(t, func() bool {
		b.get(w.authorize("portal", "prompt", "login")).signIn("ann", password)
		return strings.Contains(b.body, "Portal asks for more than a password")
	})
}

// arrives is answered, for the browser.
func (b *browser) arrives(callback string) *browser {
	b.w.t.Helper()
	b.answered(callback)
	return b
}

// untilShows gets an address until the page has a text.
func (b *browser) untilShows(address, text string) {
	b.w.t.Helper()
	wait.Until(b.w.t, func() bool { return strings.Contains(b.get(address).body, text) })
}

func methodOf(kind, policy string) questions.LoginMethod {
	return questions.LoginMethod{Code: kind, Type: kind, Policy: json.RawMessage(policy)}
}

// The policy of a method says what the codes of a new app look like; apps that are there stay as they are.
func TestPolicyOfApps(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{
		Required: true, Enrol: questions.EnrolDemand,
		Methods: []questions.LoginMethod{methodOf("otp", `{"digits":8,"period":60}`)},
	})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).chooses("otp")
	p := b.shows(200, "8 digits; the app shows another code every 60 seconds").phone()
	require.Contains(t, html.UnescapeString(b.body), "&digits=8&period=60")
	code := func() string {
		code, err := totp.GenerateCodeCustom(p.key, w.Clock.Now().Std(), totp.ValidateOpts{Digits: 8, Period: 60})
		w.must(err)
		return code
	}
	b.send(url.Values{"action": {"add-factor"}, "code": {p.code()}}).shows(200, "not right")
	b.send(url.Values{"action": {"add-factor"}, "code": {code()}}).press("kept").answered(callback)

	w.change(func() { w.template.Steps[1].Methods[0].Policy = nil })
	w.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	w.Clock.Advance(time.Minute)
	b = w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.prove(p.code()).shows(200, "not right")
	b.prove(code()).answered(callback)
}

// Where user verification is required, a passkey that has not verified its user does not count, wherever it was shown.
func TestPolicyOfPasskeys(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{UserNotVerified: true})
	w.change(func() {
		policy := `{"user_verification":"required","attestation":"direct"}`
		w.templates = map[string]questions.LoginTemplate{"strict": {
			Found: true, Code: "strict", Steps: []questions.LoginStep{{
				Required: true, Methods: []questions.LoginMethod{methodOf("webauthn", policy)},
			}},
		}}
		w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{{
			Required: true, Methods: []questions.LoginMethod{methodOf("webauthn", `{}`)},
		}}}
	})
	w.demands("wiki", func(c *questions.Client) { c.LoginTemplate = "strict" })
	w.tell("application", "updated", "8", 2, object{"id": "8"})
	w.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	wait.Until(t, func() bool {
		b := w.browser().get(w.authorize("portal"))
		return !strings.Contains(b.body, `name="password"`)
	})
	b := w.browser().get(w.authorize("portal")).uses(a).arrives(callback)
	b.get(w.authorize("wiki")).shows(200, "Show that it is you")
	require.Contains(t, b.options(), `"userVerification":"required"`)
	b.uses(a).shows(200, "That passkey does not work here")

	before := len(w.sessions())
	first := w.browser().get(w.authorize("portal"))
	form := a.answer(first)
	first.get(w.authorize("wiki")).send(form).shows(200, "Show that it is you")
	require.Len(t, w.sessions(), before, "an answer to the page of another application")

	a.device.Options.UserNotVerified = false
	b.uses(a).answered(wikiCallback)
	require.Equal(t, "phr", w.newest()["acr"])
}

// A passkey that is a second factor does not take the place of the password.
func TestAPasskeyThatIsASecondFactor(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	key := methodOf("webauthn", "{}")
	key.Second = true
	w.change(func() {
		w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{
			{Required: true, Methods: []questions.LoginMethod{methodOf("password", "{}"), key}},
			{Required: true, Methods: []questions.LoginMethod{key}},
		}}
	})
	w.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	wait.Until(t, func() bool {
		return !strings.Contains(w.browser().get(w.authorize("portal")).body, "with a passkey")
	})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Use a passkey")
	b.uses(a).answered(callback)
}

// methods are methods of some types.
func methods(types ...string) (all []questions.LoginMethod) {
	for _, kind := range types {
		all = append(all, methodOf(kind, "{}"))
	}
	return all
}

// waiting are steps for which a person may go on without a factor.
func waiting(types ...string) []questions.LoginStep {
	return []questions.LoginStep{
		{Required: true, Enrol: questions.EnrolOffer, Methods: methods(types...)},
		{Required: true, Enrol: questions.EnrolDemand, GraceDays: 9, Methods: methods(types...)},
		{Enrol: questions.EnrolOffer, Methods: methods(types...)},
	}
}

// Days of grace begin for whoever comes by silent requests alone, too.
func TestGraceOfSilentRequests(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Required: true, Enrol: questions.EnrolDemand, GraceDays: 7})
	w.change(func() { w.templates = map[string]questions.LoginTemplate{"staff": w.template, "": {}} })
	w.demands("portal", func(c *questions.Client) { c.LoginTemplate = "staff" })
	silent := w.authorize("portal", "prompt", "none")
	b := w.browser().get(w.authorize("wiki")).signIn("ann", password).arrives(wikiCallback)
	require.Equal(t, "login_required", b.get(silent).answered(callback).Get("error"))
	b.get(w.authorize("portal")).press("later").answered(callback)
	require.NotEmpty(t, b.get(silent).answered(callback).Get("code"))
	w.Clock.Advance(7 * day)
	b.get(w.authorize("wiki")).signIn("ann", password).arrives(wikiCallback)
	require.Equal(t, "login_required", b.get(silent).answered(callback).Get("error"))
}

// A step at which people may go on without a factor keeps nobody from beginning with a password, and asks nobody for
// more than they have.
func TestStepsThatWait(t *testing.T) {
	t.Parallel()
	first := questions.LoginStep{Required: true, Enrol: questions.EnrolDemand, Methods: methods("password")}
	for i, step := range waiting("webauthn") {
		t.Run(fmt.Sprint("first ", i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.template = questions.LoginTemplate{Found: true, Code: "staff", Steps: []questions.LoginStep{step, first}}
			w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Not now")
		})
	}
	for i, step := range waiting("otp", "webauthn") {
		t.Run(fmt.Sprint("after an app ", i), func(t *testing.T) {
			t.Parallel()
			w := secondStep(t, questions.LoginStep{Required: true, Enrol: questions.EnrolDemand})
			w.template.Steps = append(w.template.Steps, step)
			b := w.browser().get(w.authorize("portal")).signIn("ann", password)
			b.setUp("")
			b.press("kept").shows(200, "Not now").press("later").answered(callback)
		})
	}
	for i, step := range waiting("password", "otp") {
		t.Run(fmt.Sprint("of a password ", i), func(t *testing.T) {
			t.Parallel()
			w := secondStep(t, step)
			b := w.browser().get(w.authorize("portal")).signIn("ann", password)
			b.shows(200, "Not now").press("later").answered(callback)
		})
	}
}

// Each step has its own days of grace, which begin anew with no other code of the template, and with no offer.
func TestEachStepHasItsGrace(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Enrol: questions.EnrolOffer})
	w.template.ID = "7"
	w.browser().get(w.authorize("portal")).signIn("ann", password).press("later").answered(callback)
	w.Clock.Advance(20 * day)
	w.change(func() {
		w.template.Steps[1].Enrol, w.template.Steps[1].GraceDays = questions.EnrolDemand, 14
		w.template.Steps = append(w.template.Steps, questions.LoginStep{
			Required: true, Enrol: questions.EnrolDemand, GraceDays: 2, Methods: methods("webauthn"),
		})
	})
	w.tell("auth_template", "updated", "7", 1, object{"id": "7"})
	after := func(days time.Duration) string { return w.Clock.Now().Add(days * day).Std().Format(time.DateOnly) }
	b := w.browser()
	wait.Until(t, func() bool {
		b = w.browser().get(w.authorize("portal")).signIn("ann", password)
		return strings.Contains(b.body, after(14))
	})
	b.press("later").shows(200, after(2)).press("later").answered(callback)
	w.Clock.Advance(14*day + time.Minute)
	w.change(func() { w.template.Code = "renamed" })
	w.tell("auth_template", "updated", "7", 2, object{"id": "7"})
	w.Clock.Advance(11 * time.Minute) // the template is asked for again
	b = w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Portal asks for more")
	require.NotContains(t, b.body, "Not now")
}

// Whoever has another factor shows it until there is one for the step.
func TestGraceOfWhoHasAnotherFactor(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{
		Required: true, Enrol: questions.EnrolDemand, GraceDays: 7, Methods: methods("webauthn"),
	})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).press("later").arrives(callback)
	p, _ := b.factor("add", "").setUp("")
	b.press("kept")
	thief := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Show that it is you")
	require.NotContains(t, thief.body, "Not now")
	thief.press("later").shows(200, "Show that it is you")
	w.Clock.Advance(2 * day)
	b = w.browser().get(w.authorize("portal")).signIn("ann", password).prove(p.code()).shows(200, "Not now")
	b.press("later").answered(callback)
}

// A cookie that somebody has seen before the sign-in makes no browser known.
func TestACookieOfBeforeIsNotTrusted(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Required: true, Enrol: questions.EnrolDemand, When: "!known_browser"})
	b := w.browser().get(w.authorize("portal"))
	at, err := url.Parse(base)
	require.NoError(t, err)
	thief := w.browser()
	thief.client.Jar.SetCookies(at, b.client.Jar.Cookies(at))
	b.signIn("ann", password).setUp("")
	b.press("kept").answered(callback)
	b.get("/logout").press("").get(w.authorize("portal")).signIn("ann", password).answered(callback)
	thief.get(w.authorize("portal")).signIn("ann", password).shows(200, "Show that it is you")
}

// The conditions of a running session are about its person.
func TestConditionsOfARunningSession(t *testing.T) {
	t.Parallel()
	for when, asks := range map[string]bool{
		`"company/rd-20" in groups`: true, `"company/rd-" in groups`: false, `"urn:idplatform:aal:1" in acr`: true,
		`user.username == "ann"`: true, `known_browser`: false,
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := secondStep(t, questions.LoginStep{Required: true, Enrol: questions.EnrolDemand, When: when})
			w.change(func() { w.templates = map[string]questions.LoginTemplate{"staff": w.template, "": {}} })
			w.demands("portal", func(c *questions.Client) { c.LoginTemplate = "staff" })
			b := w.browser().get(w.authorize("wiki")).signIn("ann", password).arrives(wikiCallback)
			b.get(w.authorize("portal", "acr_values", "urn:idplatform:aal:1"))
			require.Equal(t, asks, strings.Contains(b.body, "Portal asks for more than a password"), b.body)
		})
	}
}

// A step that nobody can set up a factor for shuts the own page, too, which says so.
func TestNobodySetsUpAFactorOnTheOwnPage(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Required: true, Enrol: questions.EnrolOff})
	b := w.browser().get(base).signIn("ann", password).shows(403, "An administrator can let you set one up")
	require.NotContains(t, b.body, "own page")
	require.NotContains(t, b.body, "Back to")
}

// To go on without a factor is for the page that offers it.
func TestNobodyGoesOnWhereNothingIsOffered(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Enrol: questions.EnrolOffer, Methods: methods("webauthn")})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).press("later").arrives(callback)
	b.factor("add", "").setUp("")
	b.press("kept")
	w.Clock.Advance(31 * day)
	w.change(func() { w.users["ann"].mustChange = true })
	before := len(w.sessions())
	thief := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Show that it is you")
	require.NotContains(t, thief.body, "Not now")
	for _, button := range []string{"later", "kept"} {
		thief.press(button).shows(200, "Show that it is you")
	}
	require.Len(t, w.sessions(), before)
}

// isDue asks what is due to ann for a program.
func (w *world) isDue() bool {
	w.t.Helper()
	record, err := json.Marshal(w.users["ann"].record)
	w.must(err)
	due, err := questions.WhatIsDue.Ask(request.System(w.t.Context(), "acme"), w.Deps.Bus,
		questions.SecondStep{UserID: "20", AppID: "9", User: record})
	w.must(err)
	return due.Required
}

// Days of grace begin for whoever comes by programs alone, too, and the person is asked in the browser all the same.
func TestGraceOfPrograms(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Required: true, Enrol: questions.EnrolOffer})
	w.template.Steps = append(w.template.Steps, questions.LoginStep{
		Required: true, Enrol: questions.EnrolDemand, GraceDays: 7, Methods: methods("webauthn", "otp"),
	})
	require.False(t, w.isDue())
	w.Clock.Advance(6 * day)
	require.False(t, w.isDue())
	w.browser().get(w.authorize("portal")).signIn("ann", password).press("later").
		shows(200, w.Clock.Now().Add(day).Std().Format(time.DateOnly)).press("later").answered(callback)
	w.Clock.Advance(day)
	require.True(t, w.isDue())
}

// What is demanded gets a person's factors before what is offered.
func TestAnOfferBeforeADemand(t *testing.T) {
	t.Parallel()
	for i, step := range waiting("otp", "webauthn") {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			w := secondStep(t, step)
			w.template.Steps = append(w.template.Steps, questions.LoginStep{
				Required: true, Enrol: questions.EnrolDemand, Methods: methods("otp"),
			})
			b := w.browser().get(w.authorize("portal")).signIn("ann", password)
			b.setUp("")
			b.press("kept").shows(200, "Not now").press("later").answered(callback)
		})
	}
}

// A step whose days of grace are over is demanded like others.
func TestAnOfferBeforeGraceThatIsOver(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Enrol: questions.EnrolOffer, Methods: []questions.LoginMethod{
		{Code: "key 2", Type: "webauthn"}, {Code: "otp 2", Type: "otp"},
	}})
	w.template.Steps = append(w.template.Steps, questions.LoginStep{
		Required: true, Enrol: questions.EnrolDemand, GraceDays: 2, Methods: methods("otp", "webauthn"),
	})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Not now")
	p, _ := b.setUp("")
	b.press("kept").shows(200, "Not now").press("later").answered(callback)
	w.Clock.Advance(40 * day)
	b = w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Show that it is you")
	b.prove(p.next()).shows(200, "Not now").press("later").answered(callback)
}
