package signin_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/questions"
)

func copyBody(to io.Writer, answer *http.Response) (int64, error) { return io.Copy(to, answer.Body) }

const password = "correct horse"

var flowPath = regexp.MustCompile(`/flow/[A-Za-z0-9_-]+`)

// sessions are all sessions, as the API lists them.
func (w *world) sessions() []any { return w.admin().Get("/v1/sessions").Object()["items"].([]any) }

func TestAPersonSignsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(w.authorize("portal"))
	b.shows(200, "to continue to Portal")
	require.Equal(t, base+w.authorize("portal"), b.at, "the page is at the request's own address")
	require.Contains(t, b.body, `autocomplete="username webauthn"`)
	require.NotContains(t, b.body, "unsafe")
	b.signIn("ann", password)
	require.NotEmpty(t, b.answered(callback)["code"])
	require.Equal(t, "s", b.answered(callback).Get("state"))
	require.Contains(t, b.body, `href="https://portal.test/callback?code=`, "a link, for browsers that do not go on")

	b.get(w.authorize("wiki")).answered("https://wiki.test/cb")
	require.Len(t, w.sessions(), 1)
	session := w.sessions()[0].(object)
	require.Equal(t, "20", session["user_id"])
	require.Len(t, session["applications"], 2)
	require.Equal(t, "Mozilla/5.0 (X11; Linux) Firefox/140.0", session["browser"])
}

// A wrong password, an unknown name and an account that cannot sign in are answered with the same words.
func TestWrongPasswords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.users["bob"] = ann(w.Clock.Now())
	w.users["bob"].record["status"] = "0"
	bodies := map[string]bool{}
	for _, try := range [][2]string{{"ann", "wrong"}, {"nobody", "wrong"}, {"bob", password}, {"ann", ""}} {
		b := w.browser().get(w.authorize("portal")).signIn(try[0], try[1])
		b.shows(200, "do not match").shows(200, `value="`+try[0]+`"`)
		require.False(t, try[1] != "" && strings.Contains(b.body, try[1]), "no password comes back")
		require.Contains(t, b.at, base+"/flow/")
		b.body = challengeOf.ReplaceAllString(askedOptions.ReplaceAllString(b.body, ""), "")
		text := flowPath.ReplaceAllString(sealedRequest.ReplaceAllString(action.ReplaceAllString(b.body, ""), ""), "")
		bodies[strings.NewReplacer(`value="`+try[0]+`"`, "", b.page.Header.Get("X-Request-Id"),
			"").Replace(text)] = true
		b.get(b.at).shows(200, "do not match")
		b.signIn("ann", password).answered(callback)
	}
	require.Len(t, bodies, 1)
}

// The page shows the step that is due, whatever the browser shows.
func TestBackAndStaleForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(w.authorize("portal"))
	first := *b
	b.signIn("ann", "wrong")
	second := *b
	require.Equal(t, b.at, second.at)
	b.signIn("ann", password).answered(callback)

	t.Run("a finished flow begins again", func(t *testing.T) {
		again := second
		again.get(second.at).answered(callback) // signed in: with a new code at once
		require.NotEqual(t, b.answered(callback).Get("code"), again.answered(callback).Get("code"))
		stale := second
		stale.signIn("ann", "wrong").shows(200, "do not match")
		stale.signIn("ann", password).answered(callback)
	})
	t.Run("the first page is good forever", func(t *testing.T) {
		w.Clock.Advance(48 * time.Hour)
		late := first
		late.signIn("ann", password).answered(callback)
	})
	t.Run("another browser begins again, without the name", func(t *testing.T) {
		other := w.browser().get(second.at)
		other.shows(200, "to continue to Portal")
		require.NotContains(t, other.body, `value="ann"`)
		other.signIn("ann", password).answered(callback)
	})
	t.Run("an expired flow begins again with the name", func(t *testing.T) {
		old := w.browser().get(w.authorize("portal", "prompt", "login")).signIn("ann", "wrong")
		at := old.at
		w.Clock.Advance(2 * time.Hour)
		old.get(at).shows(200, `value="ann"`).signIn("ann", password).answered(callback)
	})
	t.Run("a flow that nobody knows", func(t *testing.T) {
		w.browser().get("/flow/none").shows(200, "Sign in")
	})
}

