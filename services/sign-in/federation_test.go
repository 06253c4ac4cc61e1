package signin_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/providertest"
)

// federated is a world whose people can sign in by a password, or at another provider.
type federated struct {
	*world
	*providertest.Provider
}

// corp is the connection to the other provider.
const corp = "77"

var corpConnection = questions.Connection{ID: corp, ProviderCode: "oidc", Name: "Acme SSO"}

// federate makes such a world, with the policy of the method.
func federate(t testing.TB, policy string, options ...testkit.Options) *federated {
	t.Helper()
	return newWorld(t, options...).federate(policy)
}

// federate lets the people of a world sign in at another provider, too.
func (w *world) federate(policy string) *federated {
	w.t.Helper()
	p := providertest.Start(w.t, w.Clock.Now)
	w.connections[corp] = object{
		"Issuer": p.Issuer, "ClientId": providertest.ClientID, "ClientSecret": providertest.ClientSecret,
	}
	w.template = questions.LoginTemplate{Found: true, Code: "staff", Steps: []questions.LoginStep{{
		Required: true, Methods: []questions.LoginMethod{
			{Code: "pwd", Type: "password"}, {
				Code: "corp", Type: "enterprise", Policy: json.RawMessage(policy),
				Connections: []questions.Connection{corpConnection},
			},
		},
	}}}
	return &federated{w, p}
}

// linkAnn links Ann to who she is at the provider.
func (f *federated) linkAnn() {
	f.change(func() {
		f.links[questions.ForeignIdentity{ConnectionID: corp, ProviderCode: "oidc", Subject: "ann-at-corp"}] =
			&linked{"500", "20", "1"}
	})
}

// leaves presses the button of the connection, and returns where the browser goes.
func (b *browser) leaves() string {
	b.w.t.Helper()
	b.send(url.Values{"action": {"leave"}, "connection": {corp}})
	require.True(b.w.t, strings.HasPrefix(b.at, "http://127.0.0.1"), "%s\n%s", b.at, b.body)
	return b.at
}

// goesThrough signs in at the provider.
func (f *federated) goesThrough(b *browser, claims object) *browser {
	f.t.Helper()
	return b.get(f.SignIn(b.leaves(), claims))
}

func TestSignInAtAnotherProvider(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	b := f.browser().get(f.authorize("portal")).shows(200, "Sign in with Acme SSO").shows(200, `name="password"`)
	f.goesThrough(b, object{"sub": "ann-at-corp", "amr": []string{"pwd", "mfa"}}).answered(callback)
	session := f.newest()
	require.Equal(t, "20", session["user_id"])
	require.Equal(t, "urn:idplatform:aal:1", session["acr"], "the provider is not trusted")
	require.Equal(t, []any{}, session["amr"])
	shown := session["proofs"].([]any)[0].(object)
	require.Equal(t, "enterprise", shown["method"])
	require.Equal(t, "upstream:77", shown["channel"])
	require.Equal(t, "link:500", shown["credential"])
	b.get(f.authorize("wiki")).answered(wikiCallback)
	require.Equal(t, 1, f.Redeemed)
	require.Zero(t, f.verified, "no password was asked for")
}

// Without a link the provider's word is worth nothing: the person shows who they are here, with all that is due, and
// agrees.
func TestAnIdentityIsLinkedOnce(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	b := f.browser().get(f.authorize("portal"))
	f.goesThrough(b, object{
		"sub": "new", "name": "Ann <b>at</b> Corp", "email": "ann@acme.test", "email_verified": true,
	})
	b.shows(200, "No account here belongs to that yet").shows(200, `name="password"`)
	require.Empty(t, f.sessions())
	b.signIn("ann", "wrong").shows(200, "do not match")
	require.Empty(t, f.links)
	b.signIn("ann", password).shows(200, "Link your accounts?").shows(200, "Ann &lt;b&gt;at&lt;/b&gt; Corp")
	require.Empty(t, f.links)
	b.press("link").answered(callback)
	require.Len(t, f.links, 1)

	b = f.browser().get(f.authorize("portal"))
	f.goesThrough(b, object{"sub": "new"}).answered(callback)
	require.Len(t, f.links, 1)
}

