package signin_test

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
)

// phone is an authenticator app with a key.
type phone struct {
	w   *world
	key string
}

// code is what the app shows now.
func (p *phone) code() string {
	p.w.t.Helper()
	code, err := totp.GenerateCode(p.key, p.w.Clock.Now().Std())
	p.w.must(err)
	return code
}

// next is what the app shows once it shows another code than before.
func (p *phone) next() string {
	p.w.Clock.Advance(30 * time.Second)
	return p.code()
}

var (
	shownKey   = regexp.MustCompile(`<p class="code key">([A-Z2-7-]+)</p>`)
	shownCodes = regexp.MustCompile(`<li class="code">([A-Z0-9-]+)</li>`)
)

// phone is an app with the key that the page shows.
func (b *browser) phone() *phone {
	b.w.t.Helper()
	found := shownKey.FindStringSubmatch(b.shows(200, "Set up an authenticator app").body)
	require.NotNil(b.w.t, found, "%s", b.body)
	return &phone{b.w, strings.ReplaceAll(found[1], "-", "")}
}

// codes are the recovery codes that the page shows.
func (b *browser) codes() (codes []string) {
	b.w.t.Helper()
	for _, found := range shownCodes.FindAllStringSubmatch(b.body, -1) {
		codes = append(codes, found[1])
	}
	return codes
}

// prove sends a code of an app, or a recovery code.
func (b *browser) prove(code string) *browser {
	b.w.t.Helper()
	return b.send(url.Values{"action": {"factor"}, "code": {code}})
}

// setUp sets up an app from the page that offers it, and returns it with the recovery codes.
func (b *browser) setUp(name string) (*phone, []string) {
	b.w.t.Helper()
	p := b.chooses("otp").phone()
	b.send(url.Values{"action": {"add-factor"}, "code": {p.code()}, "name": {name}})
	codes := b.codes()
	return p, codes
}

// chooses begins to set up a method.
func (b *browser) chooses(method string) *browser {
	b.w.t.Helper()
	return b.send(url.Values{"action": {"set-up"}, "method": {method}})
}

// factor sends a form of the person's own page.
func (b *browser) factor(action, id string) *browser {
	b.w.t.Helper()
	return b.post(base+"/factors", url.Values{"action": {action}, "factor": {id}})
}

// strict is a world whose portal demands two factors; the wiki does not.
func strict(t testing.TB, options ...testkit.Options) *world {
	t.Helper()
	w := newWorld(t, options...)
	w.demands("portal", func(c *questions.Client) { c.MFA = true })
	return w
}

func (w *world) demands(client string, edit func(*questions.Client)) {
	w.change(func() {
		c := w.clients[client]
		edit(&c)
		w.clients[client] = c
	})
}

// enrolled is a world in which ann has an app and recovery codes.
func enrolled(t testing.TB, options ...testkit.Options) (*world, *phone, []string) {
	t.Helper()
	w := strict(t, options...)
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	p, codes := b.setUp("Work phone")
	b.press("kept").answered(callback)
	return w, p, codes
}

// factors are all factors of the tenant.
func (w *world) factors() (all []object) {
	for _, f := range w.admin().Get("/v1/factors?page_sort=time_created").Object()["items"].([]any) {
		all = append(all, f.(object))
	}
	return all
}

// Whoever has no second factor sets one up where an application demands it: nobody is locked out.
func TestAFactorIsSetUpAtTheSignIn(t *testing.T) {
	t.Parallel()
	w := strict(t)
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.shows(200, "Portal asks for more than a password")
	require.Empty(t, w.sessions(), "nobody is signed in by half")
	p := b.chooses("otp").phone()
	require.Contains(t, b.body, `src="data:image/png;base64,`)
	require.Equal(t, p.key, b.get(b.at).phone().key, "the key stays when the page is loaded again")
	b.send(url.Values{"action": {"add-factor"}, "code": {"000000"}}).shows(200, "not right")
	b.send(url.Values{"action": {"add-factor"}, "code": {p.code()}, "name": {" Work\u202e phone "}})
	b.shows(200, "Keep your recovery codes")
	codes := b.codes()
	require.Len(t, codes, 10)
	require.Equal(t, codes, func() []string { b.get(b.at); return b.codes() }(), "until they are kept")
	b.press("kept").answered(callback)
	require.NotEmpty(t, b.answered(callback).Get("code"))

	session := w.sessions()[0].(object)
	require.Equal(t, "urn:idplatform:aal:2", session["acr"])
	require.Equal(t, []any{"mfa", "otp", "pwd"}, session["amr"])
	all := w.factors()
	require.Len(t, all, 2)
	require.Equal(t, "Work phone", all[0]["name"])
	require.Equal(t, "otp", all[0]["type"])
	require.Equal(t, "recovery_code", all[1]["type"])
	require.EqualValues(t, 10, all[1]["codes_left"])
	require.Equal(t, "factor:"+all[0]["id"].(string), session["proofs"].([]any)[1].(object)["credential"])
}

