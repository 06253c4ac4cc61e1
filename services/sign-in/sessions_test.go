package signin_test

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
)

// tellUser publishes an event about a user, as the users service does.
func (w *world) tellUser(action string, u *user) {
	w.t.Helper()
	u.sequence += 10
	w.tell("user", action, u.record["id"].(string), u.sequence, u.record)
}

// tell publishes an event of another service.
func (w *world) tell(noun, action, id string, sequence int64, record object) {
	w.t.Helper()
	w.tellData(noun, action, id, sequence, object{"record": record})
}

func (w *world) tellData(noun, action, id string, sequence int64, data object) {
	w.t.Helper()
	w.TestTells(noun)
	number := strconv.FormatInt(sequence, 10)
	event, err := json.Marshal(object{
		"specversion": "1.0", "id": noun + "/" + id + "/" + number, "source": "/" + noun + "s",
		"type": "idp." + noun + "." + action, "subject": id, "time": w.Clock.Now(), "tenantid": "acme",
		"sequence": number, "actor": "client:importer", "data": data,
	})
	w.must(err)
	m := nats.NewMsg("idp.events.acme." + noun + "." + action)
	m.Data = event
	wait.Until(w.t, func() bool {
		_, err := w.Deps.Bus.JetStream().PublishMsg(context.Background(), m)
		return err == nil
	})
}

// challenge is one of a good verifier (RFC 7636 appendix B).
const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

func (w *world) signedIn() *browser {
	w.t.Helper()
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.answered(callback)
	return b
}

// Sessions end with the user, and not because others have guessed passwords.
func TestSessionsEndWithTheUser(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		action string
		change object
		ends   bool
	}{
		"disabled":           {"disabled", object{"status": "0"}, true},
		"resigned":           {"resigned", object{"status": "resigned"}, true},
		"locked by a caller": {"locked", object{"locked": true, "lock_reason": "suspicious"}, true},
		"locked by failures": {"locked", object{"locked": true, "lock_reason": questions.LockedByFailures},
			false},
		"a new password":           {"password_set", object{"time_password_changed": "2100-01-01T00:00:00.000Z"}, true},
		"another name":             {"updated", object{"display_name": "Ann Other"}, false},
		"deleted":                  {"deleted", object{}, true},
		"an event from before now": {"disabled", object{"status": "0", "stale": true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.signedIn()
			u := w.users["ann"]
			for member, value := range row.change {
				if u.record[member] = value; member == "stale" {
					delete(u.record, member)
					u.sequence = -5
				}
			}
			w.tellUser(row.action, u)
			if row.ends {
				wait.Until(t, func() bool { return len(w.sessions()) == 0 })
				b.get(w.authorize("portal")).shows(200, "to continue to Portal")
				return
			}
			if name == "another name" {
				wait.Until(t, func() bool { return strings.Contains(b.get(base).body, "Ann Other") })
			}
			marker := ann(w.Clock.Now())
			marker.record["id"], marker.sequence = "20", 1000
			w.tellUser("updated", marker)
			wait.Until(t, func() bool { return strings.Contains(b.get(base).body, "Ann Lee") })
			require.Len(t, w.sessions(), 1)
		})
	}
}

// Wrong passwords of strangers lock the password, and not what the person is doing.
func TestFailuresOfStrangersEndNoTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rp := w.relyingParty("portal")
	b := w.browser().get(rp.config.AuthCodeURL("s")).signIn("ann", password)
	token, err := rp.config.Exchange(rp.ctx, b.answered(callback).Get("code"))
	require.NoError(t, err)
	u := w.users["ann"]
	u.record["locked"], u.record["lock_reason"] = true, questions.LockedByFailures
	u.record["display_name"] = "Ann Other"
	w.tellUser("locked", u)
	wait.Until(t, func() bool { return strings.Contains(b.get(base).body, "Ann Other") })
	_, err = rp.provider.UserInfo(rp.ctx, rp.config.TokenSource(rp.ctx, token))
	require.NoError(t, err)
	b.get(rp.config.AuthCodeURL("s"))
	_, err = rp.config.Exchange(rp.ctx, b.answered(callback).Get("code"))
	require.NoError(t, err)
}