// Each tab is a flow; a session made in one serves the others.
func TestTabs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(w.authorize("portal"))
	other := b.tab().get(w.authorize("wiki"))
	other.signIn("ann", "wrong").shows(200, "do not match")
	b.signIn("ann", password).answered(callback)
	other.get(other.at).answered("https://wiki.test/cb")
	require.Len(t, w.sessions(), 1)
}

func TestRequestsThatAskAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.answered(callback)
	cookies := b.cookie()
	b.get(w.authorize("portal", "prompt", "login")).shows(200, "to continue to Portal")
	b.signIn("ann", password).answered(callback)
	require.NotEqual(t, cookies, b.cookie(), "a step-up has a new cookie")
	require.Len(t, w.sessions(), 1)

	w.Clock.Advance(2 * time.Minute)
	b.get(w.authorize("portal", "max_age", "60")).shows(200, "to continue to Portal")
	b.get(w.authorize("portal", "max_age", "600")).answered(callback)
	b.get(w.authorize("portal", "prompt", "select_account")).shows(200, "Ann Lee").press("continue").answered(callback)
	b.get(w.authorize("portal", "prompt", "none")).answered(callback)
	require.Equal(t, "login_required", w.browser().get(w.authorize("portal", "prompt", "none")).
		answered(callback).Get("error"))
	require.Equal(t, "login_required", b.get(w.authorize("portal", "prompt", "none", "max_age", "60")).
		answered(callback).Get("error"))
	require.Equal(t, "unmet_authentication_requirements", b.get(w.authorize("portal", "prompt", "none", "acr_values",
		"urn:idplatform:aal:2")).answered(callback).Get("error"))
	b.get(w.authorize("portal", "acr_values", "urn:idplatform:aal:2")).answered(callback)
}

func (b *browser) cookie() string {
	u, _ := url.Parse(base)
	for _, c := range b.client.Jar.Cookies(u) {
		if strings.HasPrefix(c.Name, "__Host-idp_session_acme") {
			return c.Value
		}
	}
	return ""
}

func TestWithoutSSOEachRequestAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.clients["wiki"]
	c.SSO = false
	w.clients["wiki"] = c
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.get(w.authorize("wiki")).shows(200, "to continue to Wiki").signIn("ann",
		password).answered("https://wiki.test/cb")
	b.get(w.authorize("wiki")).shows(200, "to continue to Wiki")
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refused["9"] = "not_granted"
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.shows(403, "You cannot open Portal").shows(403, "Ann Lee").shows(403, "rule of type app").
		shows(403, b.page.Header.Get("X-Request-Id"))
	require.Len(t, w.sessions(), 1, "the person is signed in all the same")
	require.Equal(t, "access_denied", b.press("deny").answered(callback).Get("error"))
	b.get(w.authorize("portal")).shows(403, "You cannot open Portal").press("another").shows(200,
		"to continue to Portal")
	require.Equal(t, "access_denied", b.get(w.authorize("portal", "prompt", "none")).answered(callback).Get("error"))
	w.change(func() { delete(w.refused, "9") })
	b.get(w.authorize("portal")).answered(callback)
}

// Without an answer nobody enters; the form is kept.
func TestServicesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.away["users"] = true
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.shows(503, "not answering").shows(503, `value="ann"`)
	require.NotEmpty(t, b.page.Header.Get("Retry-After"))
	w.change(func() { w.away["users"], w.away["permissions"] = false, true })
	b.signIn("ann", password).shows(503, "Try again")
	require.Equal(t, "temporarily_unavailable", b.tab().get(w.authorize("portal", "prompt", "none")).
		answered(callback).Get("error"))
	at := b.at
	w.change(func() { w.away["permissions"] = false })
	b.get(at).answered(callback)
}