// A code of the app, or a recovery code, is asked for after the password, and works once.
func TestSignInWithAFactor(t *testing.T) {
	t.Parallel()
	w, p, codes := enrolled(t)
	setUp := p.code()
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Show that it is you")
	b.prove(setUp).shows(200, "not right") // the code of the set-up
	b.prove("").shows(200, "not right")
	code := p.next()
	b.prove(code[:3] + " " + code[3:]).answered(callback)
	require.Equal(t, "urn:idplatform:aal:2", w.newest()["acr"])

	again := w.browser().get(w.authorize("portal")).signIn("ann", password)
	again.prove(code).shows(200, "not right")
	again.prove(strings.ToLower(codes[3])).answered(callback)
	require.Equal(t, "urn:idplatform:aal:2", w.newest()["acr"])
	require.EqualValues(t, 9, w.factors()[1]["codes_left"])
	third := w.browser().get(w.authorize("portal")).signIn("ann", password)
	third.prove(codes[3]).shows(200, "not right")
	third.prove(codes[4]).answered(callback)
	require.NotNil(t, w.factors()[0]["time_used"])
}

// newest is the session that began last.
func (w *world) newest() object {
	w.t.Helper()
	return w.admin().Get("/v1/sessions?page_sort=time_created[desc]").Object()["items"].([]any)[0].(object)
}

// After five wrong codes of the app none is looked at for a quarter of an hour; recovery codes are.
func TestWrongCodesOfAnApp(t *testing.T) {
	t.Parallel()
	w, p, codes := enrolled(t)
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	for range 4 {
		b.prove("123456").shows(200, "That code is not right")
	}
	b.prove("123456").shows(200, "too many wrong codes")
	b.prove(p.next()).shows(200, "too many wrong codes")
	b.prove(codes[0]).answered(callback)
	late := w.browser().get(w.authorize("portal")).signIn("ann", password)
	late.prove(p.next()).shows(200, "too many wrong codes")
	w.Clock.Advance(15 * time.Minute)
	late.prove(p.code()).answered(callback)
}

// However many try at once, a code works once, and five wrong ones close the app.
func TestCodesAtOnce(t *testing.T) {
	t.Parallel()
	w, p, _ := enrolled(t)
	code := p.next()
	var browsers []*browser
	for range 8 {
		browsers = append(browsers, w.browser().get(w.authorize("portal")).signIn("ann", password))
	}
	together(browsers, func(b *browser) { b.prove(code) })
	signedIn := 0
	for _, b := range browsers {
		if strings.HasPrefix(b.at, callback) {
			signedIn++
		}
	}
	require.Equal(t, 1, signedIn)
}

func together(browsers []*browser, do func(*browser)) {
	var all sync.WaitGroup
	for _, b := range browsers {
		all.Go(func() { do(b) })
	}
	all.Wait()
}

// The code of a set-up adds one app, however often it is sent.
func TestASetUpCodeAddsOneApp(t *testing.T) {
	t.Parallel()
	w := strict(t)
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	p := b.chooses("otp").phone()
	var tabs []*browser
	for range 8 {
		tabs = append(tabs, b.tab())
	}
	code := p.code()
	together(tabs, func(b *browser) { b.send(url.Values{"action": {"add-factor"}, "code": {code}}) })
	require.Len(t, w.factors(), 2)
	for _, tab := range tabs {
		if tab.get(tab.at); strings.Contains(tab.body, `value="kept"`) {
			tab.press("kept")
		}
	}
	tabs[0].get(w.authorize("portal")).answered(callback)
	require.Len(t, w.sessions(), 1)
}

