package signin_test

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/directorytest"
)

var directoryConnection = questions.Connection{ID: corp, ProviderCode: "ldap", Name: "Acme Directory"}

// annsEntry is where Ann is in the directory.
const annsEntry = "uid=ann.lee," + directorytest.Base

// withDirectory is a world whose people can sign in with a directory, by a method with a policy, beside the password of
// the platform.
func withDirectory(t testing.TB, policy string) (*world, *directorytest.Directory) {
	t.Helper()
	w, d := newWorld(t), directorytest.Start(t)
	d.Entries[annsEntry] = directorytest.Entry{Password: "her password there", Attributes: map[string][]string{
		"uid": {"ann.lee"}, "cn": {"Ann Lee"}, "displayName": {"Ann at Acme"}, "mail": {"ann.lee@acme.test"},
		"entryUUID": {"0E5B6B2A-0001-4000-8000-000000000001"}, "departmentNumber": {"R&D"},
		"userPassword": {"{SSHA}secret"}, "memberOf": {"cn=staff,dc=acme,dc=test"},
	}}
	w.connections[corp] = object{
		"Url": d.URL, "StartTls": false, "BaseDn": directorytest.Base, "BindDn": directorytest.Reader,
		"BindPassword": directorytest.Password,
	}
	w.providers[corp] = "ldap"
	w.template = questions.LoginTemplate{Found: true, Code: "staff", Steps: []questions.LoginStep{{
		Required: true, Methods: []questions.LoginMethod{
			{Code: "pwd", Type: "password"},
			{Code: "ldap", Type: "enterprise", Policy: json.RawMessage(policy),
				Connections: []questions.Connection{directoryConnection}},
		},
	}}}
	return w, d
}

// isLinked links Ann to her entry.
func (w *world) isLinked() {
	w.change(func() {
		w.links[questions.ForeignIdentity{
			ConnectionID: corp, ProviderCode: "ldap", Subject: "0e5b6b2a-0001-4000-8000-000000000001",
		}] = &linked{"500", "20", "1"}
	})
}

// asks presses the button of the directory.
func (b *browser) asks() *browser {
	b.w.t.Helper()
	return b.send(url.Values{"action": {"leave"}, "connection": {corp}})
}

func (b *browser) types(name, password string) *browser {
	b.w.t.Helper()
	return b.send(url.Values{"action": {"directory"}, "login_name": {name}, "password": {password}})
}

func TestSignInWithADirectory(t *testing.T) {
	t.Parallel()
	w, d := withDirectory(t, `{}`)
	w.isLinked()
	b := w.browser().get(w.authorize("portal")).shows(200, "Sign in with Acme Directory").asks()
	b.shows(200, "Choose another way").shows(200, `value="directory"`)
	b.press("back").shows(200, `value="sign-in"`).asks()
	b.types("ann.lee", "wrong").shows(200, "do not match").shows(200, `value="ann.lee"`)
	b.types("ann.lee", "her password there").answered(callback)
	session := w.newest()
	require.Equal(t, "20", session["user_id"])
	shown := session["proofs"].([]any)[0].(object)
	require.Equal(t, []any{"enterprise", "upstream:77", "link:500"},
		[]any{shown["method"], shown["channel"], shown["credential"]})
	require.Zero(t, w.verified, "nobody asked the users service for the password")
	require.Equal(t, []string{annsEntry, annsEntry}, d.Binds)
	b.get(w.authorize("wiki")).answered(wikiCallback)
}

// Nobody comes in by a name or a password that the directory would take for something else.
func TestDirectoriesAreNotTricked(t *testing.T) {
	t.Parallel()
	w, d := withDirectory(t, `{"create": "1"}`)
	w.isLinked()
	d.Entries["uid=bob,"+directorytest.Base] = directorytest.Entry{Password: "bob's", Attributes: map[string][]string{
		"uid": {"bob"}, "cn": {"Bob"},
	}}
	for name, row := range map[string]struct{ name, password, says string }{
		"no password":            {"ann.lee", "", "do not match"},
		"no name":                {"", "her password there", "do not match"},
		"any name":               {"*", "her password there", "do not match"},
		"a filter":               {"ann.lee)(objectClass=*", "her password there", "do not match"},
		"a filter of two":        {"x)(|(uid=ann.lee", "her password there", "do not match"},
		"a zero":                 {"ann.lee\x00", "her password there", "do not match"},
		"a distinguished name":   {annsEntry, "her password there", "do not match"},
		"an unknown name":        {"eve", "her password there", "do not match"},
		"an entry without an id": {"bob", "bob's", "did not work"},
	} {
		t.Run(name, func(t *testing.T) {
			b := w.browser().get(w.authorize("portal")).asks()
			b.types(row.name, row.password).shows(200, row.says)
			require.Empty(t, w.sessions())
			w.Clock.Advance(10 * time.Minute)
		})
	}
	require.Empty(t, w.changes)
	d.Change(func() {
		d.Entries["uid=ann.lee,ou=other,"+directorytest.Base] = d.Entries[annsEntry]
	})
	w.browser().get(w.authorize("portal")).asks().types("ann.lee", "her password there").shows(200, "did not work")
	d.Change(func() {
		delete(d.Entries, "uid=ann.lee,ou=other,"+directorytest.Base)
		d.Refuses = 53 // unwillingToPerform: the account is closed
	})
	w.browser().get(w.authorize("portal")).asks().types("ann.lee", "her password there").shows(200, "do not match")
	require.Empty(t, w.sessions())
	d.Change(func() { d.Refuses = 0 })

	binds := len(d.Binds)
	w.browser().get(w.authorize("portal")).asks().types("nobody", "any")
	require.Len(t, d.Binds, binds+1, "an unknown name takes a bind, too")
}

