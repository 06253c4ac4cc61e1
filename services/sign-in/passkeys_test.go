package signin_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
	signin "github.com/idplatform/idplatform/services/sign-in"
)

// authenticator is a device with one passkey, as a browser uses it.
type authenticator struct {
	party  virtualwebauthn.RelyingParty
	device virtualwebauthn.Authenticator
	key    virtualwebauthn.Credential
}

// newKey is a key of a new passkey. The package writes coordinates without their leading zeros, which one of a hundred
// keys has and no authenticator leaves out: such keys are passed over.
func newKey() virtualwebauthn.Credential {
	const size = 77 // of a COSE key with two coordinates of 32 bytes
	for {
		if key := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2); len(key.Key.AttestationData()) == size {
			return key
		}
	}
}

var (
	askedOptions = regexp.MustCompile(`data-options="([^"]*)"`)
	challengeOf  = regexp.MustCompile(`name="challenge" value="([^"]*)"`)
)

// options are what the page asks the browser for.
func (b *browser) options() string {
	b.w.t.Helper()
	found := askedOptions.FindStringSubmatch(b.body)
	require.NotNil(b.w.t, found, "%s", b.body)
	return html.UnescapeString(found[1])
}

// makes makes a passkey on the page that asks for one, and sends it.
func (b *browser) makes(name string, options virtualwebauthn.AuthenticatorOptions) *authenticator {
	b.w.t.Helper()
	asked, err := virtualwebauthn.ParseAttestationOptions(b.options())
	b.w.must(err)
	require.NotContains(b.w.t, asked.UserID, "20", "the handle says nothing of the user")
	options.UserHandle = []byte(asked.UserID)
	a := &authenticator{
		party:  virtualwebauthn.RelyingParty{ID: asked.RelyingPartyID, Origin: "https://idp.test"},
		device: virtualwebauthn.NewAuthenticatorWithOptions(options),
		key:    newKey(),
	}
	require.False(b.w.t, a.key.IsExcludedForAttestation(*asked))
	b.sendsMade(name, virtualwebauthn.CreateAttestationResponse(a.party, a.device, a.key, *asked))
	return a
}

func (b *browser) sendsMade(name, answer string) *browser {
	return b.send(url.Values{"action": {"add-factor"}, "passkey": {answer}, "name": {name}})
}

// answer is what the browser sends for a passkey that the page asks for.
func (a *authenticator) answer(b *browser) url.Values {
	b.w.t.Helper()
	asked, err := virtualwebauthn.ParseAssertionOptions(b.options())
	b.w.must(err)
	a.key.Counter++
	return url.Values{
		"action": {"passkey"}, "challenge": {html.UnescapeString(challengeOf.FindStringSubmatch(b.body)[1])},
		"passkey": {virtualwebauthn.CreateAssertionResponse(a.party, a.device, a.key, *asked)},
	}
}

// uses answers the page with a passkey.
func (b *browser) uses(a *authenticator) *browser {
	b.w.t.Helper()
	return b.send(a.answer(b))
}

// withPasskey is a world in which ann has a passkey.
func withPasskey(t testing.TB, options virtualwebauthn.AuthenticatorOptions) (*world, *authenticator, []string) {
	t.Helper()
	w := newWorld(t)
	b := w.browser().get(base).signIn("ann", password).factor("add", "").chooses("webauthn")
	b.shows(200, "Set up a passkey")
	a := b.makes("Work laptop", options)
	codes := b.codes()
	require.Len(t, codes, 10, "%s", b.body)
	b.press("kept").shows(200, "The second factor is set up").shows(200, "Work laptop")
	w.Clock.Advance(time.Second)
	return w, a, codes
}

// A passkey that verifies its user is enough, and two factors at once.
func TestSignInByAPasskey(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	b := w.browser().get(w.authorize("portal")).shows(200, "Sign in with a passkey")
	require.Contains(t, b.body, `autocomplete="username webauthn"`)
	b.uses(a).answered(callback)
	s := w.newest()
	require.Equal(t, "20", s["user_id"])
	require.Equal(t, "phr", s["acr"])
	require.Equal(t, []any{"hwk", "mfa", "user"}, s["amr"])
	all := w.factors()
	require.Equal(t, []any{"webauthn", "Work laptop", "idp.test"},
		[]any{all[0]["type"], all[0]["name"], all[0]["site"]})
	require.NotNil(t, all[0]["time_used"])

	w.demands("portal", func(c *questions.Client) { c.MFA = true })
	w.Clock.Advance(time.Second)
	essential := w.authorize("wiki", "claims", `{"id_token":{"acr":{"essential":true,"value":"phr"}}}`)
	w.browser().get(w.authorize("portal")).uses(a).answered(callback)
	w.Clock.Advance(time.Second)
	w.browser().get(essential).uses(a).answered("https://wiki.test/cb")
}