// A session that has shown less goes on with one more factor.
func TestStepUp(t *testing.T) {
	t.Parallel()
	w, p, _ := enrolled(t)
	w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{
		{Required: true, Methods: []questions.LoginMethod{{Code: "pw", Type: "password"}}},
	}}
	w.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	w.Clock.Advance(time.Minute)
	b := w.browser()
	wait.Until(t, func() bool {
		b = w.browser().get(w.authorize("wiki")).signIn("ann", password)
		return strings.HasPrefix(b.at, "https://wiki.test/cb")
	})
	require.Equal(t, "urn:idplatform:aal:1", w.newest()["acr"])
	before := w.newest()["id"]
	require.Equal(t, "login_required", b.tab().get(w.authorize("portal", "prompt", "none")).answered(callback).
		Get("error"))
	require.Equal(t, "unmet_authentication_requirements", b.tab().get(w.authorize("wiki", "prompt", "none", "acr_values",
		"urn:idplatform:aal:2")).answered("https://wiki.test/cb").Get("error"))
	b.get(w.authorize("portal")).shows(200, "Show that it is you").shows(200, "Ann Lee")
	b.prove("000000").shows(200, "not right")
	b.prove(p.next()).answered(callback)
	require.Equal(t, before, w.newest()["id"])
	require.Equal(t, "urn:idplatform:aal:2", w.newest()["acr"])
	b.get(w.authorize("wiki", "prompt", "none", "acr_values", "urn:idplatform:aal:2")).answered("https://wiki.test/cb")

	// What was shown counts as long as the session.
	half := w.browser().get(w.authorize("wiki")).signIn("ann", password)
	half.get(w.authorize("portal")).prove("000000").shows(200, "not right")
	w.admin().Delete("/v1/sessions/"+w.newest()["id"].(string), nil).OK(nil)
	half.prove(p.next()).shows(200, "Username, email or mobile number")
}

// An application can ask for a class: one that is essential is reached, or the application hears that it is not.
func TestClassesThatApplicationsAskFor(t *testing.T) {
	t.Parallel()
	w, p, _ := enrolled(t)
	essential := func(class string) string {
		return w.authorize("wiki", "claims", `{"id_token":{"acr":{"essential":true,"value":"`+class+`"}}}`)
	}
	b := w.browser().get(w.authorize("wiki", "acr_values", "phr urn:idplatform:aal:2")).signIn("ann", password)
	b.prove(p.next()).answered("https://wiki.test/cb")
	w.change(func() {
		bob := ann(w.Clock.Now())
		bob.record["id"], bob.record["username"] = "21", "bob"
		w.users["bob"] = bob
	})
	w.browser().get(w.authorize("wiki", "acr_values", "urn:idplatform:aal:2")).signIn("bob", password).
		answered("https://wiki.test/cb") // who cannot show two signs in with one
	demanded := w.browser().get(essential("urn:idplatform:aal:2")).signIn("bob", password)
	demanded.shows(200, "Set up a second factor")
	resistant := w.browser().get(essential("phr")).signIn("bob", password).shows(200, "Set up a second factor")
	require.NotContains(t, resistant.body, `value="otp"`, "an app does not resist phishing")
	require.Equal(t, "unmet_authentication_requirements", b.get(essential("phr")+"&prompt=none").
		answered("https://wiki.test/cb").Get("error"))
}

// mfa_config says which factors count, and whether people set one up on the way.
func TestWhichFactorsCount(t *testing.T) {
	t.Parallel()
	w := strict(t)
	w.demands("portal", func(c *questions.Client) { c.MFANoSetUp = true })
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.shows(403, "you have none. You can set one up on your own page")
	require.Equal(t, "access_denied", b.press("deny").answered(callback).Get("error"))

	mails := strict(t)
	mails.demands("portal", func(c *questions.Client) { c.MFAMethods = []string{"mail"} })
	mails.browser().get(mails.authorize("portal")).shows(403, "a code by mail")
	apps := strict(t)
	apps.demands("portal", func(c *questions.Client) { c.MFAMethods = []string{"mail", "otp"} })
	apps.browser().get(apps.authorize("portal")).signIn("ann", password).shows(200, "Set up a second factor")
}