func TestALinkCanBeDeclined(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	b := f.browser().get(f.authorize("portal"))
	f.goesThrough(b, object{"sub": "new"}).signIn("ann", password).press("skip-link").answered(callback)
	require.Empty(t, f.links)

	b = f.browser().get(f.authorize("portal"))
	f.goesThrough(b, object{"sub": "new"}).press("another").signIn("ann", password).answered(callback)
	require.Empty(t, f.links, "the person has begun anew")

	f.users["bob"] = ann(f.Clock.Now())
	f.users["bob"].record["id"] = "21"
	b = f.browser().get(f.authorize("portal"))
	f.goesThrough(b, object{"sub": "ann-at-corp"}).signIn("bob", password)
	f.linkAnn() // meanwhile
	b.press("link").shows(200, "belongs to somebody else").press("skip-link").answered(callback)
	require.Len(t, f.links, 1)
}

func TestPoliciesOfLinks(t *testing.T) {
	t.Parallel()
	trusted := object{"sub": "new", "email": "ann@acme.test", "email_verified": true}
	with := func(more object) object {
		all := object{}
		for _, of := range []object{trusted, more} {
			for name, value := range of {
				all[name] = value
			}
		}
		return all
	}
	byEmail, asks := `{"link": "verified_email", "domains": ["ACME.test"]}`, "sign in here once"
	scoped := func(u *user) { u.scoped = true }
	unverified := func(u *user) { u.record["email_verified"] = false }
	for name, c := range map[string]struct {
		policy string
		claims object
		change func(*user)
		links  bool
		shows  string
	}{
		"verified by both":   {byEmail, trusted, nil, true, ""},
		"true as a string":   {byEmail, with(object{"email_verified": "true"}), nil, true, ""},
		"not verified there": {byEmail, with(object{"email_verified": false}), nil, false, asks},
		"nothing said of it": {byEmail, with(object{"email_verified": nil}), nil, false, asks},
		"of another domain": {`{"link": "verified_email", "domains": ["other.test"]}`,
			trusted, nil, false, asks},
		"of a subdomain":        {`{"link": "verified_email", "domains": ["test"]}`, trusted, nil, false, asks},
		"without domains":       {`{"link": "verified_email"}`, trusted, nil, false, asks},
		"another policy":        {`{"link": "ask", "domains": ["acme.test"]}`, trusted, nil, false, asks},
		"of a user with scopes": {byEmail, trusted, scoped, false, asks},
		"not verified here":     {byEmail, trusted, unverified, false, asks},
		"nobody may link":       {`{"link": "never"}`, trusted, nil, false, "Please ask your administrator"},
		"nobody may link, by a mail": {
			`{"link": "never", "domains": ["acme.test"]}`, trusted, nil, false, "Please ask your administrator",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, c.policy)
			if c.change != nil {
				c.change(f.users["ann"])
			}
			b := f.goesThrough(f.browser().get(f.authorize("portal")), c.claims)
			if !c.links {
				b.shows(200, c.shows)
				require.Empty(t, f.links)
				require.Empty(t, f.sessions())
				return
			}
			b.answered(callback)
			require.Len(t, f.links, 1)
		})
	}
}

// Whoever signs in by a link may be disabled, and so may the link.
func TestLinksThatServeNobody(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	b := f.browser().get(f.authorize("portal"))
	f.change(func() { f.users["ann"].record["status"] = "0" })
	f.goesThrough(b, object{"sub": "ann-at-corp"}).shows(200, "cannot be used in this way")
	f.change(func() {
		f.users["ann"].record["status"] = "1"
		for _, l := range f.links {
			l.status = "0"
		}
	})
	f.goesThrough(b, object{"sub": "ann-at-corp"}).shows(200, "cannot be used in this way")
	require.Empty(t, f.sessions())
	b.signIn("ann", password).answered(callback)
	for identity := range f.links {
		require.Equal(t, "ann-at-corp", identity.Subject, "nothing is linked on the way")
	}
}