// A directory that does not answer, or whose reader it does not know, is not the person's fault.
func TestDirectoriesThatFail(t *testing.T) {
	t.Parallel()
	w, d := withDirectory(t, `{}`)
	w.isLinked()
	fields := w.connections[corp]
	try := func() *browser {
		return w.browser().get(w.authorize("portal")).asks().types("ann.lee", "her password there")
	}
	w.change(func() { w.connections[corp] = with(fields, "Url", "ldap://127.0.0.1:1") })
	try().shows(200, "does not answer").shows(200, "Choose another way")
	w.change(func() { w.connections[corp] = with(fields, "Url", "ldap://127.0.0.1:1 "+d.URL) })
	try().answered(callback)
	w.change(func() { w.connections[corp] = with(fields, "BindPassword", "old") })
	try().shows(200, "did not work")
	w.change(func() { w.connections[corp] = with(fields, "BaseDn", "dc=nowhere") })
	try().shows(200, "did not work")
	w.change(func() { w.connections[corp] = with(fields, "StartTls", true) })
	try().shows(200, "does not answer")
	w.change(func() { w.connections[corp] = with(fields, "UserFilter", "(mail={username})") })
	w.browser().get(w.authorize("portal")).asks().types("ann.lee@acme.test", "her password there").answered(callback)
	w.change(func() { delete(w.connections, corp) })
	try().shows(200, "did not work")
}

func with(fields object, member string, value any) object {
	changed := object{member: value}
	for name, one := range fields {
		if name != member {
			changed[name] = one
		}
	}
	return changed
}

// Where the directory is the only way, its page comes at once.
func TestADirectoryAlone(t *testing.T) {
	t.Parallel()
	w, _ := withDirectory(t, `{"create": "1", "domains": ["acme.test"], "claim_mapping": {
		"sys_ext_props.department": "departmentNumber", "sys_ext_props.staff":
		"claims.memberOf.exists(g, g.startsWith(\"cn=staff,\")) ? \"yes\" : \"no\""}}`)
	w.template.Steps[0].Methods = w.template.Steps[0].Methods[1:]
	b := w.browser().get(w.authorize("portal")).shows(200, "Sign in with Acme Directory")
	require.NotContains(t, b.body, "Choose another way")
	b.types("Ann.Lee", "her password there").answered(callback)
	require.Equal(t, []object{{
		"username": "ann.lee", "display_name": "Ann at Acme", "email": "ann.lee@acme.test", "email_verified": true,
		"sys_ext_props": object{"department": "R&D", "staff": "yes"},
	}}, w.changes)
}

// Wrong passwords of one name are few, so that a stranger does not lock the account in the directory. A browser in
// which the person has signed in before is counted apart.
func TestGuessesAtADirectory(t *testing.T) {
	t.Parallel()
	w, d := withDirectory(t, `{}`)
	w.isLinked()
	d.Entries[annsEntry].Attributes["uid"] = []string{"ann"}
	known := w.browser().get(w.authorize("portal")).asks()
	known.types("ann", "her password there").answered(callback)
	before := len(d.Binds)
	for i := range 12 {
		w.from("198.51.100."+string(rune('0'+i%10))).get(w.authorize("portal")).asks().types(" ANN ", "guess")
	}
	require.Equal(t, 5, len(d.Binds)-before)
	stranger := w.browser().get(w.authorize("portal")).asks()
	stranger.types("ann", "her password there").shows(429, "wrong passwords for this name")
	known.get(w.authorize("portal", "prompt", "login")).asks()
	known.types("ann", "wrong").shows(200, "do not match").types("ann", "her password there").answered(callback)
	known.get(w.authorize("portal", "prompt", "login")).asks()
	for range 12 {
		known.types("ann", "guess")
	}
	known.shows(429, "wrong passwords for this name")
	require.Equal(t, 5+2+4, len(d.Binds)-before)
}