// After a password a passkey is asked for as a second factor, also one that has not verified its user.
func TestAPasskeyAfterAPassword(t *testing.T) {
	t.Parallel()
	w, a, codes := withPasskey(t, virtualwebauthn.AuthenticatorOptions{UserNotVerified: true, BackupEligible: true})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Use a passkey")
	require.NotContains(t, b.body, "Code from your authenticator app")
	asked, err := virtualwebauthn.ParseAssertionOptions(b.options())
	require.NoError(t, err)
	require.True(t, a.key.IsAllowedForAssertion(*asked))
	b.uses(a).answered(callback)
	require.Equal(t, []any{"phr", []any{"mfa", "pwd", "swk"}}, []any{w.newest()["acr"], w.newest()["amr"]})

	// Alone it is one factor: whoever has a password shows it, too.
	w.Clock.Advance(time.Second)
	alone := w.browser().get(w.authorize("portal")).uses(a).shows(200, `value="ann"`).shows(200, "Password")
	alone.signIn("ann", password).answered(callback)
	w.browser().get(w.authorize("portal")).signIn("ann", password).prove(codes[0]).answered(callback)
}

// What is not a good passkey of the person signs nobody in.
func TestPasskeysThatAreNotGood(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	at := func() *browser {
		w.Clock.Advance(time.Minute) // an address may fail ten times in each
		return w.browser().get(w.authorize("portal"))
	}
	const refused = "That passkey does not work here"
	for name, use := range map[string]func(b *browser) url.Values{
		"of another site": func(b *browser) url.Values {
			other := *a
			other.party.ID, other.party.Origin = "evil.test", "https://evil.test"
			return other.answer(b)
		},
		"of another origin": func(b *browser) url.Values {
			other := *a
			other.party.Origin = "https://evil.idp.test"
			return other.answer(b)
		},
		"of another key": func(b *browser) url.Values {
			other := *a
			other.key.Key = newKey().Key
			return other.answer(b)
		},
		"that nobody knows": func(b *browser) url.Values {
			other := *a
			other.key = newKey()
			return other.answer(b)
		},
		"without its user": func(b *browser) url.Values {
			other := *a
			other.device.Options.UserHandle = []byte("somebody else")
			return other.answer(b)
		},
		"without a touch": func(b *browser) url.Values {
			other := *a
			other.device.Options.UserNotPresent = true
			return other.answer(b)
		},
		"of another browser's page": func(*browser) url.Values {
			return a.answer(w.browser().get(w.authorize("portal")))
		},
		"of a page that was open for long": func(b *browser) url.Values {
			answer := a.answer(b)
			w.Clock.Advance(2 * time.Hour)
			return answer
		},
		"that is none": func(b *browser) url.Values {
			answer := a.answer(b)
			answer.Set("passkey", "{}")
			return answer
		},
		"without a challenge": func(b *browser) url.Values {
			answer := a.answer(b)
			answer.Del("challenge")
			return answer
		},
		"that is too long": func(b *browser) url.Values {
			answer := a.answer(b)
			answer.Set("passkey", answer.Get("passkey")+strings.Repeat(" ", 20_000))
			return answer
		},
	} {
		b := at()
		b.send(use(b)).shows(200, refused)
		require.Len(t, w.sessions(), 1, name)
	}

	w.Clock.Advance(time.Second)
	b := w.browser().get(w.authorize("portal", "prompt", "login"))
	once := a.answer(b)
	tab := b.tab()
	b.send(once).answered(callback)
	tab.send(once).shows(200, refused) // the same answer again
	w.Clock.Advance(time.Second)
	cloned := *a
	cloned.key.Counter = 0
	at().uses(&cloned).shows(200, refused)

	w.change(func() { w.users["ann"].record["status"] = "0" })
	w.tellUser("disabled", w.users["ann"])
	wait.Until(t, func() bool { return len(w.sessions()) == 0 })
	at().uses(a).shows(200, refused)
}