// An answer is good once, for the flow, the browser and the connection that it was asked for.
func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	who := object{"sub": "ann-at-corp"}
	begin := func() *browser { return f.browser().get(f.authorize("portal")) }

	b := begin()
	back := f.SignIn(b.leaves(), who)
	thief := begin().get(back)
	thief.shows(200, "Sign in")
	require.Empty(t, f.sessions(), "another browser")
	require.Zero(t, f.Redeemed)
	b.get(back).answered(callback)
	b.get(back).answered(callback)
	require.Equal(t, 1, f.Redeemed, "an answer is redeemed once")

	b = begin()
	back = f.SignIn(b.leaves(), who)
	other := b.tab().get(f.authorize("wiki"))
	state := func(at string) string {
		u, err := url.Parse(at)
		require.NoError(t, err)
		return u.Query().Get("state")
	}
	mixed := strings.Replace(back, url.QueryEscape(state(back)), url.QueryEscape(state(other.leaves())), 1)
	other.get(mixed).shows(200, "That sign-in did not work")
	require.Equal(t, 1, f.Redeemed, "the code of another flow")

	b = begin()
	b.get(strings.Replace(f.SignIn(b.leaves(), who), "/callback/77", "/callback/78", 1))
	b.shows(200, "Sign in with Acme SSO")
	b = begin()
	b.get(strings.Replace(f.SignIn(b.leaves(), who), "&state=", "&state=x", 1))
	require.Equal(t, base, b.at)
	b = begin()
	old := f.SignIn(b.leaves(), who)
	flow, _, _ := strings.Cut(state(old), ".")
	b.get(base + "/flow/" + flow)
	b.leaves()
	b.get(old).shows(200, "Sign in with Acme SSO")
	require.Len(t, f.sessions(), 1, "an answer to an earlier request of the flow")
	require.Equal(t, 1, f.Redeemed)
}

func TestWrongAnswersOfProviders(t *testing.T) {
	t.Parallel()
	old := func(claims object) { claims["auth_time"] = claims["iat"].(int64) - 3600 }
	for name, spoil := range map[string]func(object){
		"of another nonce":     func(c object) { c["nonce"] = "another" },
		"without a nonce":      func(c object) { delete(c, "nonce") },
		"of another issuer":    func(c object) { c["iss"] = "https://evil.test" },
		"for another client":   func(c object) { c["aud"] = "another" },
		"for another party":    func(c object) { c["aud"], c["azp"] = []string{providertest.ClientID, "x"}, "x" },
		"expired":              func(c object) { c["exp"] = c["iat"].(int64) - 1 },
		"without a subject":    func(c object) { delete(c, "sub") },
		"with a long subject":  func(c object) { c["sub"] = strings.Repeat("s", 257) },
		"of an old sign-in":    old,
		"with a wrong subject": func(c object) { c["sub"] = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, `{}`)
			f.linkAnn()
			f.Change(func() { f.Spoil = spoil })
			b := f.browser().get(f.authorize("portal", "max_age", "600"))
			f.goesThrough(b, object{"sub": "ann-at-corp"}).shows(200, "That sign-in did not work").
				shows(200, `name="password"`)
			require.Empty(t, f.sessions())
			f.Change(func() { f.Spoil = nil })
			f.goesThrough(b, object{"sub": "ann-at-corp"}).answered(callback)
		})
	}
}

func TestAnswersOfAnotherIssuer(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	b := f.browser().get(f.authorize("portal"))
	issuer := "iss=" + url.QueryEscape(f.Issuer)
	for _, other := range []string{"iss=https%3A%2F%2Fevil.test", "iss=", "x=y"} {
		back := f.SignIn(b.leaves(), object{"sub": "ann-at-corp"})
		require.Contains(t, back, issuer)
		b.get(strings.Replace(back, issuer, other, 1)).shows(200, "That sign-in did not work")
	}
	require.Zero(t, f.Redeemed)
}