// Where nothing is demanded, a factor is asked of those who have one.
func TestAFactorIsAskedOfThoseWhoHaveOne(t *testing.T) {
	t.Parallel()
	w, p, _ := enrolled(t)
	b := w.browser().get(w.authorize("wiki")).signIn("ann", password).shows(200, "Show that it is you")
	b.get(w.authorize("wiki")).shows(200, "Username, email or mobile number")
	b.signIn("ann", password).prove(p.next()).answered("https://wiki.test/cb")
}

// Recovery by mail replaces what a person knows, and nothing else.
func TestRecoveryAsksForTheFactor(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	b := w.browser().get(base).signIn("ann", password)
	p, _ := b.factor("add", "").setUp("")
	b.press("kept").shows(200, "The second factor is set up")

	lost := w.browser().get(w.authorize("portal")).send(url.Values{"action": {"forgot"}, "login_name": {"ann"}})
	lost.send(url.Values{"action": {"send-code"}, "login_name": {"ann"}})
	lost.send(url.Values{"action": {"code"}, "code": {w.code(1)}}).shows(200, "Show that it is you")
	next := url.Values{"action": {"new-password"}, "password": {"another horse"}, "repeated": {"another horse"}}
	lost.send(next).shows(200, "Show that it is you")
	require.Equal(t, "correct horse", w.users["ann"].password, "the step cannot be skipped")
	lost.prove("000000").shows(200, "not right")
	lost.prove(p.next()).shows(200, "Choose a new password")
	lost.send(next).answered(callback)
	require.Equal(t, "urn:idplatform:aal:2", w.newest()["acr"])
}

// A password that has to be changed is not enough to change it.
func TestAPasswordToChangeAsksForTheFactor(t *testing.T) {
	t.Parallel()
	w, p, _ := enrolled(t)
	w.users["ann"].mustChange = true
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Show that it is you")
	b.prove(p.next()).shows(200, "Your password has to be changed")
	b.send(url.Values{"action": {"new-password"}, "password": {"another horse"}, "repeated": {"another horse"}}).
		answered(callback)
}

// The own page adds, renews and removes, after a sign-in of the last five minutes with all that the person has.
func TestFactorsOnTheOwnPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(base).signIn("ann", password).shows(200, "You sign in with a password only")
	b.factor("add", "").shows(200, "Set up a second factor")
	first, codes := b.setUp("Phone")
	b.press("kept").shows(200, "The second factor is set up").shows(200, "10 left")
	require.Len(t, w.sessions(), 1)
	require.Equal(t, "urn:idplatform:aal:2", w.newest()["acr"], "to set it up is to show it")

	w.Clock.Advance(5*time.Minute + time.Second)
	b.factor("add", "").shows(200, "Username, email or mobile number").signIn("ann", password)
	b.prove(first.code()).shows(200, "Set up a second factor")
	_, more := b.setUp("Tablet")
	require.Empty(t, more, "there are recovery codes")
	b.shows(200, "The second factor is set up").shows(200, "Tablet")

	b.factor("renew", "").shows(200, "whoever has signed in with one of them").press("new-codes")
	fresh := b.codes()
	require.Len(t, fresh, 10)
	require.NotContains(t, fresh, codes[0])
	b.press("kept").shows(200, "You have new recovery codes")

	var tablet string
	for _, f := range w.factors() {
		if f["name"] == "Tablet" {
			tablet = f["id"].(string)
		}
	}
	b.factor("remove", tablet).shows(200, "It is removed")
	require.NotContains(t, b.body, "Tablet")
	other := w.browser().get(base).signIn("ann", password).prove(codes[0]).shows(200, "not right")
	other.prove(fresh[0]).shows(200, "My account")
	b.factor("remove", "nothing").shows(200, "It is removed")
}