// A passkey of somebody else is no second factor, and none of another tenant is known.
func TestWhosePasskeyItIs(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	w.change(func() {
		bob := ann(w.Clock.Now())
		bob.record["id"], bob.record["username"] = "21", "bob"
		w.users["bob"] = bob
	})
	b := w.browser().get(base).signIn("bob", password).factor("add", "").chooses("webauthn")
	own := b.makes("", virtualwebauthn.AuthenticatorOptions{})
	b.press("kept")
	w.Clock.Advance(time.Second)
	half := w.browser().get(w.authorize("portal")).signIn("bob", password).shows(200, "Use a passkey")
	half.uses(a).shows(200, "That passkey does not work here")
	half.uses(own).answered(callback)
	require.Equal(t, "21", w.newest()["user_id"])

	other := w.browser().get("https://idp.test/sign-in/globex")
	other.uses(a).shows(200, "That passkey does not work here")
}

// What is not a good answer to a set-up adds nothing, and a passkey is added once.
func TestPasskeysThatAreNotMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(base).signIn("ann", password).factor("add", "").chooses("webauthn")
	asked, err := virtualwebauthn.ParseAttestationOptions(b.options())
	require.NoError(t, err)
	key := newKey()
	made := func(origin string, challenge []byte) string {
		party := virtualwebauthn.RelyingParty{ID: asked.RelyingPartyID, Origin: origin}
		with := *asked
		with.Challenge = challenge
		return virtualwebauthn.CreateAttestationResponse(party, virtualwebauthn.NewAuthenticator(), key, with)
	}
	const refused = "That passkey does not work here"
	b.sendsMade("", "").shows(200, refused)
	b.sendsMade("", "{").shows(200, refused)
	b.sendsMade("", made("https://evil.test", asked.Challenge)).shows(200, refused)
	b.sendsMade("", made("https://idp.test", []byte("another challenge, and long"))).shows(200, refused)
	require.Empty(t, w.factors())
	stale := b.tab()
	good := made("https://idp.test", asked.Challenge)
	b.sendsMade("", good).shows(200, "Keep your recovery codes")
	stale.sendsMade("", good)
	require.Len(t, w.factors(), 2)
}

// A passkey that is deleted signs nobody in, and what rests on it ends.
func TestAPasskeyIsDeleted(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	w.browser().get(w.authorize("portal")).uses(a).answered(callback)
	b := w.browser().get(w.authorize("portal"))
	w.As("acme", auth.UsersSecrets).Delete("/v1/factors/"+w.factors()[0]["id"].(string), nil).OK(nil)
	wait.Until(t, func() bool { return len(w.sessions()) == 0 })
	b.uses(a).shows(200, "That passkey does not work here")
}

// A template can ask for a passkey alone, or for none.
func TestTemplatesWithPasskeys(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	template := func(types ...string) {
		step := questions.LoginStep{Required: true}
		for _, name := range types {
			step.Methods = append(step.Methods, questions.LoginMethod{Code: name, Type: name})
		}
		w.change(func() { w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{step}} })
		w.tell("auth_template", "updated", "1", w.Clock.Now().Millis(), object{"id": "1"})
	}
	template("webauthn")
	wait.Until(t, func() bool {
		return !strings.Contains(w.browser().get(w.authorize("portal")).body, `name="password"`)
	})
	b := w.browser().get(w.authorize("portal"))
	b.signIn("ann", password)
	require.NotContains(t, b.at, callback)
	w.Clock.Advance(time.Second)
	w.browser().get(w.authorize("portal")).uses(a).answered(callback)
	template("password")
	wait.Until(t, func() bool {
		return !strings.Contains(w.browser().get(w.authorize("portal")).body, "Sign in with a passkey")
	})
	w.browser().get(w.authorize("portal")).signIn("ann", password).answered(callback)
}

// A platform that is called by an address has no passkeys, and those of a former name are none: recovery codes take
// their place.
func TestPasskeysOfAFormerName(t *testing.T) {
	t.Parallel()
	w, _, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	for url, asks := range map[string]bool{
		"https://other.test": true, "https://192.0.2.7": false, "http://localhost:8080": true, "http://idp.test": false,
	} {
		now := w.Replica(signin.Spec(signin.DefaultConfig()), testkit.Options{PublicURL: url})
		b := w.browser()
		b.client.Transport = handler{now.Handler}
		b.get(w.authorize("portal")).shows(200, "Username, email or mobile number")
		require.Equal(t, asks, strings.Contains(b.body, "Sign in with a passkey"), url)
		b.signIn("ann", password).shows(200, "Recovery code")
		require.NotContains(t, b.body, "Use a passkey")
	}
}