// A new password ends refresh tokens without a session, though the sign-in that follows it brings the user's new state
// before the event does. Those from that sign-in stay.
func TestANewPasswordEndsOfflineTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rp := w.relyingParty("portal")
	rp.config.Scopes = append(rp.config.Scopes, "offline_access")
	b := w.browser().get(rp.config.AuthCodeURL("s")).signIn("ann", password)
	exchange := func() *oauth2.Token {
		token, err := rp.config.Exchange(rp.ctx, b.answered(callback).Get("code"))
		require.NoError(t, err)
		return token
	}
	refresh := func(token *oauth2.Token) error {
		_, err := rp.config.TokenSource(rp.ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
		return err
	}
	b.press("agree")
	former := exchange()
	require.NoError(t, refresh(former))
	w.Clock.Advance(time.Second)
	b.get(base).post(base+"/password", url.Values{
		"old": {password}, "password": {"battery staple"}, "repeated": {"battery staple"},
	}).shows(200, "The password is changed")
	b.get(rp.config.AuthCodeURL("s"))
	later := exchange()
	u := w.users["ann"]
	w.tell("user", "password_changed", "20", u.sequence, u.record)
	wait.Until(t, func() bool { return refresh(former) != nil })
	require.NoError(t, refresh(later))
	require.Len(t, w.sessions(), 1, "it goes on with the new password")
}

// grants are all grants, as the API lists them.
func (w *world) grants(query string) []any {
	return w.admin().Get("/v1/grants" + query).Object()["items"].([]any)
}

// offline lets an application in that goes on after the session, and returns its tokens.
func (w *world) offline(rp *relyingParty, b *browser) *oauth2.Token {
	w.t.Helper()
	rp.config.Scopes = []string{"openid", "offline_access"}
	b.get(rp.config.AuthCodeURL("s"))
	if !strings.HasPrefix(b.at, callback) {
		b.shows(200, "Access while you are not here").press("agree")
	}
	token, err := rp.config.Exchange(rp.ctx, b.answered(callback).Get("code"))
	require.NoError(w.t, err)
	return token
}

