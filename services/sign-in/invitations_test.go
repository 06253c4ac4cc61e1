package signin_test

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
)

// withNewcomers is a world with mails, and two people who have no password.
func withNewcomers(t testing.TB) *world {
	t.Helper()
	w := withMails(t)
	w.users["bob"], w.users["eve"] = newcomer("31", "bob"), newcomer("32", "eve")
	return w
}

// newcomer is a user without a password.
func newcomer(id, name string) *user {
	return &user{sequence: 10, record: object{
		"id": id, "tenant_id": "acme", "username": name, "display_name": "", "email": name + "@acme.test",
		"email_verified": false, "locale": "", "status": "1", "locked": false, "lock_reason": "",
		"time_password_changed": nil, "mobile": "",
	}}
}

// inviter is a client that may invite.
func (w *world) inviter(more ...auth.Scope) *testkit.Client {
	return w.As("acme", append(more, auth.UsersSecrets, auth.UsersRead)...)
}

func (w *world) invite(id string) object {
	w.t.Helper()
	return w.inviter().Post("/v1/users/"+id+"/invite", "").Object()
}

var mailedLink = regexp.MustCompile(`https://idp\.test/sign-in/acme/invitation\?code=((?:[A-Z0-9]{4}-){3}[A-Z0-9]{4})`)

// link waits for the nth mail, and returns its link.
func (w *world) link(n int) string {
	w.t.Helper()
	w.RunTask("send invitations")
	mails := w.mails.Wait(w.t, n)
	text := strings.ReplaceAll(mails[n-1].Data, "=\r\n", "")
	text = strings.ReplaceAll(text, "=3D", "=")
	found := mailedLink.FindString(text)
	require.NotEmpty(w.t, found, "%s", text)
	return found
}

// follow opens an invitation's link and presses its button.
func (b *browser) follow(link string) *browser {
	b.w.t.Helper()
	code := link[strings.LastIndex(link, "=")+1:]
	b.get(link).shows(200, "You are invited")
	require.Contains(b.w.t, b.body, `value="`+code+`"`)
	return b.send(url.Values{"code": {code}})
}

// What people read whose link does not serve.
const (
	over      = "This invitation does not work any more"
	openAgain = "open the link in the email again"
)

func TestInvitation(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	made := w.invite("31")
	require.Equal(t, []any{"31", "bob@acme.test", "pending", nil}, []any{made["id"], made["email"], made["status"],
		made["time_ended"]})
	require.NotContains(t, made, "code")
	link := w.link(1)
	mail := w.mails.Mails()[0]
	require.Equal(t, "bob@acme.test", mail.To)
	require.Contains(t, mail.Data, "You sign in as bob.")

	w.browser().get(link).get(link).shows(200, "Accept the invitation") // a scanner's GET uses nothing up
	w.browser().follow(link).shows(200, "This account is yours")        // nor does a button, until there is a password
	b := w.browser().get(w.authorize("portal")).signIn("ann", password)
	b.follow(link).shows(200, `value="bob"`)
	b.choose("short").shows(200, "cannot be used")
	b.choose("a new battery staple").shows(200, "bob")
	require.Equal(t, base, b.at)
	require.Equal(t, "a new battery staple", w.users["bob"].password)
	require.Equal(t, "bob@acme.test", w.verifiedTo)
	session := first(w.admin().Get("/v1/sessions?user_id=31"))
	require.Equal(t, []any{"pwd"}, session["amr"])

	w.tellUser("password_changed", w.users["bob"])
	wait.Until(t, func() bool { return w.invitation("31")["status"] == "accepted" })
	require.NotNil(t, w.invitation("31")["time_ended"])
	w.browser().follow(link).shows(200, over)
}

func (w *world) invitation(id string) object {
	w.t.Helper()
	return w.inviter().Get("/v1/invitations/" + id).Object()
}

var statuses = map[string]int{"invalid_state": 409, "not_found": 404, "unavailable": 503}

func TestInvitationsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		id     string
		change func(w *world, bob *user)
		terms  object
		code   string // of the error, or the member that is wrong
	}{
		"a password":     {"20", nil, nil, "invalid_state"},
		"no such user":   {"99", nil, nil, "not_found"},
		"no address":     {"31", func(_ *world, bob *user) { bob.record["email"] = "" }, nil, "invalid_state"},
		"disabled":       {"31", func(_ *world, bob *user) { bob.record["status"] = "0" }, nil, "invalid_state"},
		"a scope":        {"31", func(_ *world, bob *user) { bob.scoped = true }, nil, "invalid_state"},
		"users away":     {"31", func(w *world, _ *user) { w.away["users"] = true }, nil, "unavailable"},
		"sources away":   {"31", func(w *world, _ *user) { w.away["identity-sources"] = true }, nil, "unavailable"},
		"no mail server": {"31", func(w *world, _ *user) { w.mails = nil }, nil, "invalid_state"},
		"no application": {"31", nil, object{"application_id": "404"}, "application_id"},
		"disabled application": {"31", func(w *world, _ *user) {
			c := w.clients["portal"]
			c.Enabled = false
			w.clients["portal"] = c
		}, object{"application_id": "9"}, "application_id"},
		"too long":  {"31", nil, object{"expires_hours": 721}, "expires_hours"},
		"too short": {"31", nil, object{"expires_hours": -1}, "expires_hours"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withNewcomers(t)
			if row.change != nil {
				w.change(func() { row.change(w, w.users["bob"]) })
			}
			var body any = ""
			if row.terms != nil {
				body = row.terms
			}
			answer := w.inviter().Post("/v1/users/"+row.id+"/invite", body)
			if status := statuses[row.code]; status != 0 {
				answer.Problem(status, row.code)
			} else {
				answer.Problem(400, "invalid_parameters", "body."+row.code)
			}
			require.Empty(t, w.inviter().Get("/v1/invitations").Object()["items"])
		})
	}
	w := withNewcomers(t)
	w.invite("31")
	w.As("globex", auth.UsersSecrets).Post("/v1/users/31/invite", "").Problem(409, "invalid_state") // no mail server
	w.As("globex", auth.UsersRead).Get("/v1/invitations/31").Problem(404, "not_found")
}

// Whatever ends a link ends it before its button is pressed, and where the password is being chosen.
func TestLinksEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, bob *user){
		"sent again": func(w *world, _ *user) { w.inviter().Post("/v1/invitations/31/resend", "").OK(nil) },
		"invited again": func(w *world, _ *user) {
			w.invite("31")
		},
		"revoked":          func(w *world, _ *user) { w.inviter().Delete("/v1/invitations/31", nil).OK(nil) },
		"expired":          func(w *world, _ *user) { w.Clock.Advance(30 * time.Minute) },
		"another address":  func(w *world, bob *user) { w.change(func() { bob.record["email"] = "b@acme.test" }) },
		"disabled":         func(w *world, bob *user) { w.change(func() { bob.record["status"] = "0" }) },
		"a scope":          func(w *world, bob *user) { w.change(func() { bob.scoped = true }) },
		"another password": func(w *world, bob *user) { w.change(func() { bob.password = "by an administrator" }) },
		"deleted": func(w *world, bob *user) {
			w.change(func() { delete(w.users, "bob") })
			w.tellUser("deleted", bob)
			wait.Until(w.t, func() bool { return len(w.inviter().Items("/v1/invitations", "id")) == 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withNewcomers(t)
			bob := w.users["bob"]
			w.inviter().Post("/v1/users/31/invite", object{"expires_hours": 1}).OK(nil)
			link := w.link(1)
			w.Clock.Advance(30 * time.Minute)
			begun := w.browser().get(w.authorize("portal")).signIn("ann", password) // whose session is not used
			begun.follow(link).shows(200, "This account is yours")
			end(w, bob)
			w.browser().follow(link).shows(200, over)
			begun.choose("a new battery staple").shows(200, openAgain)
			begun.choose("a new battery staple").shows(200, "Sign in")
			require.NotEqual(t, "a new battery staple", bob.password)
			require.Equal(t, []any{"20"}, w.admin().Items("/v1/sessions", "user_id"))
		})
	}
}