// asks has the login template demand steps, any of whose methods completes them.
func (w *world) asks(there func() bool, steps ...[]string) {
	w.t.Helper()
	template := questions.LoginTemplate{Found: true}
	for _, types := range steps {
		step := questions.LoginStep{Required: true}
		for _, name := range types {
			step.Methods = append(step.Methods, questions.LoginMethod{Code: name, Type: name})
		}
		template.Steps = append(template.Steps, step)
	}
	w.change(func() { w.template = template })
	w.tell("auth_template", "updated", "1", w.Clock.Now().Millis(), object{"id": "1"})
	wait.Until(w.t, there)
}

// addApp gives the person of a browser an app beside a passkey.
func (b *browser) addApp() *phone {
	b.w.t.Helper()
	p, _ := b.factor("add", "").setUp("app")
	b.w.Clock.Advance(time.Minute)
	return p
}

// Where only apps count, whoever has begun with a passkey shows a password and the app as well.
func TestAPasskeyWhereOnlyAppsCount(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]virtualwebauthn.AuthenticatorOptions{
		"with its user": {}, "without": {UserNotVerified: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, a, _ := withPasskey(t, options)
			p := w.browser().get(base).signIn("ann", password).uses(a).addApp()
			w.demands("portal", func(c *questions.Client) { c.MFA, c.MFAMethods = true, []string{"otp"} })
			b := w.browser().get(w.authorize("portal")).uses(a).shows(200, `value="ann"`)
			b.signIn("ann", password).shows(200, "Code from your authenticator app")
			b.prove(p.next()).answered(callback)
		})
	}
}

// A password takes the place of a passkey in a step that either completes, so that the passkey completes another one.
func TestAPasskeyInEitherStep(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	var b *browser
	w.asks(func() bool {
		w.Clock.Advance(time.Second)
		b = w.browser().get(w.authorize("portal")).uses(a)
		return strings.Contains(b.body, `name="password"`)
	}, []string{"password", "webauthn"}, []string{"webauthn", "otp"})
	b.signIn("ann", password).answered(callback)
}

// Where a sign-in begins with a passkey, a form with a password that no page has shown does not.
func TestAPasswordWhereAPasskeyIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{
		{Required: true, Methods: []questions.LoginMethod{{Code: "p", Type: "webauthn"}}},
	}}
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Sign in with a passkey")
	b.chooses("webauthn").shows(200, "Sign in with a passkey")
	require.Zero(t, w.verified, "nobody looks at it")
}

// Passkeys that are not good are counted: each costs an event.
func TestManyPasskeysThatAreNotGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(w.authorize("portal"))
	wait.Until(t, func() bool {
		b.send(url.Values{"action": {"passkey"}, "passkey": {"{}"}})
		return b.page.StatusCode == 429
	})
	b.shows(429, "too many failed sign-ins").shows(429, "Password")
}

// Whoever has to change the password does so after a passkey, too.
func TestAPasskeyAndAPasswordToChange(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	w.change(func() { w.users["ann"].record["must_change_password"] = true })
	w.tellAndWait()
	b := w.browser().get(w.authorize("portal")).uses(a).shows(200, "Your password has to be changed")
	w.change(func() { delete(w.users["ann"].record, "must_change_password") })
	b.choose("another horse").answered(callback)
}

// A page that was open while the passkey was used elsewhere is still good, once, also for a passkey without a counter.
func TestAPasskeyOnTwoDevices(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{BackupEligible: true})
	without := func(b *browser) url.Values {
		form := a.answer(b)
		asked, err := virtualwebauthn.ParseAssertionOptions(b.options())
		w.must(err)
		key := a.key
		key.Counter = 0
		form.Set("passkey", virtualwebauthn.CreateAssertionResponse(a.party, a.device, key, *asked))
		return form
	}
	laptop := w.browser().get(w.authorize("portal", "prompt", "login"))
	tab, form := laptop.tab(), without(laptop)
	for range 25 {
		w.Clock.Advance(time.Second)
		phone := w.browser().get(w.authorize("portal"))
		phone.send(without(phone)).answered(callback)
		if tab != nil {
			laptop.send(form).answered(callback)
			tab.send(form).shows(200, "That passkey does not work here")
			tab = nil
		}
	}
	again := w.browser()
	again.client.Jar = laptop.client.Jar
	again.get(w.authorize("portal", "prompt", "login")).send(form).shows(200, "That passkey does not work here")
}

