package signin_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
)

// Whoever links an identity shows a factor if they have one, also where none is due: a stolen password alone would
// otherwise make a way in for ever.
func TestALinkTakesAFactor(t *testing.T) {
	t.Parallel()
	for name, arrive := range map[string]func(f *federated) *browser{
		"after a password": func(f *federated) *browser {
			b := f.browser().get(f.authorize("portal"))
			return f.goesThrough(b, object{"sub": "eve-at-corp"}).signIn("ann", password)
		},
		"with a session": func(f *federated) *browser {
			b := f.browser().get(f.authorize("portal")).signIn("ann", password)
			b.answered(callback)
			b.get(f.authorize("wiki", "prompt", "select_account"))
			return f.goesThrough(b, object{"sub": "eve-at-corp"}).press("continue")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, `{"trust_mfa": "1"}`)
			p, _ := f.browser().get(base).signIn("ann", password).factor("add", "").setUp("")
			f.Clock.Advance(time.Hour)
			b := arrive(f).shows(200, "Show that it is you")
			b.send(url.Values{"action": {"link"}})
			require.Empty(t, f.links)
			b.prove(p.next()).shows(200, "Link your accounts?").press("link")
			require.Len(t, f.links, 1)
		})
	}
}

// A connection can be what is due after something else: the page has its button.
func TestAConnectionAfterSomethingElse(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(f *federated){
		"in an application that takes it alone": func(f *federated) {
			f.templates = map[string]questions.LoginTemplate{"corp": {
				Found: true, Code: "corp", Steps: []questions.LoginStep{
					{Required: true, Methods: f.template.Steps[0].Methods[1:]},
				},
			}}
			f.demands("wiki", func(c *questions.Client) { c.LoginTemplate = "corp" })
		},
		"as a second step": func(f *federated) {
			m := f.template.Steps[0].Methods
			f.templates = map[string]questions.LoginTemplate{"both": {
				Found: true, Code: "both", Steps: []questions.LoginStep{
					{Required: true, Methods: m[:1]}, {Required: true, Methods: m[1:]},
				},
			}}
			f.demands("wiki", func(c *questions.Client) { c.LoginTemplate = "both" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, `{}`)
			f.linkAnn()
			prepare(f)
			b := f.browser().get(f.authorize("portal")).signIn("ann", password)
			b.answered(callback)
			b.get(f.authorize("wiki")).shows(200, "Show that it is you").shows(200, "Sign in with Acme SSO")
			b.get(f.Refuse(b.leaves(), "access_denied")).shows(200, "Sign in with Acme SSO")
			f.goesThrough(b, object{"sub": "ann-at-corp"}).answered(wikiCallback)
			require.Len(t, f.newest()["proofs"], 2)
		})
	}
}

// An address that the provider has not verified is nobody's name, and of no domain.
func TestUnverifiedAddressesCreateNobody(t *testing.T) {
	t.Parallel()
	for name, claims := range map[string]object{
		"as an address": {"email": "ceo@acme.test", "email_verified": false},
		"as a name":     {"preferred_username": "ceo@acme.test"},
		"as both":       {"preferred_username": "ceo@acme.test", "email": "ceo@acme.test"},
	} {
		for _, mapping := range []string{`{}`, `{"email": "email"}`, `{"username": "claims.email.lowerAscii()"}`} {
			t.Run(name+" "+mapping, func(t *testing.T) {
				t.Parallel()
				f := federate(t, `{"create": "1", "domains": ["acme.test"], "claim_mapping": `+mapping+`}`)
				claims := maps.Clone(claims)
				claims["sub"] = "stranger"
				f.goesThrough(f.browser().get(f.authorize("portal")), claims).shows(200, "sign in here once")
				require.Empty(t, f.changes)
			})
		}
	}
}

