package signin_test

import (
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
)

// links goes from the person's own page to the page that leads to the other provider.
func (b *browser) links() *browser {
	b.w.t.Helper()
	return b.post(base+"/links", url.Values{"action": {"add"}, "connection": {corp}})
}

// People link an identity from their own page: with all that they have, and only if they agree once they are back.
func TestLinkFromTheOwnPage(t *testing.T) {
	t.Parallel()
	f := federate(t, `{"create": "1"}`)
	f.mails = mailtest.Start(t, mailtest.STARTTLS)
	b := f.browser().get(base).signIn("ann", password).shows(200, "Link an account at Acme SSO")
	p, _ := b.factor("add", "").setUp("")
	b.press("kept")
	f.Clock.Advance(10 * time.Minute)
	b.links().signIn("ann", password).shows(200, "Show that it is you").prove(p.next())
	b.shows(200, "You go to Acme SSO and sign in there")
	f.goesThrough(b, object{"sub": "new", "name": "Ann there"}).shows(200, "Link your accounts?")
	b.shows(200, "Ann there")
	require.Empty(t, f.links)
	require.Empty(t, f.changes, "nobody is created")
	b.press("link").shows(200, "The account is linked").shows(200, "Linked accounts")
	require.NotContains(t, b.body, "Link an account at")
	require.Equal(t, base+"?done=link_added", b.at)
	f.sendMails()
	require.Len(t, f.mails.Mails(), 1)
	f.goesThrough(f.browser().get(f.authorize("wiki")), object{"sub": "new"}).answered(wikiCallback)
}

// Whoever does not agree, or turns back, has linked nothing.
func TestALinkFromTheOwnPageIsLeft(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	b := f.browser().get(base).signIn("ann", password)
	f.goesThrough(b.links(), object{"sub": "new"}).press("skip-link").shows(200, "My account")
	require.Equal(t, base, b.at)
	b.links()
	b.get(f.Refuse(b.leaves(), "access_denied")).shows(200, "You did not sign in there")
	require.Empty(t, f.links)

	f.linkAnn()
	f.goesThrough(b.links(), object{"sub": "ann-at-corp"}).shows(200, "is linked to yours already")
	f.change(func() {
		for _, l := range f.links {
			l.status = "0"
		}
	})
	f.goesThrough(b.links(), object{"sub": "ann-at-corp"}).shows(200, "cannot be used in this way")
	f.users["bob"] = newcomer("31", "bob")
	f.change(func() {
		for _, l := range f.links {
			l.userID, l.status = "31", "1"
		}
	})
	f.goesThrough(b.links(), object{"sub": "ann-at-corp"}).shows(200, "belongs to somebody else here")
	require.Len(t, f.links, 1)
	require.Equal(t, "20", f.newest()["user_id"])
}

// A person who has been away for long signs in again before anything is linked. Nobody is created meanwhile, and
// nobody signs in as somebody else.
func TestALinkFromTheOwnPageTakesLong(t *testing.T) {
	t.Parallel()
	f := federate(t, `{"create": "1"}`)
	b := f.browser().get(base).signIn("ann", password)
	to := b.links().leaves()
	f.Clock.Advance(20 * time.Minute)
	b.get(f.SignIn(to, object{"sub": "new", "preferred_username": "ann.lee"}))
	require.Empty(t, f.changes)
	require.Empty(t, f.links)
	b.shows(200, "No account here belongs to that yet").signIn("ann", password).shows(200, "Link your accounts?")
	b.press("link").shows(200, "The account is linked")

	f.users["bob"] = newcomer("31", "bob")
	f.users["bob"].password = password
	to = f.browser().get(base).signIn("ann", password).links().leaves()
	other := f.browser().get(base).signIn("bob", password)
	before := len(f.links)
	other.get(f.SignIn(to, object{"sub": "bob-there"}))
	require.Len(t, f.links, before, "another browser's answer links nothing")
}

// Where the connection is disabled, or the method links nobody, there is no way to it.
func TestALinkThatNobodyCanMake(t *testing.T) {
	t.Parallel()
	f := federate(t, `{"link": "never"}`)
	b := f.browser().get(base).signIn("ann", password)
	require.NotContains(t, b.body, "Linked accounts")
	b.links().shows(200, "Nobody can sign in with that service any more")
	b.post(base+"/links", url.Values{"action": {"add"}, "connection": {"78"}}).shows(200, "Nobody can sign in with")
}

// What is linked meanwhile goes nowhere if the method's policy changes on the way.
func TestALinkIsAskedForAgain(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	b := f.browser().get(base).signIn("ann", password)
	to := b.links().leaves()
	f.template.Steps[0].Methods[1].Policy = []byte(`{"link": "never"}`)
	f.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	wait.Until(t, func() bool { return f.browser().get(base).body != "" && !f.offersLinks() })
	b.get(f.SignIn(to, object{"sub": "new"})).shows(200, "Nobody can sign in with that service")
	require.Empty(t, f.links)
}

func (f *federated) offersLinks() bool {
	b := f.browser().get(base).signIn("ann", password)
	return len(b.body) == 0 || strings.Contains(b.body, "Link an account at")
}