// What a step-up goes on with is not older than the application bears.
func TestMaxAgeOfAStepUpThatWaits(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	b := w.browser()
	w.asks(func() bool {
		b = w.browser().get(w.authorize("wiki")).signIn("ann", password)
		return strings.HasPrefix(b.at, "https://wiki.test/cb")
	}, []string{"password"})
	w.demands("portal", func(c *questions.Client) { c.MFA = true })
	b.get(w.authorize("portal", "max_age", "300")).prove("000000").shows(200, "Use a passkey")
	form := a.answer(b)
	w.Clock.Advance(50 * time.Minute)
	b.send(form).shows(200, "Username, email or mobile number")
}

// The right password is right also where a passkey that was shown before is deleted meanwhile.
func TestAPasskeyIsDeletedHalfway(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{UserNotVerified: true})
	b := w.browser().get(w.authorize("portal")).uses(a).shows(200, `value="ann"`)
	w.deletesFirst(0)
	b.signIn("ann", password).answered(callback)
}

// A credential id that somebody has is not taken again.
func TestTheSameCredentialTwice(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	w.addBob()
	b := w.browser().get(base).signIn("bob", password).factor("add", "").chooses("webauthn")
	asked, err := virtualwebauthn.ParseAttestationOptions(b.options())
	require.NoError(t, err)
	b.sendsMade("", virtualwebauthn.CreateAttestationResponse(a.party, a.device, a.key, *asked))
	b.shows(200, "That passkey does not work here").shows(200, "Set up a second factor")
	require.Len(t, w.factors(), 2)
}

// A challenge is of one page: that of the sign-in is none for a second factor, and the other way round.
func TestChallengesOfOtherPages(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{UserNotVerified: true})
	const refused = "That passkey does not work here"
	b := w.browser().get(w.authorize("portal"))
	first := a.answer(b)
	b.signIn("ann", password).send(first).shows(200, refused)
	second := a.answer(b)
	b.tab().get(w.authorize("wiki")).send(second).shows(200, refused)
	done := w.browser().get(w.authorize("portal")).signIn("ann", "wrong")
	at := done.at
	done.post(at, url.Values{"action": {"forgot"}})
	done.post(at, a.answer(w.browser().get(w.authorize("portal"))))
	require.Len(t, w.sessions(), 1)
}

// lost is a world in which ann has a passkey of another site than that of the replica, and no recovery code any more.
func lost(t *testing.T) (*world, *browser) {
	t.Helper()
	w := withMails(t)
	b := w.browser().get(base).signIn("ann", password).factor("add", "").chooses("webauthn")
	b.makes("laptop", virtualwebauthn.AuthenticatorOptions{})
	codes := b.codes()
	b.press("kept")
	for _, code := range codes {
		w.Clock.Advance(time.Minute)
		w.browser().get(w.authorize("wiki")).signIn("ann", password).prove(code).answered(wikiCallback)
	}
	w.demands("portal", func(c *questions.Client) { c.MFA = true })
	now := w.Replica(signin.Spec(signin.DefaultConfig()), testkit.Options{PublicURL: "https://other.test"})
	b = w.browser()
	b.client.Transport = handler{now.Handler}
	return w, b
}

const cannotShow = "it cannot be shown here"