// Codes that somebody has asked for do not keep a person from learning of a link.
func TestALinkIsMailedAfterManyCodes(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.mails = mailtest.Start(t, mailtest.STARTTLS)
	b := f.browser().exempt().get(f.authorize("portal")).signIn("ann", password)
	b.answered(callback)
	for range 30 {
		b.get(f.authorize("portal", "prompt", "login"))
		b.send(url.Values{"action": {"forgot"}, "login_name": {"ann"}})
		b.send(url.Values{"action": {"send-code"}, "login_name": {"ann"}})
	}
	f.sendMails()
	before := len(f.mails.Mails())
	b.get(f.authorize("portal", "prompt", "login"))
	f.goesThrough(b, object{"sub": "new"}).signIn("ann", password).press("link").answered(callback)
	f.sendMails()
	require.Len(t, f.mails.Mails(), before+1)
}

// Wrong answers of one browser do not keep those out in which somebody has signed in before.
func TestWrongAnswersOfANeighbour(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	known := f.from("198.51.100.7").get(f.authorize("portal"))
	f.goesThrough(known, object{"sub": "ann-at-corp"}).answered(callback)
	neighbour := f.from("198.51.100.7").get(f.authorize("portal"))
	for neighbour.page.StatusCode == http.StatusOK {
		back, err := url.Parse(f.SignIn(neighbour.leaves(), object{"sub": "x"}))
		require.NoError(t, err)
		q := back.Query()
		q.Set("code", "wrong")
		neighbour.get(base + "/callback/77?" + q.Encode())
	}
	require.Equal(t, http.StatusTooManyRequests, neighbour.page.StatusCode)
	known.get(f.authorize("portal", "prompt", "login"))
	f.goesThrough(known, object{"sub": "ann-at-corp"}).answered(callback)
}

// A provider that is down is left in peace for a moment.
func TestAProviderThatIsDownIsNotFlooded(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "maintenance", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	f.change(func() { f.connections[corp]["Issuer"] = server.URL })
	b := f.browser().get(f.authorize("portal"))
	for range 20 {
		b.send(url.Values{"action": {"leave"}, "connection": {corp}}).shows(200, "does not answer")
	}
	require.EqualValues(t, 1, asked.Load())
	f.Clock.Advance(5 * time.Second)
	b.send(url.Values{"action": {"leave"}, "connection": {corp}}).shows(200, "does not answer")
	require.EqualValues(t, 2, asked.Load())
}

// Whoever finds a browser with an old session sets up no factor on the way to an application, and links nothing.
func TestAnOldSessionSetsUpNothing(t *testing.T) {
	t.Parallel()
	f := federate(t, `{"trust_mfa": "1"}`)
	f.demands("wiki", func(c *questions.Client) { c.MFA = true })
	b := f.browser().get(f.authorize("portal")).signIn("ann", password)
	b.answered(callback)
	f.Clock.Advance(6 * time.Minute)
	b.get(f.authorize("wiki", "prompt", "select_account"))
	f.goesThrough(b, object{"sub": "eve-at-corp"}).press("continue").shows(200, `name="password"`)
	b.send(url.Values{"action": {"set-up"}, "method": {"otp"}}).shows(200, `name="password"`)
	require.Empty(t, f.factors())
	b.signIn("ann", password).shows(200, "Set up a second factor")
}

// What the provider or the connection is at fault for, nobody is refused for.
func TestFaultsOfTheProviderCountForNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*federated)
		shows string
	}{
		"its keys do not answer": {func(f *federated) {
			f.Change(func() {
				f.Metadata = func(m map[string]any) { m["jwks_uri"] = "http://127.0.0.1:1/keys" }
			})
		}, "does not answer"},
		"the secret has expired": {
			func(f *federated) { f.change(func() { f.connections[corp]["ClientSecret"] = "expired" }) },
			"That sign-in did not work",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, `{}`)
			f.linkAnn()
			c.spoil(f)
			for range 12 {
				b := f.from("198.51.100.7").get(f.authorize("portal"))
				f.goesThrough(b, object{"sub": "ann-at-corp"}).shows(200, c.shows)
			}
		})
	}
}