// A factor of somebody else is not removed, and a password alone adds none to an account that has one.
func TestWhoMayChangeFactors(t *testing.T) {
	t.Parallel()
	w, _, _ := enrolled(t)
	w.change(func() {
		bob := ann(w.Clock.Now())
		bob.record["id"], bob.record["username"] = "21", "bob"
		w.users["bob"] = bob
	})
	bob := w.browser().get(base).signIn("bob", password)
	bob.factor("remove", w.factors()[0]["id"].(string))
	require.Len(t, w.factors(), 2)

	thief := w.browser().get(base).signIn("ann", password).shows(200, "Show that it is you")
	thief.factor("add", "").shows(200, "Username, email or mobile number")
	thief.signIn("ann", password).shows(200, "Show that it is you")
	thief.chooses("otp").shows(200, "Show that it is you")
	thief.send(url.Values{"action": {"add-factor"}, "code": {"123456"}}).shows(200, "Show that it is you")
	thief.press("kept").shows(200, "Show that it is you")
	thief.press("new-codes").shows(200, "Show that it is you")
	require.Len(t, w.factors(), 2)
	w.browser().factor("add", "").shows(200, "Sign in")
}

// What rests on a factor ends with it, and with it go the recovery codes.
func TestAFactorIsDeleted(t *testing.T) {
	t.Parallel()
	w, p, codes := enrolled(t)
	rests := w.browser().get(w.authorize("portal")).signIn("ann", password).prove(p.next())
	rests.answered(callback)
	byCode := w.browser().get(w.authorize("portal")).signIn("ann", password).prove(codes[0])
	byCode.answered(callback)
	half := w.browser().get(w.authorize("portal")).signIn("ann", password)
	require.Len(t, w.sessions(), 3)

	app := "/v1/factors/" + w.factors()[0]["id"].(string)
	w.admin().Delete(app, nil).Problem(403, "forbidden")
	secrets := w.As("acme", auth.SignInRead, auth.UsersSecrets)
	w.As("globex", auth.SignInRead, auth.UsersSecrets).Delete(app, nil).Problem(404, "not_found")
	secrets.Delete(app, nil).OK(nil)
	require.Empty(t, w.factors())
	wait.Until(t, func() bool { return len(w.sessions()) == 0 })
	half.prove(p.next()).shows(200, "Set up a second factor")
	half.get(w.authorize("wiki")).signIn("ann", password).answered("https://wiki.test/cb")
	ended := 0
	w.EventsUntil(func(e stream.Event) bool {
		if e.Type == "idp.session.ended" && strings.Contains(string(e.Data), `"reason":"factor"`) {
			ended++
		}
		return ended == 3
	})
}

// A sign-in that a deletion overtakes comes to nothing.
func TestADeletionOvertakesASignIn(t *testing.T) {
	t.Parallel()
	w, p, _ := enrolled(t)
	w.users["ann"].mustChange = true
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).prove(p.next())
	b.shows(200, "Your password has to be changed")
	w.As("acme", auth.UsersSecrets).Delete("/v1/factors/"+w.factors()[0]["id"].(string), nil).OK(nil)
	b.send(url.Values{"action": {"new-password"}, "password": {"another horse"}, "repeated": {"another horse"}})
	require.False(t, strings.HasPrefix(b.at, callback), b.at)
}

// Administrators give new recovery codes to whoever has lost the app.
func TestRecoveryCodesByAnAdministrator(t *testing.T) {
	t.Parallel()
	w, _, codes := enrolled(t)
	of := func(user string) string { return "/v1/users/" + user + "/recovery-codes" }
	w.admin().Post(of("20"), nil).Problem(403, "forbidden")
	secrets := w.As("acme", auth.UsersSecrets)
	secrets.Post(of("21"), nil).Problem(409, "invalid_state")
	w.As("globex", auth.UsersSecrets).Post(of("20"), nil).Problem(409, "invalid_state")
	fresh := secrets.Post(of("20"), nil).Object()["codes"].([]any)
	require.Len(t, fresh, 10)
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.prove(codes[0]).shows(200, "not right")
	b.prove(fresh[0].(string)).answered(callback)
}

// Whoever is deleted has no factors any more.
func TestFactorsOfADeletedUser(t *testing.T) {
	t.Parallel()
	w := secondStep(t, questions.LoginStep{Enrol: questions.EnrolOffer})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).press("later").arrives(callback)
	require.NotEmpty(t, testkit.Stored(t, w.Service, "acme", "postponed_factors"))
	b.get(base).factor("add", "").setUp("")
	require.NotEmpty(t, w.factors())
	w.tell("user", "deleted", "20", 99, w.users["ann"].record)
	wait.Until(t, func() bool { return len(w.factors()) == 0 })
	require.Empty(t, testkit.Stored(t, w.Service, "acme", "factor_secrets"))
	require.Empty(t, testkit.Stored(t, w.Service, "acme", "postponed_factors"))
}