// A password, or a mailed code, is not enough to change anything of somebody who cannot show their factor.
func TestFactorsThatCannotBeShown(t *testing.T) {
	t.Parallel()
	t.Run("an application", func(t *testing.T) {
		t.Parallel()
		w, b := lost(t)
		b.get(w.authorize("portal")).signIn("ann", password).shows(403, cannotShow)
		b.chooses("otp").shows(403, cannotShow)
		b.get(w.authorize("wiki")).signIn("ann", password)
		require.Contains(t, b.at, wikiCallback)
	})
	t.Run("a forgotten password", func(t *testing.T) {
		t.Parallel()
		w, b := lost(t)
		b.get(w.authorize("portal")).send(url.Values{"action": {"forgot"}, "login_name": {"ann"}})
		b.send(url.Values{"action": {"send-code"}, "login_name": {"ann"}}).enter(w.code(1)).shows(403, cannotShow)
		b.choose("a thief's password").shows(403, cannotShow)
		require.Equal(t, password, w.users["ann"].password)
	})
	t.Run("the own page", func(t *testing.T) {
		t.Parallel()
		w, b := lost(t)
		b.get(base).signIn("ann", password).get(base).shows(200, "My account")
		before := w.factors()
		require.Len(t, before, 2)
		for _, f := range before {
			b.factor("remove", f["id"].(string)).shows(403, cannotShow)
		}
		b.factor("renew", "").shows(403, cannotShow)
		b.send(url.Values{"action": {"new-codes"}}).shows(403, cannotShow)
		b.factor("add", "").shows(403, cannotShow)
		b.chooses("otp").shows(403, cannotShow)
		require.Equal(t, before, w.factors())
		b.get(base).shows(200, "My account")
	})
	t.Run("an offer", func(t *testing.T) {
		t.Parallel()
		w, b := lost(t)
		w.change(func() {
			w.template = questions.LoginTemplate{Found: true, Code: "staff", Steps: []questions.LoginStep{
				{Required: true, Methods: []questions.LoginMethod{{Code: "pwd", Type: "password"}}},
				{Methods: []questions.LoginMethod{{Code: "otp", Type: "otp"}}, Enrol: questions.EnrolOffer},
			}}
		})
		b.get(w.authorize("wiki")).signIn("ann", password)
		require.Contains(t, b.at, wikiCallback)
	})
}

// A passkey is good also where the password that was shown before has been replaced.
func TestAPasskeyAfterAReplacedPassword(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Use a passkey")
	w.Clock.Advance(time.Second)
	w.change(func() { w.users["ann"].record["time_password_changed"] = w.Clock.Now() })
	w.tellUser("password_changed", w.users["ann"])
	w.tellAndWait()
	b.get(b.at).shows(200, "Sign in with a passkey").uses(a).answered(callback)
}

// Recovery codes take the place of the passkey of a former name in an optional step, too.
func TestAnOptionalPasskeyOfAFormerName(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"https://other.test", "https://192.0.2.7"} {
		t.Run(public, func(t *testing.T) {
			t.Parallel()
			w, _, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
			w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{
				{Required: true, Methods: []questions.LoginMethod{{Code: "pw", Type: "password"}}},
				{Methods: []questions.LoginMethod{{Code: "key", Type: "webauthn"}}},
			}}
			now := w.Replica(signin.Spec(signin.DefaultConfig()), testkit.Options{PublicURL: public})
			b := w.browser()
			b.client.Transport = handler{now.Handler}
			b.get(w.authorize("portal")).signIn("ann", password).shows(200, "Recovery code")
		})
	}
}

// A form with a passkey does nothing where no page asks for one.
func TestAPasskeyThatNoPageAsksFor(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{})
	w.change(func() { w.users["ann"].mustChange = true })
	b := w.browser().get(w.authorize("portal"))
	form := a.answer(b)
	b.signIn("ann", password).uses(a).shows(200, "Your password has to be changed")
	b.send(form).shows(200, "Your password has to be changed")

	old := w.browser().get(w.authorize("portal"))
	form = a.answer(old)
	now := w.Replica(signin.Spec(signin.DefaultConfig()), testkit.Options{PublicURL: "https://192.0.2.7"})
	b = w.browser()
	b.client.Jar, b.client.Transport = old.client.Jar, handler{now.Handler}
	b.get(w.authorize("portal")).send(form).shows(200, "Username, email or mobile number")
	require.NotContains(t, b.body, "That passkey does not work here")
}

// Where nobody begins with a password, the password of somebody else steps nothing up.
func TestAnothersPasswordAtAStepUp(t *testing.T) {
	t.Parallel()
	w, a, _ := withPasskey(t, virtualwebauthn.AuthenticatorOptions{UserNotVerified: true})
	w.addBob()
	w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{
		{Required: true, Methods: []questions.LoginMethod{{Code: "key", Type: "webauthn"}}},
	}}
	w.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	w.demands("portal", func(c *questions.Client) { c.MFA = true })
	w.Clock.Advance(11 * time.Minute)
	b := w.browser().get(w.authorize("portal"))
	require.NotContains(t, b.body, `name="password"`)
	b.uses(a).shows(200, `name="password"`).signIn("bob", password).shows(200, "do not match")
	require.NotContains(t, b.body, "Set up a second factor")
}