// No form of a flow that a link has begun sets a password once the link has ended.
func TestNoFormKeepsALink(t *testing.T) {
	t.Parallel()
	for _, form := range []url.Values{
		{"action": {"back"}}, {"action": {"forgot"}, "login_name": {"bob"}}, {"action": {"another"}},
		{"action": {"send-code"}, "login_name": {"bob"}}, {"action": {"code"}, "code": {"BCDF-GHJK"}},
		{"action": {"continue"}}, {"action": {"account"}}, {"action": {"begin"}}, {"action": {"deny"}},
		{"action": {"sign-in"}, "login_name": {"bob"}, "password": {"wrong"}},
	} {
		w := withNewcomers(t)
		w.invite("31")
		b := w.browser().follow(w.link(1))
		to := b.at
		w.inviter().Delete("/v1/invitations/31", nil).OK(nil)
		b.post(to, form)
		b.post(to, url.Values{
			"action": {"new-password"}, "password": {"a new battery staple"}, "repeated": {"a new battery staple"},
		})
		require.Empty(t, w.users["bob"].password, "%v", form)
	}
}

// A page that is left open for too long, and a browser without cookies, read what to do.
func TestInvitationsThatCannotGoOn(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.invite("31")
	link := w.link(1)
	b := w.browser().follow(link)
	at := b.at
	w.Clock.Advance(23 * time.Hour)
	b.choose("short").shows(200, "cannot be used")
	w.Clock.Advance(time.Hour)
	b.choose("a new battery staple").shows(200, "Sign in")
	b.get(at).shows(200, openAgain)
	require.Empty(t, w.users["bob"].password)
	code := url.Values{"code": {link[strings.LastIndex(link, "=")+1:]}}
	w.browser().post(base+"/invitation", code).shows(200, "does not keep cookies")
	b = w.browser().get(link)
	for range opensAtOnce - 1 {
		w.browser().follow(link).shows(200, "This account is yours")
	}
	b.post(base+"/invitation", code).shows(429, "too many attempts")
	w.invite("32")
	w.browser().follow(w.link(2)).shows(200, "This account is yours") // only its own link was opened too often
}

// opensAtOnce is how often a link can be opened at once.
const opensAtOnce = 20

// Links are gone with whatever has ended them, and a later password changes nothing about an invitation that has ended.
func TestNothingIsLeftOfLinks(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	links := func() int { return len(w.stored(storedLinks)) }
	w.inviter().Post("/v1/batch/users/invite", object{"ids": []string{"31", "32"}, "expires_hours": 1}).OK(nil)
	require.Equal(t, 2, links())
	w.tellUser("password_changed", w.users["bob"])
	wait.Until(t, func() bool { return w.invitation("31")["status"] == "accepted" })
	require.Equal(t, 1, links())
	w.Clock.Advance(time.Hour)
	w.RunTask("end invitations")
	require.Equal(t, "expired", w.invitation("32")["status"])
	require.Zero(t, links())
	ended := w.invitation("31")["time_ended"]
	w.tellUser("password_changed", w.users["eve"])
	w.tellUser("password_changed", w.users["bob"])
	w.users["last"] = newcomer("33", "last")
	w.invite("33")
	require.Equal(t, 1, links())
	w.tellUser("deleted", w.users["last"])
	wait.Until(t, func() bool { return links() == 0 })
	require.Equal(t, []any{"expired", "accepted", ended},
		[]any{w.invitation("32")["status"], w.invitation("31")["status"], w.invitation("31")["time_ended"]})
}