func (rp *relyingParty) refresh(token *oauth2.Token) error {
	_, err := rp.config.TokenSource(rp.ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	return err
}

// What goes on after the session is agreed to, is listed, and can be ended by the person, by an administrator and with
// the sessions. The other ends of a grant are told, too.
func TestGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rp := w.relyingParty("portal")
	b := w.signedIn()
	rp.config.Scopes = []string{"openid", "offline_access"}
	silent := b.tab().get(rp.config.AuthCodeURL("s", oauth2.SetAuthURLParam("prompt", "none")))
	require.Equal(t, "consent_required", silent.answered(callback).Get("error"))
	token := w.offline(rp, b)
	again := w.offline(rp, b)
	require.Len(t, w.grants("?user_id=20&app_id=9"), 2)
	require.Empty(t, w.grants("?user_id=21"))
	require.Empty(t, w.grants("?app_id=8"))
	first := w.grants("")[0].(object)
	require.Equal(t, []any{"20", "9", "portal", []any{"openid", "offline_access"}, []any{}}, []any{first["user_id"],
		first["app_id"], first["client_id"], first["scopes"], first["resources"]})
	w.Clock.Advance(90 * time.Minute)
	require.NoError(t, rp.refresh(token))
	used := w.admin().Get("/v1/grants/" + first["id"].(string)).Object()
	require.Equal(t, w.Clock.Now().String(), used["time_used"])
	require.Equal(t, w.Clock.Now().Add(30*24*time.Hour).String(), used["time_expires"])
	require.Equal(t, first["version"], used["version"], "nobody has changed it")

	b.get("/logout").press("").shows(200, "signed out")
	require.Empty(t, w.sessions())
	require.NoError(t, rp.refresh(token), "it goes on")
	admin := w.admin()
	w.As("globex", auth.SignInWrite).Delete("/v1/grants/"+first["id"].(string), nil).Problem(404, "not_found")
	w.As("acme", auth.SignInRead).Delete("/v1/grants/"+first["id"].(string), nil).Problem(403, "forbidden")
	admin.Delete("/v1/grants/"+first["id"].(string)+"?dry_run=true", nil).OK(nil)
	require.NoError(t, rp.refresh(token))
	admin.Delete("/v1/grants/"+first["id"].(string), nil).OK(nil)
	require.Error(t, rp.refresh(token))
	require.NoError(t, rp.refresh(again))

	other := w.signedIn()
	require.Equal(t, object{"ended": 1.0}, admin.Post("/v1/sessions/end", object{"user_ids": []string{"20"}}).Object())
	require.NoError(t, rp.refresh(again))
	both := object{"user_ids": []string{"20"}, "grants": true}
	require.Equal(t, object{"ended": 0.0, "grants": 1.0}, admin.Post("/v1/sessions/end?dry_run=true", both).Object())
	require.Equal(t, object{"ended": 0.0, "grants": 1.0}, admin.Post("/v1/sessions/end", both).Object())
	require.Error(t, rp.refresh(again))
	other.get(base).shows(200, "Sign in").signIn("ann", password)
	third := w.offline(rp, other)
	require.Equal(t, object{"ended": 1.0, "grants": 1.0},
		admin.Post("/v1/sessions/end", object{"app_id": "9", "grants": true}).Object())
	require.Error(t, rp.refresh(third))

	other.get(base).signIn("ann", password).shows(200, "Where you are signed in")
	require.NotContains(t, other.body, "Access while you are away")
	fourth := w.offline(rp, other)
	id := w.grants("")[0].(object)["id"].(string)
	other.get(base).shows(200, "Access while you are away").shows(200, "Portal")
	w.users["bob"] = ann(w.Clock.Now())
	w.users["bob"].record["id"], w.users["bob"].record["username"] = "21", "bob"
	bob := w.browser().get(base).signIn("bob", password)
	bob.post(base+"/grants", url.Values{"grant": {id}})
	require.NoError(t, rp.refresh(fourth), "it is not his")
	other.post(base+"/grants", url.Values{"grant": {id}}).shows(200, "no access any more")
	require.Error(t, rp.refresh(fourth))

	reasons := map[string]string{}
	revoke := func(token *oauth2.Token) {
		asPortal(w.Stranger()).Do("POST", ofPages+"/revoke", url.Values{"token": {token.RefreshToken}}.Encode()).OK(nil)
	}
	revoke(w.offline(rp, other))
	fifth := w.offline(rp, other)
	consents := admin.Get("/v1/consents").Object()["items"].([]any)
	admin.Delete("/v1/consents/"+consents[0].(object)["id"].(string), nil).OK(nil)
	require.Error(t, rp.refresh(fifth))
	w.offline(rp, other)
	w.Clock.Advance(31 * 24 * time.Hour)
	w.RunTask("end token families")
	require.Empty(t, w.grants(""))
	w.EventsUntil(func(e stream.Event) bool {
		if e.Type == "idp.grant.ended" {
			var data struct {
				Reason string `json:"reason"`
			}
			require.NoError(t, json.Unmarshal(e.Data, &data))
			reasons[data.Reason] = e.Actor
		}
		return reasons["expired"] != ""
	})
	require.Equal(t, base+"#20", reasons["person"])
	for _, reason := range []string{"api", "revoked", "consent"} {
		require.Contains(t, reasons, reason)
	}
}

// A program on the person's device is asked about each time: any other one there can send its request.
func TestProgramsAskForOfflineAccessEachTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.clients["portal"]
	c.Category, c.Secrets = "3", nil
	w.clients["portal"] = c
	b := w.browser().get(base).signIn("ann", password)
	asked := w.authorize("portal", "scope", "openid offline_access", "code_challenge", challenge,
		"code_challenge_method", "S256")
	for range 2 {
		b.get(asked).shows(200, "Access while you are not here").press("agree").answered(callback)
	}
	require.Equal(t, "consent_required", b.get(asked+"&prompt=none").answered(callback).Get("error"))
	b.get(w.authorize("portal", "code_challenge", challenge, "code_challenge_method", "S256")).answered(callback)
}