// Whatever becomes of the provider, the page says so, and the other ways are there.
func TestAProviderThatIsAway(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	f.Change(func() { f.Down = true })
	b := f.browser().get(f.authorize("portal"))
	b.send(url.Values{"action": {"leave"}, "connection": {corp}}).shows(200, "does not answer").
		shows(200, `name="password"`)
	f.Change(func() { f.Down = false })
	f.Clock.Advance(5 * time.Second) // a provider that does not answer is left in peace for a moment
	back := f.SignIn(b.leaves(), object{"sub": "ann-at-corp"})
	f.Change(func() { f.Down = true })
	b.get(back).shows(200, "does not answer")
	f.Change(func() { f.Down = false })
	b.get(f.Refuse(b.leaves(), "access_denied")).shows(200, "You did not sign in there")
	b.get(f.Refuse(b.leaves(), "server_error")).shows(200, "That sign-in did not work")
	f.change(func() { f.away["users"] = true })
	f.goesThrough(b, object{"sub": "ann-at-corp"}).shows(503, "not answering")
	f.change(func() { f.away["users"] = false })
	f.change(func() { f.away["identity-sources"] = true })
	b.get(f.authorize("portal")).send(url.Values{"action": {"leave"}, "connection": {corp}}).shows(503, "not answering")
	f.change(func() { f.away["identity-sources"] = false })
	b.get(f.authorize("portal"))
	f.change(func() { delete(f.connections, corp) })
	b.send(url.Values{"action": {"leave"}, "connection": {corp}}).shows(200, "That sign-in did not work")
	b.send(url.Values{"action": {"leave"}, "connection": {"78"}}).shows(200, "Sign in with Acme SSO")
	b.signIn("ann", password).answered(callback)
}

// A page can be one of a connection alone, and an application can choose among them.
func TestWhichConnectionsAreOffered(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	alipay := questions.Connection{ID: "79", ProviderCode: "alipay", Name: "Alipay"}
	google := questions.Connection{ID: "80", ProviderCode: "google", Name: "Google"}
	f.template.Steps[0].Methods = []questions.LoginMethod{
		{Code: "corp", Type: "enterprise", Connections: []questions.Connection{corpConnection}},
		{Code: "fun", Type: "social", Connections: []questions.Connection{alipay, google}},
	}
	shows := func(app string, want ...string) {
		t.Helper()
		wait.Until(t, func() bool { // a change takes a moment
			b := f.browser().exempt().get(f.authorize(app))
			require.NotContains(t, b.body, `name="password"`)
			var got []string
			for _, name := range []string{"Acme SSO", "Alipay", "Google"} {
				if strings.Contains(b.body, "Sign in with "+name) {
					got = append(got, name)
				}
			}
			return slices.Equal(want, got)
		})
	}
	shows("portal", "Acme SSO", "Google") // sign-in does not speak with Alipay yet
	set := func(change func(*questions.Client)) {
		f.change(func() {
			c := f.clients["portal"]
			change(&c)
			f.clients["portal"] = c
		})
		f.tell("application", "updated", "9", 1, object{"id": "9"})
	}
	set(func(c *questions.Client) { c.Sources = []string{"80"} })
	shows("portal", "Google")
	shows("wiki", "Acme SSO", "Google")
	set(func(c *questions.Client) { c.Sources, c.SocialProviders = nil, map[string]bool{"google": false} })
	shows("portal", "Acme SSO")
	set(func(c *questions.Client) { c.Sources = []string{"79"} })
	shows("portal")
	f.browser().get(f.authorize("portal")).shows(403, "whose provider sign-in knows").shows(403, "For administrators")
}

// Who can change a connection can sign in by it as anybody who is linked. So whoever has a scope of the platform's API
// shows something of this platform, too, and sets up nothing on the way.
func TestAnotherProviderIsNotEnoughForScopes(t *testing.T) {
	t.Parallel()
	f := federate(t, `{"trust_mfa": "1"}`)
	f.linkAnn()
	f.users["ann"].scoped = true
	who := object{"sub": "ann-at-corp", "amr": []string{"mfa"}}
	b := f.goesThrough(f.browser().get(f.authorize("portal")), who).shows(200, `name="password"`)
	require.NotContains(t, b.body, "Sign in with Acme SSO")
	require.Empty(t, f.sessions())
	b.signIn("ann", password).answered(callback)
	require.Equal(t, "urn:idplatform:aal:1", f.newest()["acr"])

	p, _ := f.browser().get(base).signIn("ann", password).factor("add", "").setUp("")
	b = f.goesThrough(f.browser().get(f.authorize("portal")), who).shows(200, "Show that it is you")
	f.Clock.Advance(time.Minute)
	b.prove(p.next()).answered(callback)
	require.Equal(t, "urn:idplatform:aal:2", f.newest()["acr"])

}