// Invitations and what strangers ask for have limits of their own, and many invitations delay no code.
func TestInvitationsAreApart(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	ids := make([]string, 50)
	for i := range ids {
		ids[i] = strconv.Itoa(100 + i)
		w.users[ids[i]] = newcomer(ids[i], "n"+ids[i])
		w.users[ids[i]].record["email"] = "ann@acme.test"
	}
	limits := object{"per_hour_of_address": 50, "per_hour": 50}
	w.admin().Patch("/v1/sign-in/settings", object{"messages": limits}).OK(nil)
	w.inviter().Post("/v1/batch/users/invite", object{"ids": ids}).OK(nil)
	refused := w.inviter().Post("/v1/users/100/invite", "")
	refused.Problem(429, "rate_limited")
	after, err := strconv.Atoi(refused.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.LessOrEqual(t, after, 3600)
	require.Positive(t, after)
	w.browser().forgets("ann") // the limits of strangers have room
	w.sendMails()
	w.mails.Wait(t, 51)

	w.Clock.Advance(time.Hour)
	limits = object{"per_hour_of_address": 1, "per_hour": 1}
	w.admin().Patch("/v1/sign-in/settings", object{"messages": limits}).OK(nil)
	w.browser().forgets("ann")
	w.sendMails()
	w.inviter().Post("/v1/users/100/invite", "").OK(nil)
}

// Many invitations that a mail server is slow to take delay no code.
func TestInvitationsDelayNoCode(t *testing.T) {
	t.Parallel()
	w := withMails(t)
	hold := make(chan struct{})
	w.mails.Answer(func(to string) error {
		if to != "ann@acme.test" {
			<-hold
		}
		return nil
	})
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = strconv.Itoa(100 + i)
		w.users[ids[i]] = newcomer(ids[i], "n"+ids[i])
	}
	w.inviter().Post("/v1/batch/users/invite", object{"ids": ids}).OK(nil)
	wait.Until(t, func() bool { return w.mails.Tried() > 0 }) // by the service itself
	w.browser().forgets("ann")
	w.RunTask("send recovery codes")
	w.RunTask("send mails")
	require.Equal(t, "ann@acme.test", w.mails.Wait(t, 1)[0].To)
	close(hold)
	w.mails.Wait(t, 21)
}

// Sent again, an invitation has another link, which works.
func TestResentInvitation(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.inviter().Post("/v1/users/31/invite", object{"expires_hours": 1, "application_id": "9"}).OK(nil)
	w.link(1)
	w.Clock.Advance(2 * time.Hour)
	w.change(func() { w.users["bob"].record["email"] = "robert@acme.test" })
	w.inviter().With("If-Match", `"99"`).Post("/v1/invitations/31/resend", "").Problem(412, "version_mismatch")
	w.change(func() {
		c := w.clients["wiki"]
		c.Enabled = false
		w.clients["wiki"] = c
	})
	again := w.inviter().Post("/v1/invitations/31/resend", "").Object()
	require.Equal(t, []any{"pending", "robert@acme.test", 1.0, "9"},
		[]any{again["status"], again["email"], again["expires_hours"], again["application_id"]})
	w.browser().follow(w.link(2)).choose("a new battery staple")
	require.Equal(t, "a new battery staple", w.users["bob"].password)
	require.Equal(t, "robert@acme.test", w.mails.Mails()[1].To)
	w.inviter().Post("/v1/invitations/99/resend", "").Problem(404, "not_found")
	w.Clock.Advance(time.Hour)

	w.mails.Answer(func(string) error { return mailtest.Refused(451) })
	w.invite("32")
	w.RunTask("send invitations")
	w.invite("32")
	w.mails.Answer(nil)
	w.advanceUntil(func() bool { return len(w.mails.Mails()) == 3 })
	for range 100 { // a former link is not mailed any more
		w.RunTask("send invitations")
		w.Clock.Advance(5 * time.Second)
	}
	require.Len(t, w.mails.Mails(), 3)
	w.browser().follow(w.link(3)).shows(200, "This account is yours")
}