// Whoever is invited can link an identity instead of choosing a password, and signs in by it.
func TestInvitedToALink(t *testing.T) {
	t.Parallel()
	f := withNewcomers(t).federate(`{}`)
	f.inviter().Post("/v1/users/31/invite", object{"application_id": "9"}).OK(nil)
	link := f.link(1)
	b := f.browser().follow(link).shows(200, "Sign in with Acme SSO instead")
	f.goesThrough(b, object{"sub": "bob-there", "name": "Bob there"}).shows(200, "Link your accounts?")
	b.shows(200, "Bob there").shows(200, "The account bob here is yours").shows(200, "Choose a password instead")
	require.Equal(t, "pending", f.invitation("31")["status"])
	require.Empty(t, f.links)
	b.press("skip-link").shows(200, "This account is yours")
	f.goesThrough(b, object{"sub": "bob-there"}).shows(200, "Link your accounts?")
	b.send(url.Values{"action": {"link"}})
	require.Equal(t, "accepted", f.invitation("31")["status"])
	require.Equal(t, true, f.users["bob"].record["email_verified"])
	require.Contains(t, b.at, f.Issuer, "the person signs in there at once")
	b.get(f.SignIn(b.at, object{"sub": "bob-there"}))
	require.Equal(t, "31", f.newest()["user_id"])
	require.Empty(t, f.users["bob"].password)
	f.browser().follow(link).shows(200, over)
}

// An identity of somebody else accepts no invitation, and one that was linked before the acceptance was stored does.
func TestInvitedToALinkAgain(t *testing.T) {
	t.Parallel()
	f := withNewcomers(t).federate(`{}`)
	f.linkAnn()
	f.invite("31")
	link := f.link(1)
	b := f.browser().follow(link)
	f.goesThrough(b, object{"sub": "ann-at-corp"}).shows(200, "belongs to somebody else here")
	require.Equal(t, "pending", f.invitation("31")["status"])

	f.change(func() {
		f.links[questions.ForeignIdentity{ConnectionID: corp, ProviderCode: "oidc", Subject: "bob-there"}] =
			&linked{"501", "31", "1"}
	})
	f.goesThrough(b, object{"sub": "bob-there"}).shows(200, "Link your accounts?").send(url.Values{"action": {"link"}})
	require.Equal(t, "accepted", f.invitation("31")["status"])
	require.Len(t, f.links, 2)
}

// Of two people with the same link, one links an identity. The other one's is not linked, even if both press the
// button at the same moment.
func TestAnInvitationLinksOneIdentity(t *testing.T) {
	t.Parallel()
	for range 10 {
		f := withNewcomers(t).federate(`{}`)
		f.invite("31")
		link := f.link(1)
		var both []*browser
		for _, who := range []string{"one", "two"} {
			b := f.goesThrough(f.browser().follow(link), object{"sub": who}).shows(200, "Link your accounts?")
			both = append(both, b)
		}
		var wg sync.WaitGroup
		for _, b := range both {
			wg.Go(func() { b.send(url.Values{"action": {"link"}}) })
		}
		wg.Wait()
		require.Equal(t, "accepted", f.invitation("31")["status"])
		require.Len(t, f.links, 1)
	}
}

// Somebody else who signs in on the way is not asked to link the identity of who has begun.
func TestALinkOfSomebodyElse(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.users["bob"] = newcomer("31", "bob")
	f.users["bob"].password = password
	b := f.browser().get(base).signIn("ann", password)
	f.goesThrough(b.links(), object{"sub": "ann-there"}).shows(200, "Link your accounts?")
	f.Clock.Advance(20 * time.Minute)
	b.get(b.at).signIn("bob", password).shows(200, "Nothing has changed")
	require.Empty(t, f.links)
}

// An invitation that has ended between two pages links nobody.
func TestAnInvitationToALinkEnds(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(f *federated){
		"scope":    func(f *federated) { f.change(func() { f.users["bob"].scoped = true }) },
		"address":  func(f *federated) { f.change(func() { f.users["bob"].record["email"] = "x@acme.test" }) },
		"password": func(f *federated) { f.change(func() { f.users["bob"].password = "something" }) },
		"revoked":  func(f *federated) { f.inviter().Delete("/v1/invitations/31", nil) },
		"away":     func(f *federated) { f.change(func() { f.away["users"] = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := withNewcomers(t).federate(`{}`)
			f.invite("31")
			b := f.goesThrough(f.browser().follow(f.link(1)), object{"sub": "bob-there"})
			b.shows(200, "Link your accounts?")
			do(f)
			b.press("link")
			require.Empty(t, f.links)
			require.Empty(t, f.sessions())
		})
	}
}

// A connection is offered to those who are invited where it is enough.
func TestWhoIsInvitedToALink(t *testing.T) {
	t.Parallel()
	const offer = "Sign in with Acme SSO instead"
	for name, edit := range map[string]func(f *federated) (offers bool){
		"two factors": func(f *federated) bool {
			f.demands("portal", func(c *questions.Client) { c.MFA = true })
			return true
		},
		"another one in the application": func(f *federated) bool {
			f.demands("portal", func(c *questions.Client) { c.Sources = []string{"78"} })
			return false
		},
		"a password in the application": func(f *federated) bool {
			f.templates = map[string]questions.LoginTemplate{"strict": {
				Found: true, Steps: []questions.LoginStep{{Required: true, Methods: methods("password")}},
			}}
			f.demands("portal", func(c *questions.Client) { c.LoginTemplate = "strict" })
			return false
		},
		"a password, too": func(f *federated) bool {
			f.template.Steps = append(f.template.Steps, questions.LoginStep{
				Required: true, Methods: methods("password"),
			})
			return false
		},
		"no links": func(f *federated) bool {
			f.template.Steps[0].Methods[1].Policy = []byte(`{"link": "never"}`)
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := withNewcomers(t).federate(`{}`)
			offers := edit(f)
			f.inviter().Post("/v1/users/31/invite", object{"application_id": "9"}).OK(nil)
			b := f.browser().follow(f.link(1)).shows(200, "This account is yours")
			require.Equal(t, offers, strings.Contains(b.body, offer), "%s", b.body)
			at := b.at
			b.send(url.Values{"action": {"leave"}, "connection": {corp}})
			require.Equal(t, offers, b.at != at, b.at)
		})
	}
}