// Attempts that run at the same time have all found room. Only as many as the settings bear learn whether they were
// right.
func TestTooManyFailuresAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admin().Patch("/v1/sign-in/settings", object{"failures_per_minute": 3}).OK(nil)
	const attempts = 8
	browsers := make([]*browser, attempts)
	for i := range browsers {
		browsers[i] = w.browser().get(w.authorize("portal"))
		browsers[i].header.Set("X-Forwarded-For", "203.0.113.9")
	}
	var begun sync.WaitGroup
	begun.Add(attempts)
	w.change(func() { w.verifying = func() { begun.Done(); begun.Wait() } })
	told := basic.AtOnce(attempts, func(i int) int { return browsers[i].signIn("ann", "wrong").page.StatusCode })
	require.Equal(t, map[int]int{http.StatusOK: 3, http.StatusTooManyRequests: attempts - 3}, told)
}

func TestTooManyFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admin().Patch("/v1/sign-in/settings", object{"failures_per_minute": 3}).OK(nil)
	b := w.browser().get(w.authorize("portal"))
	b.header.Set("X-Forwarded-For", "203.0.113.9")
	for range 3 {
		b.signIn("ann", "wrong").shows(200, "do not match")
	}
	before := w.verified
	b.signIn("ann", password).shows(429, "wait a minute").shows(429, `value="ann"`)
	require.Equal(t, before, w.verified, "the right password is not looked at")
	elsewhere := w.browser()
	elsewhere.header.Set("X-Forwarded-For", "203.0.113.10")
	elsewhere.get(w.authorize("portal")).signIn("ann", password).answered(callback)
	w.Clock.Advance(time.Minute)
	b.signIn("ann", password).answered(callback)

	loopback := w.browser().get(w.authorize("portal"))
	loopback.header.Set("X-Forwarded-For", "127.0.0.1")
	for range 5 {
		loopback.signIn("ann", "wrong").shows(200, "do not match")
	}
	loopback.signIn("ann", password).answered(callback)
}

// from is a browser at an address.
func (w *world) from(address string) *browser {
	b := w.browser()
	b.header.Set("X-Forwarded-For", address)
	return b
}

// Strangers who use up the limits of an address or a tenant keep out nobody who has the right password: neither a
// browser in which the person has signed in before, nor one from another network. Device codes count apart.
func TestFailuresOfStrangersRefuseNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admin().Patch("/v1/sign-in/settings", object{"failures_per_minute": 2, "failures_of_tenant": 6}).OK(nil)
	known := w.from("203.0.113.9").get(w.authorize("portal")).signIn("ann", password)
	known.answered(callback)
	for i := range 8 {
		stranger := w.from("2001:db8:" + strconv.Itoa(i) + "::1").get("/device")
		stranger.post(base+"/device", url.Values{"user_code": {"BCDF-GHJK"}}).shows(200, "")
	}
	w.from("203.0.113.10").get(w.authorize("portal")).signIn("ann", password).answered(callback)
	for i := range 6 {
		w.from("203.0.113."+strconv.Itoa(9+i%3)).get(w.authorize("portal")).signIn("ann", "wrong").shows(200, "match")
	}
	w.from("203.0.113.9").get(w.authorize("portal")).signIn("ann", password).shows(429, "wait a minute")
	known.get(w.authorize("portal", "prompt", "login")).signIn("Ann@acme.test ", "wrong").shows(200, "match")
	known.signIn("ann", password).answered(callback)
	w.from("203.0.113.80").get(w.authorize("portal")).signIn("ann", password).answered(callback)
	known.get(w.authorize("portal", "prompt", "login")).signIn("bob", password).shows(429, "wait a minute")
}

// Who has neither a session nor a password does not fill the store.
func TestFlowsOfStrangersAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	known := w.from("203.0.113.9").get(w.authorize("portal")).signIn("ann", password)
	known.answered(callback)
	status := 0
	for range 1000 { // far more than there is room for, however slowly they come
		status = w.from("203.0.113.9").get(w.authorize("portal")).press("another").page.StatusCode
		if status != http.StatusOK {
			break
		}
	}
	require.Equal(t, http.StatusTooManyRequests, status)
	w.from("203.0.113.10").get(w.authorize("portal")).press("another").shows(200, "Sign in")
	w.from("203.0.113.9").get(w.authorize("portal")).signIn("ann", password).answered(callback)
	known.get(w.authorize("portal", "prompt", "select_account")).press("continue").answered(callback)
}

func TestPasswordThatMustBeChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.users["ann"].mustChange = true
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.shows(200, "Choose a new password").shows(200, `value="ann" autocomplete="username"`)
	require.Empty(t, w.sessions(), "nobody is signed in yet")
	next := func(one, two string) *browser {
		return b.send(url.Values{"action": {"new-password"}, "password": {one}, "repeated": {two}})
	}
	next("battery staple", "battery stable").shows(200, "not the same")
	next("short", "short").shows(200, "cannot be used")
	b.get(w.authorize("portal")).shows(200, "to continue to Portal")
	b.signIn("ann", password)
	next("battery staple", "battery staple").answered(callback)
	require.Len(t, w.sessions(), 1)
	w.browser().get(w.authorize("portal")).signIn("ann", "battery staple").answered(callback)
}

// Whoever knew the old password has no right to set a new one after that.
func TestANewPasswordEndsWhatTheOldOneProved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.users["ann"].mustChange = true
	next := url.Values{"action": {"new-password"}, "password": {"battery staple"}, "repeated": {"battery staple"}}
	mallory := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Choose a new password")
	w.Clock.Advance(time.Second)
	w.browser().get(w.authorize("portal")).signIn("ann", password).send(next).answered(callback)
	next.Set("password", "mine staple")
	next.Set("repeated", "mine staple")
	mallory.send(next).shows(200, "to continue to Portal")
	require.Equal(t, "battery staple", w.users["ann"].password)
	require.Len(t, w.sessions(), 1)
}

func TestSubAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.clients["portal"]
	c.SubAccounts = true
	w.clients["portal"] = c
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.shows(403, "you have no account in this application")
	w.change(func() {
		w.accounts["9"] = []questions.SubAccount{{ID: "1", Account: "alee", DisplayName: "Ann"}}
	})
	b.get(w.authorize("portal")).answered(callback)
	w.change(func() {
		w.accounts["9"] = append(w.accounts["9"], questions.SubAccount{ID: "2", Account: "root", IsDefault: true})
	})
	b.get(w.authorize("portal")).shows(200, "several accounts").shows(200, "alee")
	b.send(url.Values{"action": {"account"}, "sub_account": {"404"}}).shows(200, "several accounts")
	b.send(url.Values{"action": {"account"}, "sub_account": {"2"}}).answered(callback)
}

func TestConsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.clients["portal"]
	c.SignIn.Consent = true
	w.clients["portal"] = c
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.shows(200, "Portal wants access to your account").shows(200, "Your email address").shows(200, "Ann Lee")
	require.Equal(t, "access_denied", b.press("deny").answered(callback).Get("error"))
	require.Equal(t, "consent_required", b.get(w.authorize("portal", "prompt", "none")).answered(callback).Get("error"))
	b.get(w.authorize("portal")).shows(200, "Portal wants").press("agree").answered(callback)
	b.get(w.authorize("portal")).answered(callback)
	b.get(w.authorize("portal", "scope", "openid profile email phone")).shows(200, "Your phone number")
	b.get(w.authorize("portal", "prompt", "consent")).shows(200, "Portal wants")
	consents := w.admin().Get("/v1/consents?user_id=20&app_id=9").Object()["items"].([]any)
	require.Len(t, consents, 1)
	w.admin().Delete("/v1/consents/"+consents[0].(object)["id"].(string), nil).OK(nil)
	b.get(w.authorize("portal")).shows(200, "Portal wants")
}

func TestMethodsThatAreMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.template = questions.LoginTemplate{Found: true, Code: "staff", Steps: []questions.LoginStep{
		{Required: true, Methods: []questions.LoginMethod{{Code: "pw", Type: "password"}}},
		{Required: true, Methods: []questions.LoginMethod{{Code: "mail", Type: "mail"}, {Code: "sms", Type: "sms"}}},
	}}
	w.admin().Patch("/v1/sign-in/settings", object{"texts": object{"help": object{"en": "Call 4711."}}}).OK(nil)
	b := w.browser().get(w.authorize("portal"))
	b.shows(403, "a code by mail").shows(403, "a code by text message").shows(403, "Call 4711.")
	require.Equal(t, "login_required", b.get(w.authorize("portal", "prompt", "none")).answered(callback).Get("error"))
	optional := newWorld(t)
	optional.template = w.template
	optional.template.Steps[1].Required = false
	optional.browser().get(optional.authorize("portal")).signIn("ann", password).answered(callback)
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, row := range map[string]struct{ header, query, want string }{
		"nothing": {"", "", `lang="en"`}, "the browser": {"zh-CN,zh;q=0.9,en;q=0.8", "", `lang="zh-Hans"`},
		"the browser's weights": {"en;q=0.5, zh;q=0.8", "", `lang="zh-Hans"`},
		"the application":       {"zh-CN", "ui_locales=en", `lang="en"`},
		"the page":              {"en", "ui_locales=en&lang=zh", `lang="zh-Hans"`},
		"an unknown one":        {"tlh", "ui_locales=fr", `lang="en"`},
	} {
		b := w.browser()
		b.header.Set("Accept-Language", row.header)
		b.get(w.authorize("portal")+"&"+row.query).shows(200, row.want)
		if name == "the page" {
			b.shows(200, "登录").signIn("ann", "wrong").shows(200, "不匹配")
			b.get(w.authorize("wiki")).shows(200, `lang="zh-Hans"`)
		}
	}
	w.admin().Patch("/v1/sign-in/settings", object{"locale": "zh"}).OK(nil)
	w.browser().get(w.authorize("portal")).shows(200, `lang="zh-Hans"`)
}

func TestPageErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.browser().get(w.authorize("portal", "client_id", "404")).shows(400, "This link does not work")
	w.browser().get(w.authorize("portal", "redirect_uri", "https://evil.test")).shows(400, "This link does not work")
	require.Equal(t, "unsupported_response_type", w.browser().get(w.authorize("portal", "response_type", "token")).
		answered(callback).Get("error"))
	w.browser().get("https://idp.test/sign-in/Not%20A%20Tenant").shows(404, "nothing here")
	b := w.browser().get(w.authorize("portal"))
	b.header.Set("Sec-Fetch-Site", "cross-site")
	b.signIn("ann", password).shows(403, "another site")
}

// A form from another site comes without cookies, so a page of this service sends it on. Nothing is stored before:
// anybody can send such forms.
func TestAuthorizeByForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q, err := url.ParseQuery(strings.TrimPrefix(w.authorize("portal"), "/authorize?"))
	require.NoError(t, err)
	b := w.browser()
	fromElsewhere := func() *browser {
		b.header.Set("Sec-Fetch-Site", "cross-site")
		b.post(base+"/authorize", q)
		delete(b.header, "Sec-Fetch-Site")
		b.shows(200, `action="/sign-in/acme/flow"`)
		require.Contains(t, b.page.Header.Get("Content-Security-Policy"), "form-action 'self'")
		require.Contains(t, b.page.Header.Get("Content-Security-Policy"), "'sha256-")
		return b
	}
	fromElsewhere().press("begin").shows(200, "to continue to Portal").signIn("ann", password).answered(callback)
	fromElsewhere().press("begin").answered(callback)
	b.get(w.authorize("portal", "response_mode", "form_post")).shows(200, `action="https://portal.test/callback"`)
	require.Contains(t, b.page.Header.Get("Content-Security-Policy"), "'sha256-")
	require.NotContains(t, b.page.Header.Get("Content-Security-Policy"), "form-action")

	r := httptest.NewRequest(http.MethodPost, base+"/authorize", strings.NewReader(q.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	recorder := httptest.NewRecorder()
	w.Handler.ServeHTTP(recorder, r)
	require.Equal(t, http.StatusOK, recorder.Code)
	require.Empty(t, recorder.Result().Cookies(), "they would replace those that did not come")
}