// The application of an invitation opens once the password is chosen; one that cannot be opened keeps nobody out.
func TestInvitationToAnApplication(t *testing.T) {
	t.Parallel()
	for opens, launchable := range map[string][]questions.Launchable{
		"https://portal.test/start": {{ID: "9", Name: "Portal", LoginURL: "https://portal.test/start"}},
		base:                        {},
	} {
		w := withNewcomers(t)
		w.launchable = launchable
		w.inviter().Post("/v1/users/31/invite", object{"application_id": "9"}).OK(nil)
		require.Equal(t, opens, w.browser().follow(w.link(1)).choose("a new battery staple").at)
	}
}

// Invitations are sent to all or to nobody.
func TestInviteMany(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	invite := func(ids ...string) *testkit.Answer {
		return w.inviter().Post("/v1/batch/users/invite", object{"ids": ids})
	}
	invite("31", "20", "32", "99", "31").Problem(400, "invalid_parameters", "body.ids[1]", "body.ids[3]", "body.ids[4]")
	require.Empty(t, w.inviter().Get("/v1/invitations").Object()["items"])
	w.RunTask("send invitations")
	require.Empty(t, w.mails.Mails())
	w.inviter().Post("/v1/batch/users/invite?dry_run=1", object{"ids": []string{"31"}}).OK(nil)
	items := invite("31", "32").Object()["items"].([]any)
	require.Equal(t, []any{"31", "32"}, []any{items[0].(object)["id"], items[1].(object)["id"]})
	w.link(2)
	require.Len(t, w.mails.Mails(), 2)
	require.Len(t, w.inviter().Get("/v1/invitations?status=pending").Object()["items"], 2)
	require.Empty(t, w.inviter().Get("/v1/invitations?status=accepted").Object()["items"])
	for range 4 {
		invite("31").OK(nil)
	}
	invite("32", "31").Problem(429, "rate_limited") // bob has had five
	w.admin().Patch("/v1/sign-in/settings", object{"messages": object{"per_hour": 7}}).OK(nil)
	invite("32").OK(nil)
	invite("32").Problem(429, "rate_limited")
	w.Clock.Advance(time.Hour)
	invite("32", "31").OK(nil)
	w.change(func() { w.away["users"] = true })
	invite("31").Problem(503, "unavailable")
}

// While the users service does not answer, the page says so, and the link stays good.
func TestInvitationWhileUsersAreAway(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.invite("31")
	link := w.link(1)
	w.change(func() { w.away["users"] = true })
	b := w.browser().follow(link).shows(503, "not answering")
	w.change(func() { w.away["users"] = false })
	b = b.send(url.Values{"code": {link[strings.LastIndex(link, "=")+1:]}}).shows(200, "This account is yours")
	w.change(func() { w.away["users"] = true })
	b.choose("a new battery staple").shows(503, "not answering")
	w.change(func() { w.away["users"] = false })
	b.choose("a new battery staple").shows(200, "bob")
}

// A code can be typed, and a wrong one says no more than one that has ended.
func TestInvitationByCode(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.invite("31")
	link := w.link(1)
	code := strings.ToLower(strings.ReplaceAll(link[strings.LastIndex(link, "=")+1:], "-", " "))
	b := w.browser().get("/invitation").shows(200, "Code from the email")
	for _, wrong := range []string{"", "BCDF", "BCDF-GHJK-MNPQ-RTVW", strings.Repeat("B", 9999), "李"} {
		b.send(url.Values{"code": {wrong}}).shows(200, over)
	}
	b.send(url.Values{"code": {code}}).shows(200, "This account is yours")
	w.browser().get("https://idp.test/sign-in/globex/invitation?code="+url.QueryEscape(code)).
		send(url.Values{"code": {code}}).shows(200, over)
	r, err := http.NewRequest(http.MethodPost, base+"/invitation", strings.NewReader("code="+url.QueryEscape(code)))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w.browser().do(r).shows(403, "another site")
}