func TestTrustedFactorsOfAProvider(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy string
		claims object
		acr    string
		amr    []any
	}{
		"trusted": {
			`{"trust_mfa": "1"}`, object{"amr": []string{"pwd", "otp", "mfa", "x"}}, "urn:idplatform:aal:2",
			[]any{"mfa", "otp", "pwd"},
		},
		"by its class": {
			`{"trust_mfa": "1"}`, object{"acr": "https://refeds.org/profile/mfa"}, "urn:idplatform:aal:2", []any{"mfa"},
		},
		"resistant to phishing, which says nothing of two": {
			`{"trust_mfa": "1"}`, object{"acr": "phr"}, "urn:idplatform:aal:1", []any{},
		},
		"as a string": {`{"trust_mfa": "1"}`, object{"amr": "mfa"}, "urn:idplatform:aal:2", []any{"mfa"}},
		"neither":     {`{"trust_mfa": "1"}`, object{"amr": object{"mfa": true}}, "urn:idplatform:aal:1", []any{}},
		"one factor":  {`{"trust_mfa": "1"}`, object{"amr": []string{"otp"}}, "urn:idplatform:aal:1", []any{}},
		"not trusted": {`{"trust_mfa": "0"}`, object{"amr": []string{"mfa"}}, "urn:idplatform:aal:1", []any{}},
		"trusted, not so said": {
			`{"trust_mfa": "1"}`, object{"acr": "urn:idplatform:aal:1"}, "urn:idplatform:aal:1", []any{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, c.policy)
			f.linkAnn()
			c.claims["sub"] = "ann-at-corp"
			f.goesThrough(f.browser().get(f.authorize("portal")), c.claims).answered(callback)
			require.Equal(t, c.acr, f.newest()["acr"])
			require.Equal(t, c.amr, f.newest()["amr"])
		})
	}
}

// What rests on a link ends with it, and with its connection, at once; a sign-in that is under way comes to nothing.
func TestWhatRestsOnALinkEnds(t *testing.T) {
	t.Parallel()
	credential := object{"id": "500", "user_id": 20, "provider_code": "oidc", "idp_config_id": 77, "id1": "ann-at-corp",
		"status": "1"}
	updated := func(f *federated, previous, now object) {
		record := maps.Clone(credential)
		maps.Copy(record, now)
		f.tellData("credential", "updated", "500", 2, object{"record": record, "previous": previous})
	}
	for name, tell := range map[string]func(*federated){
		"the link is deleted": func(f *federated) { f.tell("credential", "deleted", "500", 2, credential) },
		"the link is disabled": func(f *federated) {
			updated(f, object{"status": "1"}, object{"status": "0"})
		},
		"the link has another identity": func(f *federated) {
			updated(f, object{"id1": "ann-at-corp"}, object{"id1": "another"})
		},
		"the link has no connection": func(f *federated) {
			updated(f, object{"idp_config_id": 77}, object{"idp_config_id": 0})
		},
		"the connection is disabled": func(f *federated) {
			f.tell("connection", "disabled", corp, 2, object{"id": corp})
		},
		"the connection is deleted": func(f *federated) {
			f.tell("connection", "deleted", corp, 2, object{"id": corp})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, `{}`)
			f.linkAnn()
			p, _ := f.browser().get(base).signIn("ann", password).factor("add", "").setUp("")
			f.clients["wiki"] = func(c questions.Client) questions.Client { c.MFA = true; return c }(f.clients["wiki"])
			b := f.browser().get(f.authorize("portal"))
			f.goesThrough(b, object{"sub": "ann-at-corp"}).answered(callback)
			other := f.browser().get(f.authorize("wiki"))
			f.goesThrough(other, object{"sub": "ann-at-corp"}).shows(200, "Show that it is you")
			f.Clock.Advance(time.Minute)
			require.Len(t, f.sessions(), 2)
			tell(f)
			b.untilShows(f.authorize("portal"), `name="password"`)
			require.Len(t, f.sessions(), 1, "only the one by password")
			other.prove(p.next()).shows(200, "do not match")
			require.Len(t, f.sessions(), 1)
			f.Clock.Advance(time.Minute)
			f.goesThrough(b, object{"sub": "ann-at-corp"}).answered(callback)
		})
	}
}

