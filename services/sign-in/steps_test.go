package signin_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
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