// The users service learns who has signed in with a browser, and so does not count its failures with those of
// strangers.
func TestALoginTellsWhomTheBrowserIsKnownTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(w.authorize("portal")).signIn("ann", "wrong")
	b.signIn("ann", password).answered(callback)
	b.get(w.authorize("wiki", "prompt", "login")).signIn("bob", "wrong").signIn("ann", password)
	w.browser().get(w.authorize("portal")).signIn("ann", password).answered(callback)
	w.change(func() {
		require.Len(t, w.browsers, 5)
		own, stranger := w.browsers[0].ID, w.browsers[4].ID
		require.NotEmpty(t, own)
		require.NotEqual(t, own, stranger)
		require.Equal(t, []questions.Browser{
			{ID: own}, {ID: own}, {ID: own, KnownTo: []string{"20"}}, {ID: own, KnownTo: []string{"20"}},
			{ID: stranger},
		}, w.browsers)
	})
}

// What was granted before a consent was withdrawn is no good, even if no tokens were made of it yet.
func TestAWithdrawnConsentEndsCodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rp := w.relyingParty("portal")
	asked := rp.config.AuthCodeURL("s", oauth2.SetAuthURLParam("prompt", "consent"))
	b := w.browser().get(asked).signIn("ann", password)
	code := b.press("agree").answered(callback).Get("code")
	consents := w.admin().Get("/v1/consents").Object()["items"].([]any)
	require.Len(t, consents, 1)
	w.admin().Delete("/v1/consents/"+consents[0].(object)["id"].(string), nil).OK(nil)
	_, err := rp.config.Exchange(rp.ctx, code)
	require.ErrorContains(t, err, "invalid_grant")

	code = b.get(asked).press("agree").answered(callback).Get("code")
	again := w.admin().Get("/v1/consents").Object()["items"].([]any)
	require.Len(t, again, 1)
	w.admin().Delete("/v1/consents/"+again[0].(object)["id"].(string), nil).OK(nil)
	later := b.get(asked).press("agree").answered(callback).Get("code")
	_, err = rp.config.Exchange(rp.ctx, code)
	require.ErrorContains(t, err, "invalid_grant", "the consent that was given again is another one")
	_, err = rp.config.Exchange(rp.ctx, later)
	require.NoError(t, err)
}

// A program on a device without a browser. Only the browser in which the code was entered goes on with the request: who
// has got a link to it sees nothing to agree to.
func TestDeviceCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clients["tv"] = questions.Client{
		AppID: "7", ClientID: "tv", Name: "TV", Category: "3", Enabled: true, SSO: true,
		OIDC: &questions.OIDCSettings{SignatureAlgorithm: "ES256"},
	}
	rp := w.relyingParty("portal")
	config := oauth2.Config{ClientID: "tv", Endpoint: rp.provider.Endpoint(), Scopes: []string{"openid", "profile"}}
	config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	begun, err := config.DeviceAuth(rp.ctx)
	require.NoError(t, err)
	b := w.browser().get(base + "/device")
	b.post(base+"/device", url.Values{"user_code": {begun.UserCode}}).signIn("ann", password)
	link := b.shows(200, "TV wants access to your account").shows(200, begun.UserCode).shows(200, "192.0.2.1").at
	w.signedIn().get(link).shows(200, "Where you are signed in")
	w.browser().get(link).shows(200, "Sign in")
	b.get(link).shows(200, "TV wants access to your account").press("agree").shows(200, "device")
	token, err := config.DeviceAccessToken(rp.ctx, begun)
	require.NoError(t, err)
	info, err := rp.provider.UserInfo(rp.ctx, oauth2.StaticTokenSource(token))
	require.NoError(t, err)
	require.Equal(t, "20", info.Subject)
	b.get(link).shows(200, "Where you are signed in")
}