// People come back at the moment at which the connection is disabled: no session is left, whoever is first.
func TestAConnectionEndsWhilePeopleComeBack(t *testing.T) {
	t.Parallel()
	for range rounds.Of(3, 30) {
		f := federate(t, `{}`)
		f.linkAnn()
		f.goesThrough(f.browser().get(f.authorize("portal")), object{"sub": "ann-at-corp"}).answered(callback)
		var backs []func()
		for range 6 {
			b := f.browser().get(f.authorize("portal"))
			back := f.SignIn(b.leaves(), object{"sub": "ann-at-corp"})
			backs = append(backs, func() { b.get(back) })
		}
		var all sync.WaitGroup
		for i, back := range backs {
			if i == len(backs)/2 {
				f.tell("connection", "disabled", corp, 2, object{"id": corp})
			}
			all.Go(back)
		}
		all.Wait()
		wait.Until(t, func() bool { return len(f.sessions()) == 0 })
	}
}

// What only names a link, or enables it, ends nothing.
func TestLinksThatGoOn(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	b := f.browser().get(f.authorize("portal"))
	f.goesThrough(b, object{"sub": "ann-at-corp"}).answered(callback)
	for i, previous := range []object{{"username": "old"}, {"status": "0"}, {"display_name": "x", "metadata": ""}} {
		f.tellData("credential", "updated", "500", int64(2+i), object{"previous": previous, "record": object{
			"id": "500", "user_id": 20, "provider_code": "oidc", "idp_config_id": 77, "id1": "ann-at-corp", "status": "1",
		}})
	}
	f.tell("credential", "deleted", "501", 9, object{"id": "501", "user_id": 20, "idp_config_id": 77})
	wait.Until(t, func() bool { return testkit.Stored(t, f.Service, "acme", "link_states")["link:501"] != "" })
	b.get(f.authorize("wiki")).answered(wikiCallback)
	require.Len(t, f.sessions(), 1)
}

// With create, somebody whom no user is linked to is a user from then on: once, and only by names that are theirs.
func TestUsersAreCreatedAtASignIn(t *testing.T) {
	t.Parallel()
	const asks = "sign in here once"
	verified := func(more object) object {
		all := object{"sub": "new", "name": "李伟", "email": "wei@acme.test", "email_verified": true}
		maps.Copy(all, more)
		return all
	}
	for name, c := range map[string]struct {
		policy string
		claims object
		want   object // of the record
		shows  string
	}{
		"by an address": {
			`{"create": "1", "domains": ["acme.test"]}`, verified(nil),
			object{"username": "wei@acme.test", "display_name": "李伟", "email": "wei@acme.test", "email_verified": true}, "",
		},
		"by a name": {
			`{"create": "1"}`, verified(object{"preferred_username": "wei"}),
			object{"username": "wei", "email": "wei@acme.test", "email_verified": false}, "",
		},
		"by the name of a trusted directory": {
			`{"create": "1", "domains": ["acme.test"], "claim_mapping": {"username": "preferred_username"}}`,
			object{"sub": "new", "preferred_username": "wei@acme.test", "email": "ceo@acme.test"},
			object{"username": "wei@acme.test", "email": "", "email_verified": false}, "",
		},
		"not by somebody's address": {
			`{"create": "1"}`, verified(object{"preferred_username": "ceo@acme.test"}),
			object{"username": "wei@acme.test"}, "",
		},
		"not by somebody's address in other signs": {
			`{"create": "1"}`, verified(object{"preferred_username": "ceo＠acme.test"}),
			object{"username": "wei@acme.test"}, "",
		},
		"not without a name": {
			`{"create": "1"}`, object{"sub": "new", "preferred_username": "ceo@acme.test", "email": "ceo@acme.test"}, nil, asks,
		},
		"not of another domain": {`{"create": "1", "domains": ["other.test"]}`, verified(nil), nil, asks},
		"not of another domain, by a name": {
			`{"create": "1", "domains": ["other.test"]}`, verified(object{"preferred_username": "wei"}), nil, asks,
		},
		"not where the name is taken": {
			`{"create": "1"}`, verified(object{"preferred_username": "ann"}), nil, asks,
		},
		"not where the address is taken": {
			`{"create": "1"}`, verified(object{"email": "ann@acme.test", "preferred_username": "wei"}), nil, asks,
		},
		"nor linked": {
			`{"create": "1", "link": "never"}`, verified(object{"preferred_username": "ann"}), nil,
			"Please ask your administrator",
		},
		"not by default": {`{}`, verified(nil), nil, asks},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, c.policy)
			b := f.goesThrough(f.browser().get(f.authorize("portal")), c.claims)
			if c.want == nil {
				b.shows(200, c.shows)
				require.Len(t, f.users, 1)
				require.Empty(t, f.sessions())
				return
			}
			b.answered(callback)
			require.Len(t, f.users, 2)
			username, _ := c.want["username"].(string)
			for member, value := range c.want {
				require.Equal(t, value, f.users[username].record[member], member)
			}
			f.goesThrough(f.browser().get(f.authorize("portal")), c.claims).answered(callback)
			require.Len(t, f.users, 2)
		})
	}
}

