package signin_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// withDomain makes a world whose connection has a verified domain.
func withDomain(t testing.TB, policy string, d questions.ConnectionDomain, options ...testkit.Options) *federated {
	t.Helper()
	f := federate(t, policy, options...)
	connection := corpConnection
	connection.Domains = []questions.ConnectionDomain{d}
	f.template.Steps[0].Methods[1].Connections = []questions.Connection{connection}
	f.linkAnn()
	return f
}

var (
	acmeDomain = questions.ConnectionDomain{Name: "acme.test"}
	enforced   = questions.ConnectionDomain{Name: "acme.test", Enforced: true, ExemptUserIDs: []string{"21"}}
)

// names gives a login name on the page that asks for it alone.
func (b *browser) names(name string) *browser {
	b.w.t.Helper()
	b.shows(200, `value="name"`)
	require.NotContains(b.w.t, b.body, `name="password"`)
	return b.send(url.Values{"action": {"name"}, "login_name": {name}})
}

// The login name's domain leads to its connection.
func TestALoginNameLeadsToItsConnection(t *testing.T) {
	t.Parallel()
	for name, leads := range map[string]bool{
		"ann@acme.test": true, " Ann@ACME.test ": true, "ann＠acme.test": true, `"a@b"@acme.test`: true, "ann": false,
		"ann@sub.acme.test": false, "ann@notacme.test": false, "ann@acme.test.evil.test": false, "acme.test": false,
		"ann@": false, "@acme.test": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := withDomain(t, `{}`, acmeDomain)
			b := f.browser().get(f.authorize("portal")).shows(200, "Sign in with Acme SSO").names(name)
			if !leads {
				b.shows(200, `name="password"`).shows(200, "Sign in with Acme SSO")
				require.NotContains(t, b.body, `value="name"`)
				return
			}
			to, err := url.Parse(b.at)
			require.NoError(t, err)
			require.Equal(t, f.Issuer, to.Scheme+"://"+to.Host)
			require.NotEmpty(t, to.Query().Get("login_hint"))
			b.get(f.SignIn(b.at, object{"sub": "ann-at-corp"})).answered(callback)
		})
	}
}

// Whoever does not sign in there can come back to the password.
func TestBackFromAConnection(t *testing.T) {
	t.Parallel()
	f := withDomain(t, `{}`, acmeDomain)
	b := f.browser().get(f.authorize("portal")).names("ann@acme.test")
	b.get(f.Refuse(b.at, "access_denied")).shows(200, `name="password"`).shows(200, `value="ann@acme.test"`)
	b.signIn("ann", password).answered(callback)

	f = withDomain(t, `{}`, acmeDomain)
	f.Down = true
	b = f.browser().get(f.authorize("portal")).names("ann@acme.test")
	b.shows(200, "does not answer").shows(200, `name="password"`).signIn("ann", password).answered(callback)
}

// Another account begins with the name again.
func TestTheNameIsAskedAgainForAnotherAccount(t *testing.T) {
	t.Parallel()
	f := withDomain(t, `{}`, acmeDomain)
	b := f.browser().get(f.authorize("portal")).names("ann").shows(200, `value="ann"`)
	b.signIn("ann", password).answered(callback)
	b.get(f.authorize("wiki", "prompt", "select_account")).press("another").shows(200, `value="name"`)
}

// With enforce, the password of a user of the domain is good for nothing, by whatever name it comes.
func TestADomainIsEnforced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*federated, *user)
		login  string
		leads  bool
	}{
		"by the address":  {nil, "ann@acme.test", true},
		"by the username": {nil, "ann", true},
		"by a username of the domain": {
			func(_ *federated, u *user) { u.record["email"], u.record["username"] = "", "Ann@ACME.test" }, "ann", true,
		},
		"of another domain": {func(_ *federated, u *user) { u.record["email"] = "ann@b.test" }, "ann", false},
		"of nobody's":       {func(_ *federated, u *user) { u.record["email"] = "" }, "ann", false},
		"but for some":      {func(_ *federated, u *user) { u.record["id"] = "21" }, "ann", false},
		"not without the connection": {
			func(f *federated, _ *user) { f.template.Steps[0].Methods = f.template.Steps[0].Methods[:1] }, "ann", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := withDomain(t, `{}`, enforced)
			if c.change != nil {
				c.change(f, f.users["ann"])
			}
			f.users["ann@acme.test"] = f.users["ann"]
			b := f.browser().get(f.authorize("portal")).signIn(c.login, "wrong").shows(200, "do not match")
			b.signIn(c.login, password)
			if !c.leads {
				b.answered(callback)
				return
			}
			require.Contains(t, b.at, f.Issuer)
			require.Empty(t, f.sessions())
			b.get(f.SignIn(b.at, object{"sub": "ann-at-corp"})).answered(callback)
			require.Len(t, f.newest()["proofs"], 1)
		})
	}
}

// A session by a password is none where the domain is enforced; one through the connection is.
func TestSessionsOfAnEnforcedDomain(t *testing.T) {
	t.Parallel()
	f := withDomain(t, `{}`, acmeDomain)
	b := f.browser().get(f.authorize("portal")).names("ann").signIn("ann", password)
	b.answered(callback)
	connection := corpConnection
	connection.Domains = []questions.ConnectionDomain{enforced}
	f.change(func() { f.template.Steps[0].Methods[1].Connections = []questions.Connection{connection} })
	f.tell("connection_domain", "updated", "1", 1, object{"id": "1"})
	b.untilShows(f.authorize("wiki"), `value="name"`)
	b.names("ann@acme.test").get(f.SignIn(b.at, object{"sub": "ann-at-corp"})).answered(wikiCallback)
	b.get(f.authorize("portal")).answered(callback)
}

// A new password does not lead around it, and who is linked shows by the password who they are here.
func TestNewPasswordsInAnEnforcedDomain(t *testing.T) {
	t.Parallel()
	f := withDomain(t, `{}`, enforced)
	f.users["ann"].mustChange = true
	b := f.browser().get(f.authorize("portal")).signIn("ann", password)
	require.Contains(t, b.at, f.Issuer)
	require.Zero(t, f.sets)

	f.users["ann"].mustChange = false
	b = f.browser().get(f.authorize("portal"))
	f.goesThrough(b, object{"sub": "new"}).shows(200, "sign in here once").signIn("ann", password)
	b.shows(200, "Link your accounts?").press("link").answered(callback)
	b.get(f.authorize("wiki")).shows(200, `value="name"`)
}