// An invitation that nobody accepts expires, and is forgotten 30 days later.
func TestInvitationsExpire(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.invite("31")
	w.link(1)
	w.Clock.Advance(167 * time.Hour)
	w.RunTask("end invitations")
	require.Equal(t, "pending", w.invitation("31")["status"])
	w.Clock.Advance(time.Hour)
	w.RunTask("end invitations")
	require.Equal(t, "expired", w.invitation("31")["status"])
	w.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.invitation.expired" })
	w.Clock.Advance(30*24*time.Hour - time.Second)
	w.RunTask("end invitations")
	w.invitation("31")
	w.Clock.Advance(time.Second)
	w.RunTask("end invitations")
	w.inviter().Get("/v1/invitations/31").Problem(404, "not_found")
}

// The code is nowhere but in the mail: neither in the store nor in the log, an answer or an event.
func TestInvitationCodesAreSecret(t *testing.T) {
	t.Parallel()
	var log basic.LogBuffer
	mails := mailtest.Start(t, mailtest.STARTTLS)
	w := newWorld(t, testkit.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		Level: slog.LevelDebug,
	}))})
	w.change(func() { w.users["bob"], w.mails = newcomer("31", "bob"), mails })
	mails.Answer(func(string) error { return mailtest.Refused(451) })
	said := []string{fmt.Sprint(w.invite("31"))}
	w.RunTask("send invitations")
	for _, of := range []string{"invitation_mails", "invitations", "invitation_links"} {
		said = append(said, slices.Collect(maps.Values(testkit.Stored(t, w.Service, "acme", of)))...)
	}
	require.Len(t, said, 4)
	mails.Answer(nil)
	w.advanceUntil(func() bool { return len(mails.Mails()) == 1 })
	link := w.link(1)
	w.browser().follow(link).shows(200, "This account is yours")
	said = append(said, slices.Collect(maps.Values(testkit.Stored(t, w.Service, "acme", "flows")))...)
	for _, e := range w.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.invitation.created" }) {
		said = append(said, string(e.Data))
	}
	code := link[strings.LastIndex(link, "=")+1:]
	for _, text := range append(said, log.String()) {
		require.NotContains(t, text, code)
		require.NotContains(t, text, strings.ReplaceAll(code, "-", ""))
	}
	require.NotContains(t, log.String(), "bob@acme.test", "no address is in the log")
}

// Whoever is invited can set up a passkey instead of a password, and has no password then. The passkey verifies its
// user, and the sign-in page finds it; it stays as long as there is no other one.
func TestInvitedToAPasskey(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.users["bob"].record["password_set"] = false
	w.demands("portal", func(c *questions.Client) { c.MFA = true })
	w.inviter().Post("/v1/users/31/invite", object{"application_id": "9"}).OK(nil)
	link := w.link(1)
	b := w.browser().follow(link).shows(200, "Use a passkey instead")
	b.chooses("webauthn").shows(200, "Set up a passkey").shows(200, "Choose a password instead")
	b.press("back").shows(200, "Use a passkey instead").chooses("otp").shows(200, "Use a passkey instead")
	b.chooses("webauthn").sendsMade("", "{}").shows(200, "That passkey does not work here")
	require.Contains(t, b.options(), `"residentKey":"required"`)
	b.makes("", virtualwebauthn.AuthenticatorOptions{UserNotVerified: true})
	b.shows(200, "That passkey does not work here")
	require.Equal(t, "pending", w.invitation("31")["status"])
	a := b.makes("Phone", virtualwebauthn.AuthenticatorOptions{})
	b.shows(200, "Keep your recovery codes")
	require.Equal(t, "accepted", w.invitation("31")["status"])
	require.Equal(t, true, w.users["bob"].record["email_verified"])
	b.press("kept")
	require.Empty(t, w.users["bob"].password)
	w.browser().follow(link).shows(200, over)

	w.Clock.Advance(time.Minute)
	b = w.browser().get(w.authorize("portal")).uses(a).arrives(callback)
	b.get(base).shows(200, "Phone")
	require.NotContains(t, b.body, "Present password")
	for _, f := range w.factors() {
		if f["type"] == "webauthn" {
			b.factor("remove", f["id"].(string)).shows(200, "It stays: you have no password")
		}
	}
	require.Len(t, w.factors(), 2)
	w.Clock.Advance(6 * time.Minute)
	w.template = questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{
		{Required: true, Methods: methods("password")}, {Required: true, Methods: methods("otp")},
	}}
	w.tell("auth_template", "updated", "1", 1, object{"id": "1"})
	wait.Until(t, func() bool { return b.get(w.authorize("wiki")).page.StatusCode == 403 })
	b.shows(403, "a password (no enabled method is left)")
}