// What the ID token does not tell, the userinfo endpoint may: of the same subject.
func TestUserInfoCompletesTheIDToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ token, info, want object }{
		"only the address": {
			object{"sub": "new", "name": "Wei"},
			object{"sub": "new", "name": "Other", "email": "wei@acme.test", "email_verified": true},
			object{"display_name": "Wei", "email": "wei@acme.test"},
		},
		"only the name": {
			object{"sub": "new", "email": "wei@acme.test", "email_verified": true},
			object{"sub": "new", "name": "Wei", "email": "x@acme.test", "email_verified": true},
			object{"display_name": "Wei", "email": "wei@acme.test"},
		},
		"of somebody else": {
			object{"sub": "new", "preferred_username": "wei", "email": "wei@acme.test", "email_verified": true},
			object{"sub": "old", "name": "Bob"},
			object{"username": "wei", "display_name": nil, "email": "wei@acme.test"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, `{"create": "1", "domains": ["acme.test"]}`)
			f.UserInfo = c.info
			f.goesThrough(f.browser().get(f.authorize("portal")), c.token).answered(callback)
			for member, value := range c.want {
				require.Equal(t, value, f.changes[0][member], member)
			}
		})
	}
}

// Two tabs, or two replicas: one user.
func TestAUserIsCreatedOnce(t *testing.T) {
	t.Parallel()
	f := federate(t, `{"create": "1"}`)
	who := object{"sub": "new", "preferred_username": "wei"}
	var backs []string
	var browsers []*browser
	for range 4 {
		b := f.browser().get(f.authorize("portal"))
		backs, browsers = append(backs, f.SignIn(b.leaves(), who)), append(browsers, b)
	}
	var all sync.WaitGroup
	for i, b := range browsers {
		all.Go(func() { b.get(backs[i]) })
	}
	all.Wait()
	for _, b := range browsers {
		b.answered(callback)
	}
	require.Len(t, f.users, 2)
	f.change(func() {
		f.away["users"] = true
		f.template.Steps[0].Methods = f.template.Steps[0].Methods[1:]
	})
	b := f.browser()
	f.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	wait.Until(t, func() bool {
		return !strings.Contains(b.get(f.authorize("portal")).body, `name="password"`)
	})
	f.goesThrough(b, object{"sub": "x"}).shows(503, "not answering")
	b.get(b.at).shows(200, "Sign in with Acme SSO") // the page's way on
	require.NotContains(t, b.body, `name="password"`)
}

// Who is created meets the other steps, too.
func TestWhoIsCreatedSetsUpAFactor(t *testing.T) {
	t.Parallel()
	f := federate(t, `{"create": "1"}`)
	f.template.Steps = append(f.template.Steps, questions.LoginStep{
		Required: true, Methods: []questions.LoginMethod{{Code: "otp", Type: "otp"}}, Enrol: questions.EnrolDemand,
	})
	b := f.goesThrough(f.browser().get(f.authorize("portal")), object{"sub": "new", "preferred_username": "wei"})
	require.Empty(t, f.sessions())
	b.shows(200, "Set up a second factor").chooses("otp").setUp("")
	b.press("kept").answered(callback)
	require.Equal(t, "urn:idplatform:aal:2", f.newest()["acr"])
}