// All names of one entry of Active Directory are counted together.
func TestGuessesByManyNames(t *testing.T) {
	t.Parallel()
	w, d := withDirectory(t, `{}`)
	w.providers[corp] = "active_directory"
	w.template.Steps[0].Methods[1].Connections[0].ProviderCode = "active_directory"
	w.connections[corp]["Domain"] = "corp.acme.test"
	entry := d.Entries[annsEntry]
	entry.Attributes["sAMAccountName"], entry.Attributes["objectCategory"] = []string{"ann"}, []string{"person"}
	delete(entry.Attributes, "entryUUID")
	guid := "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\xff"
	entry.Attributes["objectGUID"] = []string{guid}
	w.links[questions.ForeignIdentity{
		ConnectionID: corp, ProviderCode: "active_directory", Subject: hex.EncodeToString([]byte(guid)),
	}] = &linked{"500", "20", "1"}
	for _, name := range []string{"ann", `CORP\ann`, "ANN@corp.acme.test"} {
		w.browser().get(w.authorize("portal")).asks().types(name, "her password there").answered(callback)
	}
	before := len(d.Binds)
	for i := range 12 {
		b := w.from("198.51.100." + strconv.Itoa(i)).get(w.authorize("portal")).asks()
		b.types(strings.Repeat("X", i)+`\ann`, "guess")
	}
	require.Equal(t, 5, len(d.Binds)-before)
}

// A name of a mail domain leads to the page of the directory, and so does the password of a user who must go there.
func TestADomainLeadsToADirectory(t *testing.T) {
	t.Parallel()
	w, d := withDirectory(t, `{}`)
	w.isLinked()
	d.Entries[annsEntry].Attributes["uid"] = []string{"ann@acme.test"}
	connection := directoryConnection
	connection.Domains = []questions.ConnectionDomain{{Name: "acme.test", Enforced: true}}
	w.template.Steps[0].Methods[1].Connections[0] = connection
	b := w.browser().get(w.authorize("portal")).names("ann@acme.test").shows(200, "Sign in with Acme Directory")
	b.shows(200, `value="ann@acme.test"`).types("ann@acme.test", "her password there").answered(callback)
	b = w.browser().get(w.authorize("portal")).names("ann").signIn("ann", password)
	b.shows(200, "Sign in with Acme Directory").types("ann@acme.test", "her password there").answered(callback)
}

// A directory can be the second step, and its wrong password takes nothing away that was shown before.
func TestADirectoryAsASecondStep(t *testing.T) {
	t.Parallel()
	w, _ := withDirectory(t, `{}`)
	w.isLinked()
	step := w.template.Steps[0]
	w.template.Steps = []questions.LoginStep{
		{Required: true, Methods: step.Methods[:1]}, {Required: true, Methods: step.Methods[1:]},
	}
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Sign in with Acme Directory")
	b.asks().types("ann.lee", "wrong").shows(200, "do not match")
	b.types("ann.lee", "her password there").answered(callback)
}

// People link their entry from their own page, and by an invitation.
func TestLinksToADirectory(t *testing.T) {
	t.Parallel()
	w, _ := withDirectory(t, `{"create": "1"}`)
	b := w.browser().get(base).signIn("ann", password).links().asks()
	b.types("ann.lee", "wrong").shows(200, "do not match")
	b.types("ann.lee", "her password there").shows(200, "Link your accounts?").shows(200, "Ann at Acme")
	b.press("link").shows(200, "The account is linked")
	require.Empty(t, w.changes)
	require.Len(t, w.links, 1)
}

// Nobody goes to a directory, or comes back from one.
func TestNobodyComesBackFromADirectory(t *testing.T) {
	t.Parallel()
	w, _ := withDirectory(t, `{}`)
	b := w.browser().get(w.authorize("portal")).asks()
	at := b.at
	b.get(base + "/callback/" + corp + "?state=x&code=y")
	require.Equal(t, http.StatusOK, b.get(at).page.StatusCode)
	require.Empty(t, w.sessions())
}

// Whoever has chosen a directory in another tab meanwhile comes back from a provider all the same.
func TestADirectoryInAnotherTab(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	f.providers["78"] = "ldap"
	connections := &f.template.Steps[0].Methods[1].Connections
	*connections = append(*connections, questions.Connection{ID: "78", ProviderCode: "ldap", Name: "Acme Directory"})
	b := f.browser().get(f.authorize("portal"))
	to := b.leaves()
	u, err := url.Parse(to)
	require.NoError(t, err)
	flow, _, _ := strings.Cut(u.Query().Get("state"), ".")
	b.get(base + "/flow/" + flow).send(url.Values{"action": {"leave"}, "connection": {"78"}})
	b.shows(200, "Choose another way")
	b.get(f.SignIn(to, object{"sub": "ann-at-corp"})).answered(callback)
}