// A passkey is offered where it is enough for the own page and for the application, and to nobody who has a password.
func TestWhoIsInvitedToAPasskey(t *testing.T) {
	t.Parallel()
	const offer = "Use a passkey instead"
	template := func(types ...string) questions.LoginTemplate {
		return questions.LoginTemplate{Found: true, Steps: []questions.LoginStep{{
			Required: true, Methods: methods(types...),
		}}}
	}
	for name, c := range map[string]struct {
		edit   func(w *world)
		offers bool
	}{
		"two factors": {func(w *world) {
			w.demands("portal", func(c *questions.Client) { c.MFA = true })
		}, true},
		"a password on the own page": {func(w *world) { w.template = template("password") }, false},
		"either":                     {func(w *world) { w.template = template("password", "webauthn") }, true},
		"two factors by an app alone": {func(w *world) {
			w.demands("portal", func(c *questions.Client) { c.MFA, c.MFAMethods = true, []string{"otp"} })
		}, false},
		"a password in the application": {func(w *world) {
			w.templates = map[string]questions.LoginTemplate{"strict": template("password")}
			w.demands("portal", func(c *questions.Client) { c.LoginTemplate = "strict" })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withNewcomers(t)
			c.edit(w)
			w.inviter().Post("/v1/users/31/invite", object{"application_id": "9"}).OK(nil)
			b := w.browser().follow(w.link(1))
			require.Equal(t, c.offers, strings.Contains(b.body, offer), "%s", b.body)
			require.Equal(t, c.offers, strings.Contains(b.chooses("webauthn").body, "Set up a passkey"))
		})
	}
	t.Run("a password that is forgotten", func(t *testing.T) {
		t.Parallel()
		w := withMails(t)
		b := w.browser().get(base).forgets("ann").enter(w.code(1)).shows(200, "Choose a new password")
		require.NotContains(t, b.body, offer)
		b.chooses("webauthn").shows(200, "Choose a new password")
	})
}

// An invitation that has ended between two pages makes no passkey.
func TestAnInvitationToAPasskeyEnds(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(w *world){
		"scope":    func(w *world) { w.change(func() { w.users["bob"].scoped = true }) },
		"address":  func(w *world) { w.change(func() { w.users["bob"].record["email"] = "x@acme.test" }) },
		"disabled": func(w *world) { w.change(func() { w.users["bob"].record["status"] = "2" }) },
		"password": func(w *world) { w.change(func() { w.users["bob"].password = "something" }) },
		"again":    func(w *world) { w.invite("31") },
		"revoked":  func(w *world) { w.inviter().Delete("/v1/invitations/31", nil) },
		"expired":  func(w *world) { w.Clock.Advance(169 * time.Hour) },
		"deleted":  func(w *world) { w.change(func() { delete(w.users, "bob") }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withNewcomers(t)
			w.invite("31")
			b := w.browser().follow(w.link(1)).chooses("webauthn")
			do(w)
			b.makes("", virtualwebauthn.AuthenticatorOptions{})
			require.Less(t, b.page.StatusCode, 500)
			require.Empty(t, w.factors())
			require.Empty(t, w.sessions())
		})
	}
}