// People see their links on their own page, and remove them there: with all that they have, and not the last way in.
func TestOwnLinks(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	b := f.browser().get(base).signIn("ann", password)
	require.NotContains(t, b.body, "Ann there")
	f.linkAnn()
	b.get(base).shows(200, "Linked accounts").shows(200, "Acme SSO").shows(200, "Ann there")
	remove := func() *browser { return b.post(base+"/links", url.Values{"action": {"remove"}, "link": {"500"}}) }
	f.change(func() { f.away["users"] = true })
	remove().shows(200, "not answering")
	b.get(base).shows(200, "They cannot be shown right now")
	require.Len(t, f.links, 1)
	f.change(func() { f.away["users"] = false })

	p, _ := b.factor("add", "").setUp("")
	b.press("kept")
	f.Clock.Advance(10 * time.Minute)
	remove().signIn("ann", password).shows(200, "Show that it is you")
	require.Len(t, f.links, 1)
	b.prove(p.next()).shows(200, "no longer linked")
	require.Empty(t, f.links)
	remove().shows(200, "no longer linked")

	f.linkAnn()
	f.change(func() {
		f.links[questions.ForeignIdentity{ConnectionID: "78", ProviderCode: "oidc", Subject: "ann-there"}] =
			&linked{"501", "20", "1"}
	})
	remove().shows(200, "no longer linked")
	require.Equal(t, []string{"78"}, f.unlinked.Disabled, "nobody signs in through it")

	f.linkAnn()
	f.users["bob"] = ann(f.Clock.Now())
	f.users["bob"].record["id"], f.users["bob"].password = "21", ""
	f.change(func() {
		for _, l := range f.links {
			l.userID = "21"
		}
	})
	remove()
	require.Len(t, f.links, 2, "somebody else's")
	b = f.goesThrough(f.browser().get(base), object{"sub": "ann-at-corp"}).shows(200, "Acme SSO")
	b.post(base+"/links", url.Values{"action": {"remove"}, "link": {"500"}})
	b.shows(200, "could not sign in any more without")
	require.Len(t, f.links, 2)
}

// Whoever is linked is told by mail, with nothing in it that the other provider says.
func TestALinkIsMailed(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{
		"by the person": `{}`, "by an address": `{"link": "verified_email", "domains": ["acme.test"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, policy)
			f.mails = mailtest.Start(t, mailtest.STARTTLS)
			b := f.goesThrough(f.browser().get(f.authorize("portal")), object{
				"sub": "new", "name": "Go to https://evil.test", "email": "ann@acme.test", "email_verified": true,
			})
			if policy == `{}` {
				b.signIn("ann", password)
				f.sendMails()
				require.Empty(t, f.mails.Mails())
				b.press("link")
			}
			b.answered(callback)
			f.sendMails()
			mails := f.mails.Mails()
			require.Len(t, mails, 1)
			require.Equal(t, "ann@acme.test", mails[0].To)
			for _, want := range []string{"Acme SSO", "https://idp.test/sign-in/acme", "If it was not you"} {
				require.Contains(t, mails[0].Data, want)
			}
			for _, not := range []string{"evil.test", "<no value>", "%!"} {
				require.NotContains(t, mails[0].Data, not)
			}
		})
	}
}

// The method that the application names comes first on the page, if the page has it.
func TestTheMethodThatComesFirst(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		first string
		order []string
	}{
		"none":              {"", []string{`value="sign-in"`, "Sign in with Acme SSO", `value="passkey"`}},
		"the password":      {"pwd", []string{`value="sign-in"`, "Sign in with Acme SSO", `value="passkey"`}},
		"the connection":    {"corp", []string{"Sign in with Acme SSO", `value="sign-in"`, `value="passkey"`}},
		"the passkey":       {"key", []string{`value="passkey"`, `value="sign-in"`, "Sign in with Acme SSO"}},
		"what there is not": {"other", []string{`value="sign-in"`, "Sign in with Acme SSO", `value="passkey"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, `{}`)
			step := &f.template.Steps[0]
			step.Methods = append(step.Methods, questions.LoginMethod{Code: "key", Type: "webauthn"})
			f.demands("portal", func(c *questions.Client) { c.FirstMethod = row.first })
			b := f.browser().get(f.authorize("portal"))
			at := -1
			for _, text := range row.order {
				next := strings.Index(b.body, text)
				require.Greater(t, next, at, "%s\n%s", text, b.body)
				at = next
			}
		})
	}
}