// An application that is disabled reads nothing more.
func TestTokensEndWithTheApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rp := w.relyingParty("portal")
	b := w.browser().get(rp.config.AuthCodeURL("s")).signIn("ann", password)
	token, err := rp.config.Exchange(rp.ctx, b.answered(callback).Get("code"))
	require.NoError(t, err)
	source := rp.config.TokenSource(rp.ctx, token)
	_, err = rp.provider.UserInfo(rp.ctx, source)
	require.NoError(t, err)
	w.tell("application", "disabled", "9", 10, object{"id": "9", "status": "0"})
	wait.Until(t, func() bool {
		_, err := rp.provider.UserInfo(rp.ctx, source)
		return err != nil
	})
}

func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.signedIn()
	for range 2 {
		w.Clock.Advance(7 * time.Hour)
		b.get(w.authorize("portal")).answered(callback)
	}
	w.Clock.Advance(8 * time.Hour)
	w.RunTask("end sessions")
	b.get(w.authorize("portal")).shows(200, "to continue to Portal")
	require.Empty(t, w.sessions())
	b = w.signedIn()
	for range 4 {
		w.Clock.Advance(6 * time.Hour)
		b.get(w.authorize("portal"))
	}
	b.get(w.authorize("portal")).shows(200, "to continue to Portal")
}

func TestSessionsOfTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, other := w.signedIn(), w.signedIn()
	other.get(w.authorize("wiki")).answered("https://wiki.test/cb")
	admin := w.admin()
	count := func(query string) int { return len(admin.Get("/v1/sessions" + query).Object()["items"].([]any)) }
	require.Equal(t, 2, count("?user_id=20"))
	require.Equal(t, 1, count("?app_id=8"))
	require.Equal(t, 1, count("?app_id=8&user_id=20"))
	require.Equal(t, 0, count("?user_id=21"))
	admin.Post("/v1/sessions/end", object{}).Problem(400, "invalid_parameters", "body")
	admin.Post("/v1/sessions/end", object{"user_ids": []string{"20"}, "app_id": "8"}).Problem(400, "invalid_parameters", "body")
	require.EqualValues(t, 1, admin.Post("/v1/sessions/end?dry_run=true", object{"app_id": "8"}).Object()["ended"])
	require.EqualValues(t, 1, admin.Post("/v1/sessions/end", object{"app_id": "8"}).Object()["ended"])
	other.get(w.authorize("wiki")).shows(200, "to continue to Wiki")
	id := w.sessions()[0].(object)["id"].(string)
	answer := admin.Get("/v1/sessions/" + id)
	require.NotContains(t, string(answer.Body), "hash")
	admin.With("If-Match", `"99"`).Delete("/v1/sessions/"+id, nil).Problem(412, "version_mismatch")
	w.As("globex", auth.SignInWrite).Delete("/v1/sessions/"+id, nil).Problem(404, "not_found")
	admin.Delete("/v1/sessions/"+id+"?dry_run=true", nil).OK(nil)
	require.Len(t, w.sessions(), 1)
	admin.Delete("/v1/sessions/"+id, nil).OK(nil)
	b.get(w.authorize("portal")).shows(200, "to continue to Portal")
}

// The person's own page.
func TestOwnPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(base).shows(200, "Sign in")
	b.signIn("ann", password).shows(200, "Where you are signed in").shows(200, "This browser")
	other := w.signedIn()
	b.get(base)
	theirs := ""
	w.Clock.Advance(6 * time.Minute)
	for _, s := range w.sessions() {
		if len(s.(object)["applications"].([]any)) > 0 {
			theirs = s.(object)["id"].(string)
		}
	}
	b.post(base+"/sessions", url.Values{"session": {theirs}}).shows(200, "Sign in")
	require.Len(t, w.sessions(), 2, "the sign-in is too long ago")
	b.signIn("ann", password).shows(200, "That browser is signed out")
	other.get(w.authorize("portal")).shows(200, "to continue to Portal")

	other = w.signedIn()
	change := func(old, one, two string) *browser {
		return b.post(base+"/password", url.Values{"old": {old}, "password": {one}, "repeated": {two}})
	}
	change("wrong", "battery staple", "battery staple").shows(200, "The present password is not right")
	change(password, "battery staple", "x").shows(200, "not the same")
	change(password, "short", "short").shows(200, "cannot be used")
	before := b.cookie()
	change(password, "battery staple", "battery staple").shows(200, "The password is changed")
	require.NotEqual(t, before, b.cookie())
	other.get(w.authorize("portal")).shows(200, "to continue to Portal")
	require.Len(t, w.sessions(), 1)
	b.post(base+"/sessions", url.Values{"session": {w.sessions()[0].(object)["id"].(string)}}).shows(200, "Sign in")
	require.Empty(t, w.sessions())
	b.post(base+"/consents", url.Values{"consent": {"1"}}).shows(200, "Sign in")
	b.signIn("ann", "battery staple").shows(200, "Nothing has changed, because your session had ended")
}