// A link serves one of two people who set up a passkey by it at the same time, and none after it was revoked.
func TestAnInvitationToAPasskeyServesOnce(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.invite("31")
	link := w.link(1)
	first := w.browser().follow(link).chooses("webauthn")
	second := w.browser().follow(link).chooses("webauthn")
	third := w.browser().follow(link).chooses("webauthn")
	first.makes("", virtualwebauthn.AuthenticatorOptions{})
	second.makes("", virtualwebauthn.AuthenticatorOptions{})
	second.shows(200, openAgain)
	require.Len(t, w.factors(), 2)
	w.inviter().Delete("/v1/invitations/31", nil)
	third.makes("", virtualwebauthn.AuthenticatorOptions{})
	third.shows(200, openAgain)
	require.Len(t, w.factors(), 2)

	w.invite("32")
	away := w.browser().follow(w.link(2)).chooses("webauthn")
	w.change(func() { w.away["users"] = true })
	away.makes("", virtualwebauthn.AuthenticatorOptions{})
	away.shows(503, "not answering")
	require.Len(t, w.factors(), 2)
	require.Equal(t, "pending", w.invitation("32")["status"])
}

// passkeyOnly is a world in which bob has accepted an invitation by a passkey.
func passkeyOnly(t *testing.T, edit func(*world)) (*world, *browser, *authenticator) {
	t.Helper()
	w := withNewcomers(t)
	w.users["bob"].record["password_set"] = false
	edit(w)
	w.invite("31")
	b := w.browser().follow(w.link(1)).chooses("webauthn")
	a := b.makes("Phone", virtualwebauthn.AuthenticatorOptions{})
	b.shows(200, "Keep your recovery codes").press("kept").shows(200, "My account")
	w.Clock.Advance(time.Minute)
	return w, b, a
}

// An address that another user had before is not verified, and keeps nobody from accepting.
func TestInvitedToAPasskeyWithAnEarlierAddress(t *testing.T) {
	t.Parallel()
	w, _, a := passkeyOnly(t, func(w *world) { w.away["had before"] = true })
	require.Equal(t, false, w.users["bob"].record["email_verified"])
	w.browser().get(w.authorize("portal")).uses(a).answered(callback)
}

// Nobody without a password is asked for a new one.
func TestNobodyChangesAPasswordThatIsNotThere(t *testing.T) {
	t.Parallel()
	w, _, a := passkeyOnly(t, func(w *world) { w.users["bob"].record["must_change_password"] = true })
	w.browser().get(w.authorize("portal")).uses(a).answered(callback)
}

// Two tabs that remove two passkeys at the same time leave one.
func TestTheLastPasskeyStays(t *testing.T) {
	t.Parallel()
	w, b, _ := passkeyOnly(t, func(*world) {})
	b.factor("add", "").chooses("webauthn")
	require.Contains(t, b.options(), `"residentKey":"required"`)
	b.makes("Second", virtualwebauthn.AuthenticatorOptions{})
	passkeys := func() (ids []string) {
		for _, f := range w.factors() {
			if f["type"] == "webauthn" {
				ids = append(ids, f["id"].(string))
			}
		}
		return ids
	}
	require.Len(t, passkeys(), 2)
	var tabs sync.WaitGroup
	for _, id := range passkeys() {
		tab := b.tab()
		tabs.Go(func() { tab.factor("remove", id) })
	}
	tabs.Wait()
	require.Len(t, passkeys(), 1)
}

// A password that is set by a link while a passkey is set up by it signs nobody in.
func TestAPasswordAndAPasskeyByOneLink(t *testing.T) {
	t.Parallel()
	w := withNewcomers(t)
	w.users["bob"].record["password_set"] = false
	w.invite("31")
	link := w.link(1)
	bob, thief := w.browser().follow(link).chooses("webauthn"), w.browser().follow(link)
	var once sync.Once
	w.setting = func() { once.Do(func() { bob.makes("Phone", virtualwebauthn.AuthenticatorOptions{}) }) }
	thief.choose("a new battery staple")
	bob.shows(200, "Keep your recovery codes")
	require.Empty(t, w.sessions())
}