// No secret of a factor is in an event, a log or an answer of the API.
func TestSecretsOfFactorsStay(t *testing.T) {
	t.Parallel()
	w, p, codes := enrolled(t)
	for _, name := range []string{"factors", "factor_secrets", "flows", "sessions"} {
		for _, doc := range testkit.Stored(t, w.Service, "acme", name) {
			require.NotContains(t, html.UnescapeString(doc), p.key)
			require.NotContains(t, doc, strings.ReplaceAll(codes[0], "-", ""))
		}
	}
	list := string(w.admin().Get("/v1/factors").Body)
	require.NotContains(t, list, p.key)
	require.NotContains(t, list, "sealed")
}

// The page of a factor stays one while a service does not answer.
func TestAServiceIsAwayAtAFactor(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (*world, *browser) {
		t.Helper()
		w := strict(t)
		return w, w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Set up a second factor")
	}
	fails := func(w *world, b *browser, form url.Values) {
		t.Helper()
		w.Clock.Advance(11 * time.Minute)
		w.change(func() { w.away["applications"] = true })
		b.send(form).shows(503, "not answering")
		require.NotContains(t, b.body, `name="password"`)
	}
	w, b := begin(t)
	fails(w, b, url.Values{"action": {"set-up"}, "method": {"otp"}})
	w, b = begin(t)
	fails(w, b.chooses("otp"), url.Values{"action": {"add-factor"}, "code": {"123456"}})
	w, _, _ = enrolled(t)
	b = w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Show that it is you")
	fails(w, b, url.Values{"action": {"factor"}, "code": {"123456"}})
	b.shows(503, `value="factor"`)
}

// A recovery code takes the place of a factor that counts, and of no other.
func TestARecoveryCodeOfAnAppIsNoPasskey(t *testing.T) {
	t.Parallel()
	w, _, codes := enrolled(t)
	w.demands("portal", func(c *questions.Client) { c.MFAMethods = []string{"webauthn"} })
	w.Clock.Advance(11 * time.Minute)
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).prove(codes[0])
	b.shows(200, "Set up a second factor")
}

// Programs of the tenant that take passwords themselves learn what an application demands, and whether a code is right.
func TestWhatIsDueAfterAPassword(t *testing.T) {
	t.Parallel()
	w, p, codes := enrolled(t)
	ask := func(userID, appID, code string) (questions.Due, error) {
		record, err := json.Marshal(w.users["ann"].record)
		require.NoError(t, err)
		return questions.WhatIsDue.Ask(request.System(t.Context(), "acme"), w.Deps.Bus,
			questions.SecondStep{UserID: userID, AppID: appID, Code: code, User: record})
	}
	due := func(userID, appID, code string) questions.Due {
		t.Helper()
		answer, err := ask(userID, appID, code)
		require.NoError(t, err)
		return answer
	}
	require.Equal(t, questions.Due{Required: true, Methods: []string{"otp"}}, due("20", "9", ""))
	require.Equal(t, questions.Due{Required: true}, due("21", "9", ""), "who has none has to set one up")
	require.Equal(t, questions.Due{}, due("21", "8", ""))
	require.Equal(t, questions.Due{Required: true, Methods: []string{"otp"}}, due("20", "", ""), "on the own page")
	_, err := ask("20", "404", "")
	require.True(t, apperr.IsNotFound(err), err)

	code := p.next()
	require.Equal(t, questions.Due{}, due("20", "9", code))
	require.Equal(t, questions.Due{Refused: questions.InvalidCode}, due("20", "9", code), "a code works once")
	require.Equal(t, questions.Due{Refused: questions.InvalidCode}, due("20", "9", codes[0]), "recovery codes do not")
	w.browser().get(w.authorize("portal")).signIn("ann", password).prove(codes[0]).answered(callback)
	for range 4 {
		due("20", "9", "000000")
	}
	require.Equal(t, questions.Due{Refused: questions.CodesBlocked}, due("20", "9", p.next()))
}