// The own page has links to the applications that the person may use.
func TestOwnApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launchable = []questions.Launchable{
		{ID: "9", Name: "wiki", LoginURL: "https://wiki.test:8443/in?a=1&b=2"}, {ID: "7", Name: "Shop & <b>more</b>"},
		{ID: "8", Name: "Payroll", LoginURL: "https://payroll.test/"},
	}
	w.refused["8"] = "not_granted"
	b := w.browser().get(base).signIn("ann", password).shows(200, "My applications")
	link := regexp.MustCompile(`(?s)<li><a href="([^"]*)">.*?<strong>([^<]*)</strong>`)
	links := link.FindAllStringSubmatch(b.body, -1)
	require.Len(t, links, 2, "by name")
	require.Equal(t, []string{"/sign-in/acme/saml/start/7", "Shop &amp; &lt;b&gt;more&lt;/b&gt;"}, links[0][1:])
	require.Equal(t, []string{"https://wiki.test:8443/in?a=1&amp;b=2", "wiki"}, links[1][1:])
	b.shows(200, "<small>wiki.test:8443</small>")

	w.change(func() { w.away["permissions"] = true })
	b.get(base).shows(200, "They cannot be shown right now").shows(200, "This browser")
	w.change(func() { w.away = map[string]bool{"answer": true} })
	b.get(base).shows(200, "They cannot be shown right now").shows(200, "This browser")
	w.change(func() { w.away = map[string]bool{"applications": true} })
	b.get(base).shows(200, "Shop") // by the answer of the last ten minutes
	w.Clock.Advance(11 * time.Minute)
	b.get(base).shows(200, "They cannot be shown right now")
	w.change(func() {
		w.away["applications"] = false
		for i := range 300 {
			w.launchable = append(w.launchable, questions.Launchable{ID: strconv.Itoa(100 + i), Name: "zz"})
		}
	})
	b.get(base).shows(200, "These are the first 200.")
	w.change(func() { w.launchable = nil })
	w.Clock.Advance(11 * time.Minute)
	require.NotContains(t, b.get(base).body, "My applications")
}

// What has to wait for a new sign-in is done after it, but not for another person, who may know the flow's address.
func TestAChangeWaitsForASignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.users["bob"] = ann(w.Clock.Now())
	w.users["bob"].record["id"], w.users["bob"].record["username"] = "21", "bob"
	c := w.clients["portal"]
	c.SignIn.Consent = true
	w.clients["portal"] = c
	consents := func() []any { return w.admin().Get("/v1/consents").Object()["items"].([]any) }
	b := w.browser()
	agreeAndWait := func() string {
		b.get(w.authorize("portal")).signIn("ann", password).press("agree").answered(callback)
		w.Clock.Advance(6 * time.Minute)
		return consents()[0].(object)["id"].(string)
	}
	id := agreeAndWait()
	b.post(base+"/consents", url.Values{"consent": {id}}).shows(200, "Sign in")
	require.Len(t, consents(), 1)
	b.signIn("ann", password).shows(200, "The application will ask again")
	require.Empty(t, consents())

	b = w.browser()
	id = agreeAndWait()
	b.post(base+"/consents", url.Values{"consent": {id}}).signIn("bob", password).shows(200, "Nothing has changed")
	require.Len(t, consents(), 1)
}

// Another person's sign-in with the browser ends the session of the first.
func TestAnotherPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.users["bob"] = ann(w.Clock.Now())
	w.users["bob"].record["id"], w.users["bob"].record["username"] = "21", "bob"
	b := w.signedIn()
	b.get(w.authorize("portal", "prompt", "select_account")).signIn("bob", password).answered(callback)
	require.Len(t, w.sessions(), 1)
	require.Equal(t, "21", w.sessions()[0].(object)["user_id"])
}

// A session shows what the person has shown: each channel once, the newest.
func TestProofsOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.signedIn()
	proofs := func() []any {
		t.Helper()
		require.Len(t, w.sessions(), 1)
		return w.sessions()[0].(object)["proofs"].([]any)
	}
	first := w.Clock.Now()
	require.Equal(t, []any{object{
		"method": "password", "kinds": []any{"knows"}, "channel": "password", "amr": []any{"pwd"},
		"time": first.String(), "credential": "password", "time_set": first.String(),
	}}, proofs())
	w.Clock.Advance(time.Minute)
	b.get(w.authorize("portal", "prompt", "login")).signIn("ann", password).answered(callback)
	require.Len(t, proofs(), 1)
	require.Equal(t, w.Clock.Now().String(), proofs()[0].(object)["time"])
}

func TestSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.admin()
	would := c.Patch("/v1/sign-in/settings?dry_run=true", object{"name": "Acme"}) // the first request of the tenant
	require.Equal(t, "Acme", would.Object()["name"])
	first := c.Get("/v1/sign-in/settings")
	require.Equal(t, `"1"`, first.Header.Get("ETag"))
	c.Patch("/v1/sign-in/settings", object{"colour": "#ffff00", "colour_dark": "#000080", "logo": "data:text/html;base64,PGI+",
		"links": []object{{"label": "x", "url": "javascript:alert(1)"}}, "failures_per_minute": 0}).
		Problem(400, "invalid_parameters", "body.colour", "body.colour_dark", "body.logo", "body.links[0].url",
			"body.failures_per_minute")
	c.With("If-Match", `"7"`).Patch("/v1/sign-in/settings", object{"name": "Acme"}).Problem(412, "version_mismatch")
	c.With("If-Match", `"1"`).Patch("/v1/sign-in/settings", object{
		"name": "Acme <&>", "colour": "#1A5FB4", "colour_dark": "#FFCC00", "logo": "data:image/gif;base64,R0lGODlhAQABAAAAACw=",
		"texts": object{"sign_in": object{"en": "Welcome <b>", "zh": "欢迎"}},
		"links": []object{{"label": "Privacy", "url": "https://acme.test/privacy"}},
	}).OK(nil)
	b := w.browser().get(w.authorize("portal")).shows(200, "Acme &lt;&amp;&gt;").shows(200, "Welcome &lt;b&gt;").
		shows(200, `href="https://acme.test/privacy"`)
	logo := b.body[strings.Index(b.body, "/sign-in/acme/logo?v="):]
	answer := w.Stranger().Get(logo[:strings.Index(logo, `"`)])
	require.Equal(t, "image/gif", answer.Header.Get("Content-Type"))
	require.Equal(t, "GIF89a", string(answer.Body[:6]))
	style := b.body[strings.Index(b.body, "/sign-in/acme/style.css"):]
	sheet := string(w.Stranger().Get(style[:strings.Index(style, `"`)]).Body)
	require.Contains(t, sheet, "--accent:#1a5fb4;--on-accent:#ffffff")
	require.Contains(t, sheet, "(prefers-color-scheme:dark){:root{--accent:#ffcc00;--on-accent:#000000}}")
	b.shows(200, ">Privacy</a>")
	w.browser().get(w.authorize("portal", "ui_locales", "zh")).shows(200, "欢迎")
	put := c.Do("PUT", "/v1/sign-in/settings", object{"name": "Acme"}).Object()
	require.Equal(t, "", put["logo"])
	require.EqualValues(t, 10, put["failures_per_minute"])
	require.LessOrEqual(t, len(w.Stranger().Get("/sign-in/acme/script.js").Body), 4<<10)
	w.As("acme", auth.SignInRead).Patch("/v1/sign-in/settings", object{}).Problem(403, "forbidden")
}
